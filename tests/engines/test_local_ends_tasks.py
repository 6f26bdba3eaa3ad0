"""The local engine reports how tasks end, stops them with a grace period, and leaves no processes or files."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from corral.engines.local import processes
from corral.engines.local.live_attempt import GRACE_OVER, GROUP_KILLED, NEVER_STARTED, SHIM_KILLED
from corral.kernel.errors import InvalidInput
from corral.model.launch import Exited, Started
from tests.engines.local_harness import JOB, Harness, alive, attempt, launch, of_attempt

RUNAWAY = "setsid sh -c 'echo runaway $$; exec sleep 1000' & sleep 0.2; wait"
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("daemon", os.getpid(), flush=True)
        time.sleep(1000)
    os._exit(0)
os.wait()
"""


async def test_a_killed_task_has_its_true_exit_code(local: Harness) -> None:
    await local.engine.start(launch("sh", "-c", "echo pid $$; exec sleep 1000"))
    pid = int((await local.line("pid ")).split()[1])
    os.kill(pid, signal.SIGKILL)
    end = await local.exited(attempt())
    assert (end.code, end.signal, end.reason) == (137, 9, "")


async def test_a_killed_shim_takes_its_task_with_it_before_anything_is_reported(local: Harness) -> None:
    await local.engine.start(launch("sh", "-c", "echo pid $$; exec sleep 1000"))
    pid = int((await local.line("pid ")).split()[1])
    os.kill(local.shim(), signal.SIGKILL)
    end = await local.exited(attempt())
    assert (end.code, end.reason) == (-101, SHIM_KILLED)
    assert not alive(pid)


async def test_a_killed_process_group_is_told_apart_from_a_killed_shim(local: Harness) -> None:
    await local.engine.start(launch("sh", "-c", "echo pid $$; exec sleep 1000"))
    await local.line("pid ")
    os.killpg(local.shim(), signal.SIGKILL)
    end = await local.exited(attempt())
    assert (end.code, end.reason) == (-101, GROUP_KILLED)


async def test_a_child_left_in_the_group_is_ended_before_the_report(local: Harness) -> None:
    await local.engine.start(launch("sh", "-c", "sleep 1000 & echo pid $!; exit 4"))
    end = await local.exited(attempt())
    assert end.code == 4
    assert not alive(int((await local.line("pid ")).split()[1]))


async def test_a_child_in_a_session_of_its_own_is_ended_before_the_report(local: Harness) -> None:
    await local.engine.start(launch("sh", "-c", RUNAWAY))
    pid = int((await local.line("runaway ")).split()[1])
    os.kill(local.shim(), signal.SIGKILL)
    end = await local.exited(attempt())
    assert end.code == -101
    assert not alive(pid) and not of_attempt(attempt())


async def test_a_daemon_that_left_every_session_is_ended_before_the_report(local: Harness) -> None:
    end = await local.run(sys.executable, "-c", DAEMON)
    assert end.code == 0
    pid = int((await local.line("daemon ")).split()[1])
    assert not alive(pid) and not of_attempt(attempt())


async def test_a_daemon_of_one_task_is_left_alone_when_another_ends(local: Harness) -> None:
    await local.engine.start(launch(sys.executable, "-c", DAEMON + "time.sleep(1000)"))
    pid = int((await local.line("daemon ")).split()[1])
    assert (await local.run("true", task=1)).code == 0
    assert alive(pid)
    await local.engine.stop(attempt(), grace_seconds=30)
    await local.exited(attempt())
    assert not alive(pid)


async def test_a_stop_is_the_asked_signal_and_the_task_may_end_by_itself(local: Harness) -> None:
    await local.engine.start(launch("sh", "-c", "trap 'echo saved; exit 0' USR1; echo ready; sleep 1000 & wait"))
    await local.line("ready")
    await local.engine.stop(attempt(), grace_seconds=600, signal="USR1")
    end = await local.exited(attempt())
    assert end.code == 0 and local.log() == "ready\nsaved\n"


async def test_a_task_deaf_to_the_signal_is_killed_after_its_grace(local: Harness) -> None:
    await local.engine.start(launch("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1000; done"))
    await local.line("ready")
    await local.engine.stop(attempt(), grace_seconds=0.1)
    end = await local.exited(attempt())
    assert (end.code, end.signal, end.reason) == (137, 9, GRACE_OVER)


async def test_a_second_stop_can_only_bring_the_kill_forward(local: Harness) -> None:
    await local.engine.start(launch("sh", "-c", "trap 'echo term' TERM; echo ready; while :; do sleep 0.01; done"))
    await local.line("ready")
    await local.engine.stop(attempt(), grace_seconds=600)
    await local.line("term")
    await local.engine.stop(attempt(), grace_seconds=1000)
    await local.engine.stop(attempt(), grace_seconds=0.05)
    assert (await local.exited(attempt())).reason == GRACE_OVER
    assert local.log().count("term") == 1


async def test_a_suspended_task_is_killed_all_the_same(local: Harness) -> None:
    await local.engine.start(launch("sh", "-c", "echo ready; sleep 1000"))
    await local.line("ready")
    os.killpg(local.shim(), signal.SIGSTOP)
    await local.engine.stop(attempt(), grace_seconds=0.05)
    assert (await local.exited(attempt())).code in (137, 143)


async def test_a_stop_before_the_start_holds_for_ever(local: Harness) -> None:
    await local.engine.stop(attempt(), grace_seconds=5)
    end = await local.exited(attempt())
    assert (end.code, end.reason) == (-210, NEVER_STARTED)
    await local.engine.start(launch("echo", "never"))
    await local.engine.stop(attempt(), grace_seconds=5)
    assert local.count(Started, attempt()) == 0 and local.count(Exited, attempt()) == 1


async def test_an_unknown_signal_is_refused_before_anything_happens(local: Harness) -> None:
    await local.engine.start(launch("sleep", "1000"))
    with pytest.raises(InvalidInput, match="no signal BANG"):
        await local.engine.stop(attempt(), grace_seconds=5, signal="BANG")
    assert alive(local.shim())
    await local.engine.stop(attempt(), grace_seconds=0)
    await local.exited(attempt())


async def test_a_stop_at_once_after_the_start_ends_it_in_every_interleaving(local: Harness) -> None:
    for index in range(30):
        await local.engine.start(launch("sleep", "1000", task=index))
        await local.engine.stop(attempt(index), grace_seconds=600)
    for index in range(30):
        end = await local.exited(attempt(index))
        assert end.code == 143, end
    assert not [pid for pid, marked in processes.marked() if marked.startswith(f"{JOB}.")]
