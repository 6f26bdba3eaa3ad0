"""Start, watch and end the programs of the testbed by their own pids, with their output in files."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.waiting import pause

FEW_COLLECTIONS: Final = {"GOGC": "400", "GOMEMLIMIT": "1500MiB"}
"""Go collects garbage less often, which spares an apiserver a fifth of its processor time for twice the memory."""


def answers(url: str, expected: str) -> bool:
    """Whether a plain HTTP server answers `url` with a text that contains `expected`."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        with urllib.request.urlopen(url, timeout=5) as answer:
            return expected in answer.read().decode(errors="replace")
    return False


class Daemon:
    """One program with a log file. It ends with the process that started it, however that ends."""

    def __init__(
        self, name: str, command: Sequence[str | Path], home: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._command = ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)]
        self._env = {**os.environ, **FEW_COLLECTIONS, **(env or {})}
        self._home = home
        self._log = home / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The running program's pid."""
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the program runs."""
        return self._process is not None and self._process.poll() is None

    def start(self, ready: Callable[[], bool], *, seconds: float = 150) -> float:
        """Start the program unless it runs, and wait until `ready` is true; returns the seconds."""
        begun = time.monotonic()
        if not self.running:
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._env, cwd=self._home,
                    start_new_session=True,
                )  # fmt: skip
        while not ready():
            if not self.running:
                raise RuntimeError(f"{self.name} ended at start:\n{self.tail()}")
            if time.monotonic() - begun > seconds:
                self.kill()
                raise RuntimeError(f"{self.name} was not ready after {seconds:.0f} s:\n{self.tail()}")
            time.sleep(pause(begun, most=0.2))
        return time.monotonic() - begun

    def stop(self, *, seconds: float = 20) -> None:
        """Ask the program to end, and kill it after `seconds`."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
        self.kill()

    def kill(self) -> None:
        """Kill the program at once, as a crash would."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def tail(self, characters: int = 4000) -> str:
        """The end of the program's output."""
        return self._log.read_text(errors="replace")[-characters:] if self._log.exists() else ""
