"""Watch a job's checkpoint path and report new checkpoints to the server.

A job that saved its work recently loses less when it is preempted, so it is preempted before others. The job names a
file or folder that changes with every checkpoint. It is checked while the command runs, and a change is reported once
it has been stable for a while, so the program needs no knowledge of Corral.
"""

from __future__ import annotations

import os
import stat
import time
from itertools import islice
from typing import TYPE_CHECKING

from corral.runtime.server_report import ServerReport

if TYPE_CHECKING:
    import threading

    from corral.runtime.peers import Api

LOOK_SECONDS = 0.5
STILL_SECONDS = 1.0
"""Seconds without a change after which a checkpoint is complete."""
APART_SECONDS = 5.0
"""The least seconds between two reports; the server keeps only the latest anyway."""
VARIABLE = "CORRAL_CHECKPOINT"
"""The environment variable with the path, for the command."""
_MOST_ENTRIES = 10_000


def newest(path: str) -> int | None:
    """The latest change of a file, or of a folder and its direct entries, in nanoseconds; None if it does not exist."""
    try:
        found = os.stat(path)
        if not stat.S_ISDIR(found.st_mode):
            return found.st_mtime_ns
        with os.scandir(path) as entries:
            inside = [entry.stat(follow_symlinks=False).st_mtime_ns for entry in islice(entries, _MOST_ENTRIES)]
    except OSError:  # it does not exist yet, or an entry was renamed meanwhile
        return None
    return max([found.st_mtime_ns, *inside])


class Checkpoints:
    """Reports every checkpoint to the server; call `look` repeatedly, with a monotonic time."""

    def __init__(self, api: Api, attempt: str, path: str) -> None:
        """Take the present state of `path` as already reported."""
        self._report = ServerReport(api, "/api/v3/runtime/checkpoint", "a checkpoint")
        self._attempt = attempt
        self._path = path
        self._told = self._seen = newest(path)
        self._since = 0.0
        self._next = 0.0

    def look(self, now: float) -> None:
        """Check once; report a change that is `STILL_SECONDS` old, `APART_SECONDS` after the previous report."""
        changed = newest(self._path)
        if changed != self._seen:
            self._seen, self._since = changed, now
        if changed is None or changed == self._told or now < max(self._since + STILL_SECONDS, self._next):
            return
        self._next = now + APART_SECONDS
        if self._report.send({"attempt": self._attempt}, now - self._since):
            self._told = changed

    @property
    def over(self) -> bool:
        """Whether further checks are useless, because the server refused a report."""
        return self._report.over


def watch(checkpoints: Checkpoints, stop: threading.Event) -> None:
    """Check every `LOOK_SECONDS` until a report is refused or `stop` is set."""
    while not checkpoints.over and not stop.wait(LOOK_SECONDS):
        checkpoints.look(time.monotonic())
