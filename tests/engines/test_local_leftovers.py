"""Processes that a task left end with it, even without its variables, session or parents."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from corral.engines.local import cgroups
from corral.engines.local.live_attempt import FOLDER_GONE
from tests.engines.local_harness import Harness, alive, attempt, end_everything, launch, of_attempt, until
from tests.engines.test_local_adopts import killed_server

GLIBC = 0b11 << 31
"""The C library's own signals, which its posix_spawn ignores."""
HIDDEN = "env -i setsid sh -c 'echo hidden $$ >{said}; exec sleep 1000' & while [ ! -s {said} ]; do :; done"
TREE = """
import os, sys, time
for depth in range(3):
    os.setsid() if os.fork() == 0 else (time.sleep(0.05), os._exit(0))
open(sys.argv[1], "w").write(f"hidden {os.getpid()}\\n")
os.execve("/bin/sh", ["sh", "-c", "sleep 1000 & sleep 1000 & wait"], {})
"""


@pytest.fixture(params=["with control groups", "without control groups"])
async def either(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Harness]:
    async with Harness(tmp_path, use_cgroups=request.param == "with control groups") as harness:
        yield harness


@pytest.fixture
def said(tmp_path: Path) -> Iterator[Path]:
    """The file in which a hiding process writes its pid; if the test fails, the process is killed."""
    path = tmp_path / "said"
    yield path
    if path.exists() and alive(hidden := pid_in(path)):
        os.kill(hidden, signal.SIGKILL)


def pid_in(said: Path) -> int:
    return int(said.read_text().split()[1])


async def test_a_process_without_variables_in_a_session_of_its_own_is_ended_before_the_report(
    either: Harness, said: Path
) -> None:
    end = await either.run("sh", "-c", f"{HIDDEN.format(said=said)}; exit 4")
    assert (end.code, end.reason) == (4, "")
    assert not alive(pid_in(said))


async def test_a_tree_of_processes_that_hide_is_ended_before_the_report(either: Harness, said: Path) -> None:
    wait = f"while [ ! -s {said} ]; do :; done"
    end = await either.run("sh", "-c", f"{sys.executable} -c '{TREE}' {said} & {wait}; exit 0")
    assert end.code == 0
    assert not alive(pid_in(said))


async def test_a_stop_ends_what_hides_too(either: Harness, said: Path) -> None:
    await either.engine.start(launch("sh", "-c", f"trap '' TERM; {HIDDEN.format(said=said)}; echo up; sleep 1000"))
    await either.line("up")
    await either.engine.stop(attempt(), grace_seconds=0.05)
    await either.exited(attempt())
    assert not alive(pid_in(said))


async def test_a_task_without_control_groups_has_signals_and_variables_as_it_should(tmp_path: Path) -> None:
    async with Harness(tmp_path, use_cgroups=False) as local:
        await local.run("sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status; env", env={"LC_ALL": "C", "A": "b=c\nd"})
        masks = [line.split()[1] for line in local.log().splitlines() if line.startswith("Sig")]
        assert [int(mask, 16) & ~GLIBC for mask in masks] == [0, 0]
        assert "LC_CTYPE" not in local.log() and "A=b=c\nd\n" in local.log()


async def test_the_next_server_ends_what_only_the_control_group_tells_of(tmp_path: Path, said: Path) -> None:
    async with Harness(tmp_path) as local:
        if local.engine._cgroups is None:
            pytest.skip("this server may not make control groups here; run the tests as root to check them")
    script = f'{HIDDEN.format(said=said)}; rm -rf "$CORRAL_ATTEMPT_FOLDER"; touch {said}.gone; exec sleep 1000'
    killed_server(tmp_path, [attempt(), "sh", "-c", script], ["wait", f"{said}.gone"])
    for pid in of_attempt(attempt()):
        os.kill(pid, signal.SIGKILL)
    assert alive(pid_in(said))
    async with Harness(tmp_path) as local:
        end = await local.exited(attempt())
        assert (end.code, end.reason) == (-101, FOLDER_GONE)
        assert not alive(pid_in(said))
        assert not cgroups.found(local.engine._cgroups.parents if local.engine._cgroups else ())
    end_everything(tmp_path)


@pytest.mark.parametrize("left_by", ["the task, whose shim was killed", "a session beside it"])
async def test_without_control_groups_the_server_ends_what_it_inherits_unmarked_with_the_attempt(
    tmp_path: Path, said: Path, left_by: str
) -> None:
    hides = HIDDEN.format(said=said)
    async with Harness(tmp_path, use_cgroups=False) as local:
        await local.engine.start(launch("sh", "-c", "while [ ! -e go ]; do sleep 0.01; done; . ./go; exec sleep 1000"))
        await local.started(attempt())
        work = tmp_path / "engine/attempts" / attempt() / "work"
        if left_by == "a session beside it":
            session = await local.engine.exec(attempt(), ["sh", "-c", f"{hides}; exit 3"], tty=False)
            assert await session.exit_code() == 3
            await session.close()
            assert alive(pid_in(said)), "what a session leaves runs on as long as the task"
            await local.engine.stop(attempt(), grace_seconds=0)
        else:
            (work / "new").write_text(hides)
            (work / "new").rename(work / "go")
            await until(lambda: said.exists() and said.read_text())
            os.kill(local.shim(), signal.SIGKILL)
        await local.exited(attempt())
        assert not alive(pid_in(said))


async def test_the_server_leaves_others_alone_that_it_inherits_and_that_run_elsewhere(
    tmp_path: Path, said: Path
) -> None:
    async with Harness(tmp_path, use_cgroups=False) as local:
        await local.engine.start(launch("sleep", "1000"))
        await local.started(attempt())
        script = f"cd /; {HIDDEN.format(said=said)}"
        subprocess.run(["sh", "-c", script], check=True, env={}, start_new_session=True)
        await local.engine.stop(attempt(), grace_seconds=0)
        await local.exited(attempt())
        assert alive(pid_in(said))
        os.kill(pid_in(said), signal.SIGKILL)
