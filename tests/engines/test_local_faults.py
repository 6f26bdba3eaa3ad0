"""Temporary faults of the machine (no disk space, no free descriptors) lose no stop, no kill and no end of a task."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corral.engines.local import attempt_folder as folders
from corral.engines.local import engine, memory, processes, reaper
from corral.engines.local.attempt_folder import AttemptFolder
from corral.engines.local.live_attempt import GRACE_OVER, MEMORY_OVER, SHIM_KILLED
from corral.kernel.errors import Unavailable
from corral.model.launch import Exited
from tests.engines.local_harness import Harness, alive, attempt, launch
from tests.engines.test_local_ends_tasks import DAEMON
from tests.engines.test_local_limits import EATER

DEAF = ("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1000; done")


class Disk:
    """The disk of the engine's records; with `full` set, every write fails."""

    full = False

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._write: Callable[[str, bytes], None] = folders._write
        monkeypatch.setattr(folders, "_write", self.write)

    def write(self, path: str, content: bytes) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        self._write(path, content)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(memory, "SECONDS", 0.01)


def fails_once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, *, of: str = "") -> list[str]:
    """Make a function fail on its first call, or on its first call for the attempt `of`."""
    real, failed = getattr(owner, name), []

    def function(*args: Any) -> Any:
        whose = getattr(args[0], "attempt", "") if args else ""
        if not failed and of in ("", whose):
            failed.append(whose)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return real(*args)

    monkeypatch.setattr(owner, name, function)
    return failed


async def end_together(local: Harness, count: int) -> None:
    """End tasks so that the engine sees all ends in one round of the loop."""
    for task in range(count):
        await local.engine.start(launch("sh", "-c", f"exit {task}", task=task))
    for task in range(count):
        os.waitid(os.P_PID, local.shim(attempt(task)), os.WEXITED | os.WNOWAIT)


async def test_a_stop_that_could_not_be_recorded_is_sent_when_it_is_asked_again(local: Harness, disk: Disk) -> None:
    await local.engine.start(launch("sh", "-c", "trap 'echo term; exit 0' TERM; echo ready; sleep 1000 & wait"))
    await local.line("ready")
    disk.full = True
    with pytest.raises(Unavailable, match="No space left"):
        await local.engine.stop(attempt(), grace_seconds=600)
    disk.full = False
    await local.engine.stop(attempt(), grace_seconds=600)
    assert (await local.exited(attempt())).code == 0
    assert local.log() == "ready\nterm\n"


async def test_a_full_disk_saves_no_task_from_the_kill_after_its_grace(local: Harness, disk: Disk) -> None:
    await local.engine.start(launch(*DEAF))
    await local.line("ready")
    await local.engine.stop(attempt(), grace_seconds=0)
    disk.full = True
    end = await local.exited(attempt())
    assert (end.code, end.signal, end.reason) == (137, 9, GRACE_OVER)


async def test_a_kill_that_fails_is_tried_again(local: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    await local.engine.start(launch(*DEAF))
    await local.line("ready")
    failed = fails_once(monkeypatch, reaper, "of_attempt")
    await local.engine.stop(attempt(), grace_seconds=0)
    assert (await local.exited(attempt())).reason == GRACE_OVER
    assert failed


async def test_a_full_disk_saves_no_task_from_its_limit_of_memory(tmp_path: Path, disk: Disk) -> None:
    async with Harness(tmp_path, use_cgroups=False) as local:
        await local.engine.start(launch(sys.executable, "-c", EATER, memory_bytes=64 << 20))
        disk.full = True
        end = await local.exited(attempt())
    assert (end.code, end.reason) == (-1200, MEMORY_OVER)


async def test_a_look_at_memory_that_fails_is_not_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Harness(tmp_path, use_cgroups=False) as local:
        failed = fails_once(monkeypatch, memory, "over_limit")
        end = await local.run(sys.executable, "-c", EATER, memory_bytes=64 << 20)
    assert (end.code, end.reason) == (-1200, MEMORY_OVER)
    assert failed


async def test_an_end_is_told_though_the_reason_for_it_cannot_be_recorded(local: Harness, disk: Disk) -> None:
    await local.engine.start(launch("sh", "-c", "echo ready; sleep 1000"))
    await local.line("ready")
    disk.full = True
    os.kill(local.shim(), signal.SIGKILL)
    end = await local.exited(attempt())
    assert (end.code, end.reason) == (-101, SHIM_KILLED)


async def test_an_end_that_cannot_be_read_yet_holds_up_no_other_and_is_told_later(
    local: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = fails_once(monkeypatch, AttemptFolder, "exit_code", of=attempt(1))
    await end_together(local, 3)
    assert [(await local.exited(attempt(task))).code for task in range(3)] == [0, 1, 2]
    assert [local.count(Exited, attempt(task)) for task in range(3)] == [1, 1, 1]
    assert failed == [attempt(1)]
    assert [event.attempt for event in local.seen if isinstance(event, Exited)][-1] == attempt(1)


@pytest.mark.parametrize("step", ["looking for orphans", "burying a shim", "asking when it ended"])
async def test_whatever_fails_about_ends_each_is_told_once(
    local: Harness, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    owner, name = {
        "looking for orphans": (local.engine._orphans, "find"),
        "burying a shim": (reaper, "reap"),
        "asking when it ended": (AttemptFolder, "exit_time"),
    }[step]
    failed = fails_once(monkeypatch, owner, name)
    await end_together(local, 3)
    assert [(await local.exited(attempt(task))).code for task in range(3)] == [0, 1, 2]
    assert [local.count(Exited, attempt(task)) for task in range(3)] == [1, 1, 1]
    assert failed and all(local.engine._live[attempt(task)].timer is None for task in range(3))


async def test_what_is_left_of_a_task_is_ended_by_a_second_try_that_signals_no_reaped_number(
    local: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_group, killed = processes.kill_group, []

    def recorded(group: int, number: int) -> bool:
        killed.append((group, number))
        return kill_group(group, number)

    monkeypatch.setattr(processes, "kill_group", recorded)
    failed = fails_once(monkeypatch, reaper, "end_all")
    assert (await local.run(sys.executable, "-c", DAEMON)).code == 0
    assert failed and not alive(int((await local.line("daemon ")).split()[1]))
    assert killed.count((local.shim(), signal.SIGKILL)) == 1


async def test_an_end_is_told_though_its_log_cannot_be_completed(
    local: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = fails_once(monkeypatch, local.logs, "finish")
    end = await local.run("sh", "-c", "echo done; exit 3")
    assert (end.code, end.log_bytes) == (3, 0)
    assert failed
