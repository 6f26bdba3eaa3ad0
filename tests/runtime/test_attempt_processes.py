"""What an attempt in a slot started ends with it, also what hides its marker and its session as sshd does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.runtime.attempt_processes import GUARDED, MARKER, end_processes_of, kill_processes_of, processes_of
from corral.runtime.process import start_time

ATTEMPT = "1m8dmrjgw9g0r.0.main.0.0"
HIDING = """
sleep 1000 &
echo $! >>pids
env -i /bin/sh -c 'echo $$ >>pids; setsid /bin/sh -c "echo \\$\\$ >>pids; sleep 1000"; :' &
until [ "$(wc -l <pids)" = 3 ]; do sleep 0.02; done
touch ready
"""
"""One process with the marker, one without, and a child of the latter in a session of its own."""


class Begun:
    """A command in a session of its own, beside its guard."""

    def __init__(self, folder: Path, command: str) -> None:
        self._folder = folder
        reads, self._agent = os.pipe()
        words = ["/bin/sh", "-c", GUARDED, str(folder), "/bin/sh", "-c", command]
        environment = {"PATH": os.environ["PATH"], MARKER: ATTEMPT}
        actions = [(os.POSIX_SPAWN_DUP2, reads, 3)]
        self.pid = os.posix_spawn(words[0], words, environment, file_actions=actions, setsid=True)
        os.close(reads)

    def wait_until_ready(self) -> list[int]:
        """The pids that the command has written."""
        while not (self._folder / "ready").exists():
            time.sleep(0.02)
        return [int(line) for line in (self._folder / "pids").read_text().split()]

    def lose_agent(self) -> None:
        """Close the agent's end of the pipe, as its death would."""
        os.close(self._agent)
        self._agent = -1

    def close(self) -> None:
        end_processes_of(ATTEMPT)
        os.waitpid(self.pid, 0)
        if self._agent >= 0:
            os.close(self._agent)


@pytest.fixture
def lasting(tmp_path: Path) -> Iterator[Begun]:
    begun = Begun(tmp_path, HIDING + "sleep 1000")
    yield begun
    begun.close()


def test_the_guard_ends_them_when_the_agent_is_gone(lasting: Begun) -> None:
    pids = lasting.wait_until_ready()
    lasting.lose_agent()
    while any(start_time(pid) >= 0 for pid in (*pids, lasting.pid)):
        time.sleep(0.02)


def test_they_are_found_and_killed(lasting: Begun) -> None:
    pids = lasting.wait_until_ready()
    assert {*pids, lasting.pid} <= processes_of(ATTEMPT)
    kill_processes_of(ATTEMPT)
    assert end_processes_of(ATTEMPT) == 0
    assert all(start_time(pid) < 0 for pid in (*pids, lasting.pid))


def test_they_end_after_a_command_that_left_them_behind(tmp_path: Path) -> None:
    begun = Begun(tmp_path, HIDING)
    pids = begun.wait_until_ready()
    os.waitid(os.P_PID, begun.pid, os.WEXITED | os.WNOWAIT)
    assert any(start_time(pid) >= 0 for pid in pids)
    begun.close()
    assert all(start_time(pid) < 0 for pid in pids)


def test_who_shares_the_session_of_this_process_is_no_part_of_the_attempt(tmp_path: Path) -> None:
    """The agent starts a session's command in its own session, before the command leaves that."""
    code = (
        "import os, subprocess\n"
        "from corral.runtime.attempt_processes import processes_of\n"
        "os.setsid()\n"
        "other = subprocess.Popen(['sleep', '1000'])\n"
        f"marked = subprocess.Popen(['sleep', '1000'], env={{**os.environ, {MARKER!r}: {ATTEMPT!r}}})\n"
        f"while not (found := processes_of({ATTEMPT!r})): pass\n"
        "other.kill(); marked.kill()\n"
        "assert found == {marked.pid}, (found, other.pid, marked.pid)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=250)


def test_a_stopped_process_is_killed_too(lasting: Begun) -> None:
    first, *_ = lasting.wait_until_ready()
    os.kill(first, signal.SIGSTOP)
    lasting.lose_agent()
    while start_time(first) >= 0:
        time.sleep(0.02)
