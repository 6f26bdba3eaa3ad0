"""After a kill at any time, the next server finds every attempt again, with its true end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from corral.engines.local import processes
from corral.engines.local.attempt_folder import AttemptFolder, LaunchRecord, StopRecord
from corral.engines.local.live_attempt import GRACE_OVER, GROUP_KILLED, MACHINE_RESTARTED, NEVER_STARTED, SHIM_KILLED
from corral.model.launch import Exited, PortRequest
from tests.engines.local_harness import Harness, alive, attempt, end_everything, launch, of_attempt, until

SERVER = Path(__file__).with_name("local_server.py")
ROOT = SERVER.parents[2]
RECORDED = ["recorded", attempt()]
"""The step in which a server waits for the shim's record, by which the next server knows the attempt."""


def killed_server(folder: Path, *steps: list[str]) -> None:
    """Run a server through the steps and kill it."""
    argv = [sys.executable, str(SERVER), str(folder), *map(json.dumps, steps)]
    server = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert server.stdout is not None
    try:
        assert server.stdout.readline() == "started\n"
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


@pytest.fixture
def folder(tmp_path: Path):
    yield tmp_path
    if (tmp_path / "engine").is_dir():
        end_everything(tmp_path)


async def test_a_task_that_outlives_its_server_is_adopted_and_its_code_is_true(folder: Path) -> None:
    wait = "echo pid $$; while [ ! -e go ]; do sleep 0.01; done; echo done; exit 5"
    killed_server(folder, [attempt(), "sh", "-c", wait], RECORDED)
    async with Harness(folder) as local:
        begin = await local.started(attempt())
        assert begin.ports["web"][0] >= 20000
        assert alive(int((await local.line("pid ")).split()[1]))
        await local.engine.start(launch("echo", "a second time"))
        (folder / "engine/attempts" / attempt() / "work/go").touch()
        end = await local.exited(attempt())
        assert end.code == 5 and local.log().splitlines()[1:] == ["done"]


async def test_a_task_that_ended_while_no_server_ran_is_reported_with_its_code(folder: Path) -> None:
    killed_server(folder, [attempt(), "sh", "-c", "exit 9"], RECORDED)
    await until(lambda: not of_attempt(attempt()))
    async with Harness(folder) as local:
        end = await local.exited(attempt())
        assert end.code == 9
        assert (await local.started(attempt())).at <= end.at


async def test_ends_are_reported_by_every_server_until_they_are_forgotten(folder: Path) -> None:
    async with Harness(folder) as local:
        await local.run("sh", "-c", "exit 3")
    async with Harness(folder) as local:
        assert (await local.exited(attempt())).code == 3
        await local.engine.forget([attempt()])
    async with Harness(folder) as local:
        assert local.engine.attempts() == frozenset() and local.seen == []


@pytest.mark.parametrize(
    ("whom", "code", "reason"), [("shim", -101, SHIM_KILLED), ("group", -101, GROUP_KILLED), ("task", 137, "")]
)
async def test_kills_are_told_apart_for_adopted_tasks_too(folder: Path, whom: str, code: int, reason: str) -> None:
    killed_server(folder, [attempt(), "sh", "-c", "echo pid $$; exec sleep 1000"], RECORDED)
    async with Harness(folder) as local:
        pid = int((await local.line("pid ")).split()[1])
        await local.started(attempt())
        kill = os.killpg if whom == "group" else os.kill
        kill(pid if whom == "task" else local.shim(), signal.SIGKILL)
        end = await local.exited(attempt())
        assert (end.code, end.reason) == (code, reason)
        assert not alive(pid)


async def test_a_shim_killed_while_no_server_ran_leaves_no_orphan(folder: Path) -> None:
    marker = str(folder / "engine/attempts" / attempt() / "work/begun")
    command = "setsid sleep 1000 & touch begun; exec sleep 1000"
    killed_server(folder, [attempt(), "sh", "-c", command], ["wait", marker])
    shim = AttemptFolder(str(folder / "engine/attempts"), attempt()).process()
    assert shim is not None
    os.kill(shim.pid, signal.SIGKILL)
    async with Harness(folder) as local:
        end = await local.exited(attempt())
        assert (end.code, end.reason) == (-101, SHIM_KILLED)
        assert not of_attempt(attempt())
    async with Harness(folder) as local:
        assert (await local.exited(attempt())).reason == SHIM_KILLED


async def test_a_grace_period_runs_on_through_a_restart_of_the_server(folder: Path) -> None:
    deaf = "trap '' TERM; touch deaf; while :; do sleep 1000; done"
    marker = str(folder / "engine/attempts" / attempt() / "work/deaf")
    killed_server(folder, [attempt(), "sh", "-c", deaf], ["wait", marker], ["stop", attempt(), "0.5"])
    async with Harness(folder) as local:
        end = await local.exited(attempt())
        assert (end.code, end.reason) == (137, GRACE_OVER)


async def test_a_stop_recorded_but_not_sent_is_sent_by_the_next_server(folder: Path) -> None:
    killed_server(folder, [attempt(), "sh", "-c", "trap 'exit 11' TERM; echo ready; sleep 1000 & wait"], RECORDED)
    async with Harness(folder) as local:
        await local.line("ready")
        in_ten_minutes = time.clock_gettime(time.CLOCK_BOOTTIME) + 600
        local.engine._live[attempt()].folder.write_stop(StopRecord(signal.SIGTERM, in_ten_minutes))
        await local.abandon()
        async with Harness(folder) as second:
            assert (await second.exited(attempt())).code == 11


async def test_a_stop_of_a_task_that_never_came_to_run_is_reported_by_the_next_server(folder: Path) -> None:
    async with Harness(folder):
        pass
    cut_off = AttemptFolder(str(folder / "engine/attempts"), attempt())
    cut_off.create(LaunchRecord("local/node1"), work=True)
    cut_off.write_stop(StopRecord(signal.SIGTERM, 0.0))
    async with Harness(folder) as local:
        end = await local.exited(attempt())
        assert (end.code, end.reason) == (-210, NEVER_STARTED)


async def test_a_reused_pid_is_never_taken_for_the_task_nor_touched(folder: Path) -> None:
    stranger = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        record = fake_attempt(folder, pid=stranger.pid, start=1, boot=processes.boot_id())
        async with Harness(folder) as local:
            end = await local.exited(record.attempt)
            assert (end.code, end.reason) == (-101, GROUP_KILLED)
            assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


async def test_after_a_reboot_attempts_end_as_transient_and_strangers_are_left_alone(folder: Path) -> None:
    stranger = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        now = processes.stat(stranger.pid)
        assert now is not None
        record = fake_attempt(folder, pid=stranger.pid, start=now.start, boot="another-boot")
        async with Harness(folder) as local:
            end = await local.exited(record.attempt)
            assert (end.code, end.reason) == (-1001, MACHINE_RESTARTED)
            assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("record", ["stop", "ended"])
async def test_a_record_that_a_power_cut_left_empty_keeps_no_engine_from_opening(folder: Path, record: str) -> None:
    killed_server(folder, [attempt(), "sh", "-c", "exit 9"], RECORDED)
    await until(lambda: not of_attempt(attempt()))
    (folder / "engine/attempts" / attempt() / record).touch()
    async with Harness(folder) as local:
        assert (await local.exited(attempt())).code == 9


async def test_a_crash_between_folder_and_spawn_leaves_an_attempt_that_can_start(folder: Path) -> None:
    async with Harness(folder):
        pass
    AttemptFolder(str(folder / "engine/attempts"), attempt()).create(LaunchRecord("local/node1"), work=True)
    async with Harness(folder) as local:
        assert local.engine.attempts() == frozenset() and local.seen == []
        assert (await local.run("sh", "-c", "exit 6")).code == 6


async def test_a_crash_before_the_launch_file_leaves_an_attempt_that_can_start(folder: Path) -> None:
    async with Harness(folder):
        pass
    (folder / "engine/attempts" / attempt()).mkdir()
    (folder / "engine/attempts" / f"{attempt(1)}.1234.new").mkdir()
    async with Harness(folder) as local:
        assert local.engine.attempts() == frozenset()
        assert (await local.run("true")).code == 0


async def test_a_shim_that_comes_late_gives_up(folder: Path) -> None:
    """The server was killed right after the spawn; the next one looks before the shim has run."""
    async with Harness(folder) as local:
        late = AttemptFolder(str(folder / "engine/attempts"), attempt())
        late.create(LaunchRecord("local/node1"), work=True)
        await local.abandon()
        async with Harness(folder) as second:
            await second.engine.start(launch("sh", "-c", "echo new; exec sleep 1000"))
            await second.line("new")
            argv = [
                "/bin/sh",
                second.engine._shim,
                late.path,
                late.nonce,
                processes.boot_id(),
                "1024",
                "",
                ".",
                "",
                "false",
            ]
            assert subprocess.run(argv, check=False).returncode == 125
            assert second.count(Exited, attempt()) == 0
            await second.engine.stop(attempt(), grace_seconds=0)
            await second.exited(attempt())


async def test_a_late_shim_cannot_take_an_attempt_that_runs(folder: Path) -> None:
    async with Harness(folder) as local:
        await local.engine.start(launch("sh", "-c", "echo new; exec sleep 1000"))
        await local.line("new")
        running = local.engine._live[attempt()].folder
        argv = [
            "/bin/sh",
            local.engine._shim,
            running.path,
            running.nonce,
            processes.boot_id(),
            "1024",
            "",
            ".",
            "",
            "false",
        ]
        assert subprocess.run(argv, check=False).returncode == 125
        await local.engine.stop(attempt(), grace_seconds=0)
        await local.exited(attempt())


@pytest.mark.parametrize("unreadable", [1, 2], ids=["whose record is there now", "whose record is not complete"])
async def test_a_shim_that_takes_its_attempt_while_the_next_server_looks_is_adopted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, unreadable: int
) -> None:
    deaf = "trap '' TERM; touch deaf; exec sleep 1000"
    marker = str(folder / "engine/attempts" / attempt() / "work/deaf")
    killed_server(folder, [attempt(), "sh", "-c", deaf], ["wait", marker])
    record = AttemptFolder(str(folder / "engine/attempts"), attempt())
    shim = await until(record.process)
    really, looks = AttemptFolder.process, iter([None] * unreadable)
    monkeypatch.setattr(AttemptFolder, "process", lambda self: next(looks, really(self)))
    async with Harness(folder) as local:
        assert next(looks, "all looked at") == "all looked at"
        assert local.shim() == shim.pid and local.engine._live[attempt()].end is None
        await local.engine.stop(attempt(), grace_seconds=0)
        assert (await local.exited(attempt())).reason == GRACE_OVER


async def test_many_adopted_tasks_end_with_their_codes(folder: Path) -> None:
    body = f"while [ ! -e {folder}/go ]; do sleep 0.05; done; exit "
    recorded = [["recorded", attempt(i)] for i in range(40)]
    killed_server(folder, *[[attempt(i), "sh", "-c", body + str(i)] for i in range(40)], *recorded)
    async with Harness(folder) as local:
        (folder / "go").touch()
        ends = [await local.exited(attempt(i)) for i in range(40)]
        assert [end.code for end in ends] == list(range(40))


async def test_ports_of_adopted_tasks_are_not_given_twice(folder: Path) -> None:
    killed_server(folder, [attempt(), "sleep", "1000"], RECORDED)
    async with Harness(folder) as local:
        held = (await local.started(attempt())).ports["web"][0]
        local.engine._ports._next = held  # the next port to be given, if its owner were unknown
        await local.engine.start(launch("sleep", "1000", task=1, ports=(PortRequest("web", 5),)))
        assert held not in (await local.started(attempt(1))).ports["web"]
        for index in (0, 1):
            await local.engine.stop(attempt(index), grace_seconds=0)
            await local.exited(attempt(index))


def fake_attempt(folder: Path, *, pid: int, start: int, boot: str) -> AttemptFolder:
    """The files of an earlier server's attempt, whose shim had this identity."""
    root = folder / "engine" / "attempts"
    root.mkdir(parents=True)
    made = AttemptFolder(str(root), attempt())
    made.create(LaunchRecord("local/node1"), work=True)
    fields = ["S", "1", str(pid), str(pid), *["0"] * 15, str(start), "0"]
    Path(made.path, "pid").write_text(f"{boot} {pid} (sh) {' '.join(fields)}\n")
    return made
