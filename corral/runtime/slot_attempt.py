"""One attempt of a task in a slot: its folder, its processes, its log, and its end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from corral.runtime.attempt_processes import GUARDED, MARKER, end_processes_of, kill_processes_of
from corral.runtime.peers import Refused
from corral.runtime.slot_calls import SlotCalls

_PIECE = 256 * 1024
_LOOK_SECONDS = 0.1
_LAUNCH_FAILED = 126
_LONGEST_REASON = 1000
_KEPT = ("PATH", "HOME", "USER", "LANG", "JAVA_HOME", "HADOOP_TOKEN_FILE_LOCATION")
"""The container's variables that its attempts have: the last names YARN's tokens of the job's user."""


class Attempt:
    """One attempt. Its state only goes forward: starting, running, ended."""

    def __init__(
        self,
        order: dict[str, Any],
        folder: str,
        python: list[str],
        stage_command: list[str],
        calls: SlotCalls,
        changed: Callable[[], None],
    ) -> None:
        """`order` is the server's; `changed` is called when the state has changed."""
        self.name = order["attempt"]
        self._order, self._folder = order, folder
        self._python, self._stage_command = python, stage_command
        self._calls, self._changed = calls, changed
        self._state: dict[str, Any] = {"state": "starting", "devices": order.get("devices", [])}
        self._pid = 0
        self._stopped = 0
        self._guard = -1
        self._lock = threading.Lock()
        self.environment: dict[str, str] = {}
        self.directory = folder

    def state(self) -> dict[str, Any]:
        """Its state for the server."""
        return {**self._state, "stopping": True} if self._stopped else dict(self._state)

    def start(self) -> None:
        """Run it in a thread."""
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self, number: int, grace: float) -> None:
        """Send a signal to its processes, and kill them after the grace. Only the first call has an effect."""
        with self._lock:
            if self._stopped or self._state["state"] == "ended":
                return
            self._stopped = number or signal.SIGKILL
            if self._pid:
                self._signal(self._stopped)
        timer = threading.Timer(grace, self.kill)
        timer.daemon = True
        timer.start()

    def kill(self) -> None:
        """Kill all its processes."""
        with self._lock:
            self._stopped = self._stopped or signal.SIGKILL
            if self._pid:
                kill_processes_of(self.name)  # first: the children of a killed process belong to nobody
                self._signal(signal.SIGKILL)

    def forget(self) -> bool:
        """Remove its folder if it has ended; whether it has."""
        if self._state["state"] != "ended":
            return False
        shutil.rmtree(self._folder, ignore_errors=True)
        return True

    def _run(self) -> None:
        try:
            code, peak, reason = self._processes()
        except OSError as error:
            code, peak, reason = _LAUNCH_FAILED, 0, f"it could not be started: {error.strerror or error}"
        sizes = self._send_rest()
        number = code - 128 if 128 < code <= 192 else 0
        self._state = {
            **self._state, "state": "ended", "at": time.time(), "code": code, "signal": number,
            "reason": reason[:_LONGEST_REASON], "log_bytes": sizes, "peak_bytes": peak,
        }  # fmt: skip
        self._changed()

    def _processes(self) -> tuple[int, int, str]:
        """Run the command to its end; its exit code, the peak of its memory in bytes, and a reason."""
        os.mkdir(self._folder, 0o700)  # exclusive: an attempt that began here never begins again
        work = os.path.join(self._folder, "work")
        os.mkdir(work, 0o700)
        order = self._order
        ports = _free_ports(order.get("ports", []))
        self._state["ports"] = ports
        self.directory = os.path.normpath(os.path.join(work, order.get("directory", "")))
        self.environment = self._environment(ports)
        argv = self._command(work)
        if not order.get("plan") and not os.path.isdir(self.directory):
            raise NotADirectoryError(2, f"the working directory {self.directory} does not exist")
        with self._lock:
            if self._stopped:
                return 128 + self._stopped, 0, "it was stopped before it started"
            self._pid = self._spawn(argv)
            self._state |= {"state": "running", "at": time.time(), "pid": self._pid, "ports": ports}
        self._changed()
        ended = threading.Event()
        sender = threading.Thread(target=self._send_while, args=(ended,), daemon=True)
        sender.start()
        _, status, used = os.wait4(self._pid, 0)
        self._end_rest()
        ended.set()
        sender.join()
        code = os.waitstatus_to_exitcode(status)
        return (code if code >= 0 else 128 - code), used.ru_maxrss * 1024, ""

    def _command(self, work: str) -> list[str]:
        """The words to run: the command, or the runtime around it with its plan and private files."""
        order = self._order
        plan = order.get("plan")
        if not plan:
            return list(order["command"])
        for name, content in order.get("files", {}).items():
            path = os.path.join(self._folder, name)
            with open(path, "w", encoding="utf-8", opener=_private) as file:
                file.write(content)
            plan[f"{name}_file"] = path
        plan |= {
            "attempt": self.name, "command": order["command"], "work": work, "directory": self.directory,
            "log": self._logs()["stdout" if order.get("split") else "all"],
            "result_file": os.path.join(self._folder, "result"), "stage_command": self._stage_command,
        }  # fmt: skip
        path = os.path.join(self._folder, "plan")
        with open(path, "w", encoding="utf-8", opener=_private) as file:
            json.dump(plan, file)
        return [*self._python, "run", path]

    def _environment(self, ports: dict[str, list[int]]) -> dict[str, str]:
        base = {name: os.environ[name] for name in _KEPT if name in os.environ}
        numbers = {_port_variable(name): ",".join(map(str, each)) for name, each in ports.items()}
        return {**base, **self._order["env"], **numbers, MARKER: self.name, "CORRAL_TASK_DIR": self.directory}

    def _spawn(self, argv: list[str]) -> int:
        logs = self._logs()
        out, err = logs.get("all") or logs["stdout"], logs.get("all") or logs["stderr"]
        guard, self._guard = os.pipe()
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        actions: list[Any] = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, out, append, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2) if err == out else (os.POSIX_SPAWN_OPEN, 2, err, append, 0o600),
            (os.POSIX_SPAWN_DUP2, guard, 3),
        ]
        words = ["/bin/sh", "-c", GUARDED, self._first_directory(), *argv]
        try:
            return os.posix_spawn(
                words[0], words, self.environment, file_actions=actions, setsid=True, setsigmask=(),
                setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
            )  # fmt: skip
        finally:
            os.close(guard)

    def _first_directory(self) -> str:
        """The folder in which its first process starts; with a plan the runtime enters the job's own later."""
        return os.path.join(self._folder, "work") if self._order.get("plan") else self.directory

    def _logs(self) -> dict[str, str]:
        streams = ("stdout", "stderr") if self._order.get("split") else ("all",)
        return {stream: os.path.join(self._folder, f"log.{stream}") for stream in streams}

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._pid, number)
        except ProcessLookupError:
            pass

    def _end_rest(self) -> None:
        """Kill what the command left behind, until nothing of the attempt runs."""
        with self._lock:
            os.close(self._guard)
            pid, self._pid = self._pid, 0
        if left := end_processes_of(self.name):
            print(f"corral: {left} processes of {self.name} (session {pid}) do not end", file=sys.stderr)

    def _send_while(self, ended: threading.Event) -> None:
        """Send the log as it grows, until the attempt has ended."""
        sent = self._sent = dict.fromkeys(self._logs(), 0)
        while not ended.wait(_LOOK_SECONDS):
            for stream, path in self._logs().items():
                try:
                    sent[stream] = self._send(stream, path, sent[stream])
                except (OSError, Refused):
                    ended.wait(1.0)  # the end sends the rest

    def _send_rest(self) -> int:
        """Send all that is left of the log, however long the server is away; its size in bytes."""
        sent = getattr(self, "_sent", None) or dict.fromkeys(self._logs(), 0)
        pause = 0.2
        for stream, path in self._logs().items():
            while os.path.exists(path) and sent[stream] < os.path.getsize(path):
                try:
                    sent[stream] = self._send(stream, path, sent[stream])
                    pause = 0.2
                except Refused:
                    return sum(sent.values())
                except OSError:
                    time.sleep(pause)
                    pause = min(pause * 2, 10.0)
        return sum(sent.values())

    def _send(self, stream: str, path: str, offset: int) -> int:
        try:
            with open(path, "rb") as file:
                file.seek(offset)
                data = file.read(_PIECE)
        except FileNotFoundError:
            return offset
        return self._calls.append(self.name, stream, offset, data) if data else offset


class LostAttempt:
    """An attempt that an earlier agent began in this container. It never begins again; the server may try another."""

    def __init__(self, name: str, folder: str) -> None:
        """Kill what is left of its processes; their guard has begun to."""
        self.name, self._folder = name, folder
        self.kill()

    def state(self) -> dict[str, Any]:
        """Its state for the server."""
        return {"state": "lost"}

    def stop(self, number: int, grace: float) -> None:
        """Nothing runs that could be stopped."""

    def kill(self) -> None:
        """Kill all its processes, until none is left."""
        end_processes_of(self.name)

    def forget(self) -> bool:
        """Remove its folder."""
        shutil.rmtree(self._folder, ignore_errors=True)
        return True


def _free_ports(wanted: list[dict[str, Any]]) -> dict[str, list[int]]:
    """The ports of a task by name: of the numbers that the server offers for each the first that nobody uses here."""
    found: dict[str, list[int]] = {}
    for each in wanted:
        numbers = [number for number in each["numbers"] if _is_free(number)][: each["count"]]
        if len(numbers) < each["count"]:
            raise OSError(98, f"other programs use the ports {each['numbers'][0]} to {each['numbers'][-1]} of its node")
        found.setdefault(each["name"], []).extend(numbers)
    return found


def _is_free(number: int) -> bool:
    """Whether nothing of this machine listens at a port."""
    with socket.socket() as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind(("", number))
        except OSError:
            return False
    return True


def _port_variable(name: str) -> str:
    return "CORRAL_PORT_" + "".join(c if c.isalnum() else "_" for c in name.upper()).strip("_")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
