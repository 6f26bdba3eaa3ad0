"""The launch agent: a launcher in one task starts commands in the others; callers without the job's secret are refused."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest

from corral.runtime import agent
from corral.runtime.agent_channel import BrokenChannel, Channel, accept, connect
from corral.runtime.process import start_time
from tests.reserved import free_port

pytestmark = pytest.mark.processes
_ANSWERS_TERM = """
import signal, sys

def asked(*_):
    print("asked", flush=True)
    sys.exit(9)

signal.signal(signal.SIGTERM, asked)
open("ready", "w").close()
while True:
    signal.pause()
"""
"""A launcher without children: a shell's child that is terminated before its exec would live on, with our pipe."""


class Agents:
    """Agents of one job as processes, each in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: dict[str, subprocess.Popen[str]] = {}
        self.port = free_port()

    def start(self, mode: str, name: str, *rest: str, secret: str = "s3cret", **env: str) -> None:
        work = self.folder / name
        work.mkdir()
        known = {"CORRAL_AGENT_HOST": "127.0.0.1", "CORRAL_AGENT_PORT": str(self.port), "CORRAL_AGENT_SECRET": secret}
        self.running[name] = subprocess.Popen(
            [sys.executable, agent.__file__, mode, f"--name={name}", "--slots=1", *rest],
            cwd=work,
            env={"PATH": os.environ["PATH"]} | known | env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def lead(self, script: str, *options: str, **env: str) -> None:
        self.start("lead", "worker-0", *options, "--", "sh", "-c", script, **env)

    def line(self, name: str) -> str:
        output = self.running[name].stdout
        assert output is not None
        return output.readline()

    def finish(self, name: str) -> tuple[int, str]:
        output, _ = self.running[name].communicate(timeout=250)
        return self.running[name].returncode, output


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Agents]:
    made = Agents(tmp_path)
    yield made
    _kill([process.pid for process in made.running.values() if process.poll() is None])
    for process in made.running.values():
        process.communicate()


def test_each_command_has_a_folder_of_its_own_for_the_files_of_open_mpi(agents: Agents) -> None:
    """Otherwise daemons of one job on one machine would make the same folder at once, and one of them would fail."""
    for name in ("worker-1", "worker-2"):
        agents.start("join", name)
    asked = "ssh {} 'ls -d \"$OMPI_MCA_orte_tmpdir_base\"'"
    agents.lead("; ".join(asked.format(name) for name in ("worker-1", "worker-2")), "--wait-for=3")
    assert agents.finish("worker-0") == (0, "")
    folders = [agents.finish(name)[1].strip() for name in ("worker-1", "worker-2")]
    assert all(folders) and len(set(folders)) == 2
    assert not any(Path(folder).exists() for folder in folders)


def test_a_command_runs_in_the_task_it_names_with_that_tasks_environment_and_folder(agents: Agents) -> None:
    agents.start("join", "worker-1", COLOUR="green")
    agents.lead('ssh -o Check=no -p 22 worker-1 echo "\\$COLOUR" in "\\$CORRAL_TASK_DIR"', "--wait-for=2", COLOUR="red")
    assert agents.finish("worker-0") == (0, "")
    assert agents.finish("worker-1") == (0, f"green in {agents.folder / 'worker-1'}\n")


def test_options_of_ssh_may_stand_behind_the_host(agents: Agents) -> None:
    agents.lead("ssh -o A=no worker-0 -p 22 -o ConnectTimeout=10 echo -n here", "--wait-for=1")
    assert agents.finish("worker-0") == (0, "here")


def test_the_leading_task_is_a_host_like_the_others(agents: Agents) -> None:
    agents.lead("rsh worker-0 echo here; rsh worker-0 exit 7", "--wait-for=1")
    assert agents.finish("worker-0") == (7, "here\n")


def test_exit_codes_come_back_and_the_launchers_is_the_tasks(agents: Agents) -> None:
    agents.start("join", "worker-1")
    agents.lead("ssh worker-1 exit 5; echo $?; ssh worker-1 'kill -9 $$'; echo $?; exit 3", "--wait-for=2")
    assert agents.finish("worker-0") == (3, "5\n137\n")
    assert agents.finish("worker-1")[0] == 0


def test_an_unknown_host_answers_as_ssh_does(agents: Agents) -> None:
    agents.lead("ssh worker-9 true", "--wait-for=1")
    assert agents.finish("worker-0") == (255, "corral agent: no task worker-9 has joined\n")


def test_hosts_are_listed_in_rank_order_with_their_slots(agents: Agents) -> None:
    agents.start("join", "worker-1")
    agents.start("join", "worker-2")
    script = 'cat "$CORRAL_AGENT_DIR/hostfile"; "$CORRAL_AGENT_DIR/hosts" | sort'
    agents.lead(script, "--wait-for=3", CORRAL_AGENT_ORDER="worker-0,worker-2,worker-1")
    expected = "worker-0 slots=1\nworker-2 slots=1\nworker-1 slots=1\nworker-0:1\nworker-1:1\nworker-2:1\n"
    assert agents.finish("worker-0") == (0, expected)


def test_a_member_that_leaves_is_no_host_any_more_and_its_command_is_lost(agents: Agents) -> None:
    agents.start("join", "worker-1")
    agents.lead('ssh worker-1 sleep 600; echo $?; "$CORRAL_AGENT_DIR/hosts"', "--wait-for=2")
    pid = _child_running(agents.running["worker-1"].pid, "sleep")
    agents.running["worker-1"].send_signal(signal.SIGTERM)
    assert agents.finish("worker-1")[0] == 143
    assert agents.finish("worker-0") == (0, "255\nworker-0:1\n")
    assert start_time(pid) == -1


_BOTH = 'until [ "$("$CORRAL_AGENT_DIR/hosts" | wc -l)" = 2 ]; do sleep 0.1; done'
_ALONE = 'until [ "$("$CORRAL_AGENT_DIR/hosts")" = worker-0:1 ]; do sleep 0.1; done'


def test_a_member_that_leaves_softly_is_no_host_while_its_command_ends_by_itself(agents: Agents) -> None:
    agents.start("join", "worker-1", "--leave-seconds=600")
    waits = "'touch here; until [ -e ../worker-0/left ]; do sleep 0.1; done; exit 4'"
    agents.lead(f"{_BOTH}; (ssh worker-1 {waits}; echo $?) & {_ALONE}; touch left; wait", "--wait-for=1")
    _until(lambda: (agents.folder / "worker-1" / "here").exists())
    agents.running["worker-1"].send_signal(signal.SIGTERM)
    assert agents.finish("worker-1")[0] == 143
    assert agents.finish("worker-0") == (0, "4\n")


def test_a_member_that_leaves_softly_ends_at_the_second_signal(agents: Agents) -> None:
    agents.start("join", "worker-1", "--leave-seconds=600")
    agents.lead(f"{_BOTH}; (ssh worker-1 sleep 600; echo $?) & {_ALONE}; echo left; wait", "--wait-for=1")
    pid = _child_running(agents.running["worker-1"].pid, "sleep")
    agents.running["worker-1"].send_signal(signal.SIGTERM)
    assert agents.line("worker-0") == "left\n"
    assert start_time(pid) != -1
    agents.running["worker-1"].send_signal(signal.SIGTERM)
    assert agents.finish("worker-1")[0] == 143
    assert agents.finish("worker-0") == (0, "255\n")
    assert start_time(pid) == -1


def test_a_member_whose_time_to_leave_is_over_ends_its_commands(agents: Agents) -> None:
    agents.start("join", "worker-1", "--leave-seconds=0.5")
    agents.lead(f"{_BOTH}; ssh worker-1 sleep 600", "--wait-for=1")
    pid = _child_running(agents.running["worker-1"].pid, "sleep")
    agents.running["worker-1"].send_signal(signal.SIGTERM)
    assert agents.finish("worker-1")[0] == 143
    assert start_time(pid) == -1


def test_a_member_without_which_too_few_are_left_ends_at_once(agents: Agents) -> None:
    agents.start("join", "worker-1", "--leave-seconds=600")
    agents.lead("ssh worker-1 sleep 600; echo $?", "--wait-for=2")
    pid = _child_running(agents.running["worker-1"].pid, "sleep")
    agents.running["worker-1"].send_signal(signal.SIGTERM)
    assert agents.finish("worker-1")[0] == 143
    assert agents.finish("worker-0") == (0, "255\n")
    assert start_time(pid) == -1


def test_a_task_whose_command_failed_is_a_new_host_to_the_launcher(agents: Agents) -> None:
    agents.start("join", "worker-1")
    listed = '"$CORRAL_AGENT_DIR/hosts"'
    agents.lead(f"ssh worker-1 true; {listed}; ssh worker-1 exit 3; {listed}; ssh worker-1.1 echo here", "--wait-for=2")
    assert agents.finish("worker-0") == (0, "worker-0:1\nworker-1:1\nworker-0:1\nworker-1.1:1\n")
    assert agents.finish("worker-1") == (0, "here\n")


def test_a_launcher_without_any_process_is_ended_once_all_tasks_are_there(agents: Agents) -> None:
    agents.start("join", "worker-1")
    # Ten seconds, as several may pass between two commands on a busy machine.
    agents.lead("ssh worker-1 sleep 11; ssh worker-1 echo done; sleep 600", "--wait-for=2", "--idle-seconds=10")
    assert agents.finish("worker-0") == (1, "corral agent: no process has run for 10 s; sh is ended\n")
    assert agents.finish("worker-1") == (0, "done\n")


def test_a_launcher_that_waits_for_a_lost_task_is_not_ended(agents: Agents) -> None:
    agents.start("join", "worker-1")
    agents.lead("ssh worker-1 sleep 600; echo $?; sleep 17; echo waited", "--wait-for=2", "--idle-seconds=15")
    pid = _child_running(agents.running["worker-1"].pid, "sleep")
    agents.running["worker-1"].kill()
    os.kill(pid, signal.SIGKILL)  # it would outlive its agent, with our pipe
    assert agents.finish("worker-0") == (0, "255\nwaited\n")


def test_a_stand_in_that_is_killed_takes_its_command_with_it(agents: Agents) -> None:
    agents.start("join", "worker-1")
    agents.lead("ssh worker-1 sleep 600 & sleep 600 & wait $!", "--wait-for=2")
    pid = _child_running(agents.running["worker-1"].pid, "sleep")
    stand_in = _child_running(agents.running["worker-0"].pid, "remote")
    os.kill(stand_in, signal.SIGKILL)
    _until(lambda: start_time(pid) == -1)


def test_the_end_of_the_task_is_passed_to_the_launcher_once(agents: Agents) -> None:
    agents.lead(f"exec {shlex.quote(sys.executable)} -c {shlex.quote(_ANSWERS_TERM)}", "--wait-for=1")
    _until(lambda: (agents.folder / "worker-0" / "ready").exists())
    agents.running["worker-0"].send_signal(signal.SIGTERM)
    assert agents.finish("worker-0") == (9, "asked\n")


def test_members_wait_for_a_leader_that_comes_later_and_for_one_that_comes_again(agents: Agents) -> None:
    agents.start("join", "worker-1")
    agents.start("lead", "first", "--wait-for=2", "--", "sh", "-c", "echo >up; sleep 600")
    _until(lambda: (agents.folder / "first" / "up").exists())
    launcher = _child_running(agents.running["first"].pid, "sleep")
    agents.running["first"].kill()
    os.kill(launcher, signal.SIGKILL)
    agents.lead("ssh worker-1 echo again", "--wait-for=2")
    assert agents.finish("worker-0") == (0, "")
    assert agents.finish("worker-1") == (0, "again\n")


def test_a_bare_launcher_sees_neither_the_tasks_own_variables_nor_the_secret(agents: Agents) -> None:
    agents.lead("env", "--wait-for=1", "--bare", API_KEY="hidden", HOROVOD_LOG_LEVEL="debug", CORRAL_RANK="0")
    code, output = agents.finish("worker-0")
    names = {line.partition("=")[0] for line in output.splitlines()}
    assert code == 0
    assert {"PATH", "HOROVOD_LOG_LEVEL", "CORRAL_AGENT_DIR", "CORRAL_AGENT_INTERFACE"} <= names
    assert not {"API_KEY", "CORRAL_RANK", "CORRAL_AGENT_SECRET"} & names


def test_the_secret_is_not_in_the_environment_of_what_agents_start(agents: Agents) -> None:
    agents.start("join", "worker-1")
    agents.lead("env; ssh worker-1 env", "--wait-for=2")
    assert "s3cret" not in agents.finish("worker-0")[1] + agents.finish("worker-1")[1]


def test_a_launcher_that_is_not_there_is_said_so(agents: Agents) -> None:
    agents.start("lead", "worker-0", "--wait-for=1", "--", "no-such-launcher")
    assert agents.finish("worker-0") == (
        127,
        "corral agent: cannot start no-such-launcher: No such file or directory\n",
    )


async def _pair(stack: AsyncExitStack, leader_secret: str, member_secret: str) -> tuple[Channel, Channel, int]:
    accepted: asyncio.Future[Channel] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            accepted.set_result(await accept(reader, writer, leader_secret))
        except BrokenChannel as error:
            accepted.set_exception(error)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    stack.callback(server.close)
    port = server.sockets[0].getsockname()[1]
    results = await asyncio.gather(connect("127.0.0.1", port, member_secret), accepted, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
        stack.callback(result.close)
    return results[0], results[1], port


async def test_both_sides_must_know_the_secret() -> None:
    async with AsyncExitStack() as stack:
        with pytest.raises(BrokenChannel):
            await _pair(stack, "right", "wrong")


async def test_messages_pass_in_order_and_a_repeated_or_forged_line_ends_the_channel() -> None:
    async with AsyncExitStack() as stack:
        member, leader, _ = await _pair(stack, "same", "same")
        await member.send({"n": 1})
        await member.send({"n": 2})
        assert [(await leader.receive())["n"], (await leader.receive())["n"]] == [1, 2]
        member._sent -= 1  # a replay of the last line
        await member.send({"n": 2})
        with pytest.raises(BrokenChannel, match="wrong signature"):
            await leader.receive()


async def test_noise_and_silence_are_refused() -> None:
    async with AsyncExitStack() as stack:
        _, _, port = await _pair(stack, "same", "same")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"nonce\nnot a signature {}\n")
        await reader.readline()
        await reader.readline()
        assert await reader.read() == b""
        writer.close()


def _child_running(pid: int, word: str) -> int:
    """The first descendant whose command line contains `word`, once there is one."""
    found: list[int] = []

    def look() -> bool:
        found[:] = [child for child in _descendants(pid) if word in _command_line(child)]
        return bool(found)

    _until(look)
    return found[-1]


def _kill(pids: list[int]) -> None:
    """Kill processes with their descendants. All are stopped first: a child made meanwhile would keep the output open."""
    stopped: set[int] = set()
    while new := {each for pid in pids for each in (pid, *_descendants(pid))} - stopped:
        for each in new:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGSTOP)
        stopped |= new
    for each in stopped:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def _descendants(pid: int) -> list[int]:
    try:
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return children + [below for child in children for below in _descendants(child)]


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def _until(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + 150
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
