"""Ask the file systems of servers (NFS, Lustre, …) how full they are, without waiting for a server that does not answer.

Each is asked by a process of its own, `stat -f`. A thread would do for less, but a program with a thread that hangs in
the kernel cannot end: a server of Corral could then not be started anew.
"""

from __future__ import annotations

import logging
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from corral.model.metrics.node_families import NodeMetric
from corral.model.metrics.samples import Value
from corral.monitor.agent.machine_files import MOST_SERVERS, FileSystem, server_file_systems

_log = logging.getLogger(__name__)
LOOK_SECONDS: Final = 60.0
"""Seconds between two questions to a file system."""
PATIENCE: Final = 10.0
"""Seconds after which one that has not answered is told to hang."""
STAT: Final = ("stat", "-f", "-c", "%S %b %a", "--")
_ENV: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"}
_SAID: Final = re.compile(rb"(\d{1,20}) (\d{1,20}) (\d{1,20})\n")
"""The bytes of a block, all blocks, and those that users may still write."""
_MOST_OUTPUT: Final = 4096
_MOST_WORDS: Final = 200
_END_SECONDS: Final = 1.0
"""Seconds that an agent which ends waits for the ends of all questions that it killed."""


class _Question:
    """The questions to one file system."""

    def __init__(self, of: FileSystem) -> None:
        self._of = of
        self._process: subprocess.Popen[bytes] | None = None
        self._begun = 0.0
        self._next = -float("inf")
        self._is_asked = False
        """Whether the last question could be asked."""
        self.trouble: str | None = None
        """Why it does not say how full it is; None: it does, or has not been asked."""
        self.bytes: tuple[float, float] | None = None
        """Its size, and what users may still write to it."""

    def look(self, words: Sequence[str], now: float) -> None:
        """Take the answer, or begin the next question."""
        if self._process is None:
            if now >= self._next:
                self._ask(words, now)
            return
        if self._process.poll() is not None:
            self._answered(self._process)
            self._process = None
        elif now - self._begun >= PATIENCE:
            self._said(f"has not answered within {PATIENCE:g} s")
            self.kill()

    def _ask(self, words: Sequence[str], now: float) -> None:
        self._begun, self._next, self._is_asked = now, now + LOOK_SECONDS, True
        pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
        try:
            self._process = subprocess.Popen(
                [*words, self._of.mount], stdin=quiet, stdout=pipe, stderr=subprocess.STDOUT, cwd="/", env=_ENV
            )
        except OSError as error:
            self._said(f"cannot be asked: {words[0]}: {error.strerror}")
            self._is_asked = False

    def _answered(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with process.stdout as pipe:
            output = pipe.read(_MOST_OUTPUT)
        found = _SAID.fullmatch(output)
        if process.returncode == 0 and found is not None:
            block, blocks, left = map(int, found.groups())
            self.bytes = float(block * blocks), float(block * left)
            if self.trouble is not None:
                _log.info("the file system of a server at %s answers again", self._of.mount)
            self.trouble = None
        elif process.returncode >= 0:  # one that was killed has been told already
            words = output.decode(errors="replace")[:_MOST_WORDS]
            self._said("".join(letter if letter.isprintable() else " " for letter in words).strip() or "said nothing")

    def _said(self, trouble: str) -> None:
        if trouble != self.trouble:
            _log.warning("the file system of a server %s at %s: %s", self._of.device, self._of.mount, trouble)
        self.trouble, self.bytes = trouble, None

    def kill(self) -> None:
        """Kill an open question; a process that waits in the kernel ends when the server answers."""
        process = self._process
        if process is not None:
            process.kill()

    def end(self, seconds: float = 0.0) -> bool:
        """Kill an open question, and wait for its end for so long; whether it is over."""
        process = self._process
        if process is None:
            return True
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        if process.returncode is None:
            return False
        assert process.stdout is not None
        process.stdout.close()
        self._process = None
        return True

    def values(self, *, read_only: bool) -> Iterator[Value]:
        """Its series; none while it cannot be asked, and before its first answer."""
        if not self._is_asked or (self.trouble is None and self.bytes is None):
            return
        labels = tuple(self._of)
        yield Value(NodeMetric.FILE_SYSTEM_ERROR, labels, float(self.trouble is not None))
        yield Value(NodeMetric.FILE_SYSTEM_READ_ONLY, labels, float(read_only))
        if self.bytes is not None:
            size, left = self.bytes
            yield Value(NodeMetric.FILE_SYSTEM, labels, size)
            yield Value(NodeMetric.FILE_SYSTEM_AVAILABLE, labels, left)


class ServerFileSystems:
    """All file systems of servers that are mounted on this machine. A call never waits for one."""

    def __init__(self, words: Sequence[str] = STAT, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._words, self._monotonic = words, monotonic
        self._questions: dict[FileSystem, _Question] = {}
        self._left: list[_Question] = []
        """Questions to file systems that are unmounted, whose processes have not ended."""
        self._lock = threading.Lock()
        """Held by the one round, and by `close`, which another thread may call meanwhile."""
        self._closed = False

    def values(self, mounts: str) -> list[Value]:
        """Return the series of the last answers, of the file systems in a text like `/proc/mounts`; none once closed."""
        with self._lock:
            return [] if self._closed else self._values(mounts)

    def _values(self, mounts: str) -> list[Value]:
        now, mounted = self._monotonic(), server_file_systems(mounts)
        for gone in self._questions.keys() - mounted.keys():
            self._left.append(self._questions.pop(gone))
        self._left = [each for each in self._left if not each.end()]
        found: list[Value] = []
        for each, read_only in mounted.items():
            if self._closed:
                break
            question = self._questions.get(each)
            if question is None:
                if len(self._questions) + len(self._left) >= MOST_SERVERS:
                    continue
                question = self._questions[each] = _Question(each)
            question.look(self._words, now)
            found += question.values(read_only=read_only)
        return found

    def close(self) -> None:
        """End all questions that can be ended, and wait for them for a second in all. None is asked after that."""
        self._closed = True
        until = self._monotonic() + _END_SECONDS
        is_ours = self._lock.acquire(timeout=_END_SECONDS)
        try:
            asked = (*self._questions.values(), *self._left)
            for each in asked:
                each.kill()
            for each in asked:
                each.end(max(0.0, until - self._monotonic()))
        finally:
            if is_ours:
                self._lock.release()
