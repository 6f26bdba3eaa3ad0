"""Follow the event files of a remote folder: a program of Corral's copies what is new, and the copies are read."""

from __future__ import annotations

import atexit
import math
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence

from corral.runtime.event_folder import Allowance, EventFolder, Point

APART_SECONDS = 60.0
"""Seconds between two copies."""
COPY_SECONDS = 60.0
"""The longest that one copy may take."""
SHARE = 0.02
"""The part of a core that copies may take."""
FULL_CODE = 3
"""The exit code of the program for a folder of which nothing more is copied."""
_LONGEST_TROUBLE = 300


class RemoteEvents:
    """The event files at a URI; `close` removes the copies."""

    def __init__(
        self,
        command: Sequence[str],
        uri: str,
        oldest_seconds: float,
        within: str,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """`command` copies for the runtime (`corral.storage`), with the variables `env` (None: those of this process).

        Files that have not changed for `oldest_seconds` are not begun. The copies are in a new folder in `within`, which
        belongs to the user whose rights this thread has now. Raises OSError.
        """
        self._command, self._uri, self._oldest, self._env = list(command), uri, int(oldest_seconds), env
        os.makedirs(within, exist_ok=True)
        self._folder = tempfile.mkdtemp(prefix="events-", dir=within)
        self._copies = EventFolder(self._folder)
        self._next = -math.inf
        self.trouble = ""
        """What was wrong with the last copy."""
        self.full = ""
        """What is said where nothing more is copied."""
        self._copying: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)  # the end of a task does not wait for a store that hangs

    @property
    def left_out(self) -> int:
        """Scalars that were left out since their tag is one too many."""
        return self._copies.left_out

    def look(self, since: float, allowance: Allowance) -> list[Point]:
        """Return what was written since the last copy; a copy is made once in `APART_SECONDS`, or less often."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + max(APART_SECONDS, self._copy() / SHARE)
        return self._copies.look(since, allowance)

    def hurry(self) -> None:
        """Have the next look copy, whatever the time."""
        self._next = -math.inf

    def broken(self) -> list[str]:
        """What is wrong with copies of which nothing more is read."""
        return self._copies.broken()

    def close(self) -> None:
        """Remove the copies."""
        if self._copying is not None:
            self._copying.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
        atexit.unregister(self.close)

    def _copy(self) -> float:
        """Copy what is new; the processor time that it took."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        words = [*self._command, "--events", str(self._oldest), self._uri, self._folder]
        try:
            self._copying = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=self._env
            )
            with self._copying as copying:
                try:
                    _, said = copying.communicate(timeout=COPY_SECONDS)
                except subprocess.TimeoutExpired:
                    copying.kill()
                    said = f"{self._uri} was not read within {COPY_SECONDS:.0f} seconds.".encode()
            last = said.decode("utf-8", "replace").strip().rpartition("\n")[2].removeprefix("corral: ")
            last = last[:_LONGEST_TROUBLE]
            self.full = last if copying.returncode == FULL_CODE else self.full
            self.trouble = last if copying.returncode not in (0, FULL_CODE) else ""
        except OSError as error:
            self.trouble = f"{self._uri} cannot be read: {error.strerror}."
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
