"""Run a rendered gang as plain processes on this machine, with references completed as the runtime does.

Placement, restarts and logs are tested elsewhere. These tests ask whether the real library understands the rendered
command and environment.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from corral.frameworks import Gang, TaskCommand, framework
from corral.frameworks.references import RUNTIME
from corral.runtime import agent
from tests.reserved import free_port
from tests.waiting import pause

_PEER = re.compile(r"\$\(peer:([a-z0-9-]+-\d+):(?:(host)|port:([a-z0-9-]+))\)")
_SECRET = re.compile(r"\$\(secret:([a-z-]+)\)")


@dataclass
class LocalGang:
    """The tasks of one gang as processes; each task's addresses are chosen once."""

    folder: Path
    bin: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _ports: dict[tuple[str, str], int] = field(default_factory=dict)

    def start(self, gang: Gang, *names: str) -> None:
        """Start the named tasks, or all."""
        kind = framework(gang.job.spec.job_type)
        rendered = {str(task.key): kind.render(gang, task) for task in gang.tasks}
        for name in names or rendered:
            self._spawn(name, rendered[name])

    def _spawn(self, name: str, task: TaskCommand) -> None:
        command = [self._complete(word) for word in task.command]
        if command[0] == RUNTIME:
            command[:1] = [sys.executable, agent.__file__]
        work = self.folder / f"work-{name}"
        work.mkdir(exist_ok=True)
        path = os.environ["PATH"] if self.bin is None else f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        env = {"PATH": path, "HOME": str(self.folder), "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
        env |= {key: self._complete(value) for key, value in task.env.items()} | dict(self.env)
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(
                command, cwd=work, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )

    def port(self, name: str, port: str) -> int:
        """A port of a task, chosen on first use."""
        key = (name, port)
        if key not in self._ports:
            self._ports[key] = free_port()
        return self._ports[key]

    def _complete(self, text: str) -> str:
        text = _PEER.sub(lambda m: "127.0.0.1" if m[2] else str(self.port(m[1], m[3])), text)
        return _SECRET.sub(lambda m: f"test-secret-{m[1]}", text)

    def log(self, name: str) -> str:
        """All output of a task."""
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def wait(self, *names: str, seconds: float = 400) -> dict[str, int]:
        """Wait for tasks to end; returns their exit codes. The limit only guards against a hang."""
        deadline = time.monotonic() + seconds
        codes = {}
        for name in names or self.processes:
            try:
                codes[name] = self.processes[name].wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise AssertionError(f"{name} did not end; its log:\n{self.log(name)[-4000:]}") from None
        return codes

    def wait_for(self, name: str, text: str, seconds: float = 400) -> str:
        """Wait until a task's log matches a pattern; returns the match."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = re.search(text, self.log(name))
            if found:
                return found[0]
            if self.processes[name].poll() is not None:
                raise AssertionError(f"{name} ended before {text!r}; its log:\n{self.log(name)[-4000:]}")
            time.sleep(0.05)
        raise AssertionError(f"no {text!r} in the log of {name}:\n{self.log(name)[-4000:]}")

    def wait_for_port(self, name: str, port: str, seconds: float = 400) -> None:
        """Wait until a task accepts connections at one of its ports."""
        begun = time.monotonic()
        while time.monotonic() < begun + seconds:
            with contextlib.suppress(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", self.port(name, port)), timeout=60).close()
                return
            if self.processes[name].poll() is not None:
                raise AssertionError(f"{name} ended before it listened; its log:\n{self.log(name)[-4000:]}")
            time.sleep(pause(begun))
        raise AssertionError(f"{name} does not listen for {port!r}:\n{self.log(name)[-4000:]}")

    def terminate(self, name: str) -> None:
        """Send SIGTERM to a task's process group, as an engine does."""
        os.killpg(self.processes[name].pid, signal.SIGTERM)

    def end(self) -> None:
        """Kill all remaining processes, also descendants in groups of their own."""
        for process in self.processes.values():
            for pid in reversed(_descendants(process.pid)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()


def _descendants(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *(found for child in children for found in _descendants(int(child)))]


@contextlib.contextmanager
def local_gang(folder: Path, bin: Path | None = None, env: Mapping[str, str] | None = None) -> Iterator[LocalGang]:
    """A gang whose processes are all gone afterwards."""
    gang = LocalGang(folder, bin, env or {})
    try:
        yield gang
    except BaseException:
        for name in gang.processes:
            print(f"--- log of {name}\n{gang.log(name)[-6000:]}")
        raise
    finally:
        gang.end()
