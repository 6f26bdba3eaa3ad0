"""The local engine runs commands as asked and reports their true ends."""

from __future__ import annotations

import os
import signal

import pytest

from corral.engines.local.processes import boot_id
from corral.kernel.errors import Conflict, InvalidInput
from corral.model.launch import Exited, PortRequest, Started
from tests.engines.local_harness import JOB, Harness, attempt, launch, of_attempt


async def test_a_task_starts_runs_and_ends_with_its_own_exit_code(local: Harness) -> None:
    end = await local.run("sh", "-c", "echo hello; echo oops >&2; exit 7")
    assert (end.code, end.signal, end.reason, end.log_bytes) == (7, 0, "", 11)
    assert local.log() == "hello\noops\n"
    begin = await local.started(attempt())
    assert begin.host == "127.0.0.1" and begin.process.startswith(f"{boot_id()}:")
    assert begin.at <= end.at


@pytest.mark.parametrize(("command", "code"), [(("true",), 0), (("exit", "3"), 127), (("no-such-program",), 127)])
async def test_a_command_is_a_program_never_a_shell_word(local: Harness, command: tuple[str, ...], code: int) -> None:
    assert (await local.run(*command)).code == code


async def test_arguments_and_environment_arrive_unchanged(local: Harness) -> None:
    odd = "a b  $HOME `x` \"q\" 'q' \\ \n*"
    await local.run("sh", "-c", 'printf "%s|%s" "$1" "$ODD"', "sh", odd, env={"ODD": odd})
    assert local.log() == f"{odd}|{odd}"


async def test_a_task_knows_what_it_is_and_nothing_of_the_server(
    local: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "server's own")
    await local.run("env", task=3, ports=(PortRequest("web", 2),))
    env = dict(line.split("=", 1) for line in local.log(attempt(3)).splitlines())
    assert "AWS_SECRET_ACCESS_KEY" not in env
    assert env["CORRAL_JOB_ID"] == JOB and env["CORRAL_ROLE"] == "worker"
    assert env["CORRAL_TASK_INDEX"] == "3" and env["CORRAL_ATTEMPT"] == attempt(3)
    assert env["CORRAL_NODE"] == "local/node1" and env["CORRAL_HOST"] == "127.0.0.1" and env["CORRAL_DEVICES"] == ""
    given = (await local.started(attempt(3))).ports["web"]
    assert env["CORRAL_PORT_WEB"] == ",".join(map(str, given)) and len(given) == 2


async def test_tasks_find_signals_and_limits_as_the_system_has_them(local: Harness) -> None:
    before = signal.signal(signal.SIGQUIT, signal.SIG_IGN)  # as in a server that a script started in the background
    await local.run("sh", "-c", "grep -E 'SigIgn|SigBlk' /proc/self/status; ulimit -S -n")
    signal.signal(signal.SIGQUIT, before)
    _, blocked, _, ignored, files = local.log().split()
    ordinary = 2**31 - 1  # signals 32 and 33 are the C library's own
    assert int(blocked, 16) & ordinary == int(ignored, 16) & ordinary == 0
    assert files == local.engine._nofile


async def test_it_starts_in_its_own_folder_or_where_the_job_says(local: Harness, tmp_path: object) -> None:
    await local.run("pwd")
    assert local.log().strip().endswith(f"{attempt()}/work")
    await local.run("pwd", task=1, working_dir=str(tmp_path))
    assert local.log(attempt(1)).strip() == str(tmp_path)


async def test_a_working_folder_that_cannot_be_entered_ends_the_task_with_126(local: Harness) -> None:
    assert (await local.run("true", working_dir="/no/such/folder")).code == 126
    assert "/no/such/folder" in local.log()


async def test_a_repeated_start_changes_nothing(local: Harness) -> None:
    task = launch("sh", "-c", "echo once")
    await local.engine.start(task)
    await local.engine.start(task)
    await local.exited(task.attempt)
    await local.engine.start(task)
    assert local.log() == "once\n"
    assert local.count(Started, task.attempt) == local.count(Exited, task.attempt) == 1


async def test_a_forgotten_attempt_leaves_its_log_and_nothing_else(local: Harness) -> None:
    await local.run("echo", "kept")
    await local.engine.forget([attempt(), attempt(9)])
    assert local.engine.attempts() == frozenset()
    assert os.listdir(local.folder / "engine" / "attempts") == []
    assert local.log() == "kept\n"


async def test_a_running_attempt_cannot_be_forgotten(local: Harness) -> None:
    await local.engine.start(launch("sleep", "1000"))
    with pytest.raises(Conflict, match="still runs"):
        await local.engine.forget([attempt()])
    await local.engine.stop(attempt(), grace_seconds=0)
    assert (await local.exited(attempt())).signal in (9, 15)


async def test_a_node_of_another_engine_is_refused(local: Harness) -> None:
    with pytest.raises(InvalidInput, match="presents no node"):
        await local.engine.start(launch("true", node="yarn/node1"))


async def test_a_command_too_long_for_the_system_ends_for_good(local: Harness) -> None:
    end = await local.run("echo", "x" * 4_000_000)
    assert (end.code, end.reason) == (-200, "the command and its environment are too long to start")


async def test_many_tasks_at_once_all_end_with_their_own_codes(local: Harness) -> None:
    for index in range(100):
        await local.engine.start(launch("sh", "-c", f"exit {index}", task=index))
    ends = [await local.exited(attempt(index)) for index in range(100)]
    assert [end.code for end in ends] == list(range(100))
    assert not [pid for index in range(100) for pid in of_attempt(attempt(index))]
