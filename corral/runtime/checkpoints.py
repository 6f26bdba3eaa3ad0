"""Why: whoever saved its work has less to lose, and yields before others; so somebody must notice that work was saved.

The job names a file or folder that changes with every checkpoint; it is looked at while the command runs, and what
changed is told to the server once it has been still for a while. So no program has to know of Corral.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from itertools import islice
from typing import TYPE_CHECKING

from corral.runtime.peers import Api, Refused

if TYPE_CHECKING:
    import threading

LOOK_SECONDS = 0.5
STILL_SECONDS = 1.0
"""What has not changed for so long is whole."""
APART_SECONDS = 5.0
"""At most one checkpoint is told in so many seconds; the server keeps no more."""
VARIABLE = "CORRAL_CHECKPOINT"
"""Where the command finds the path."""
_MOST_ENTRIES = 10_000
_MOST_TRIES = 5


def newest(path: str) -> int | None:
    """When a file, or a folder or anything directly in it, changed last, in nanoseconds; None when nothing is there."""
    try:
        found = os.stat(path)
        if not stat.S_ISDIR(found.st_mode):
            return found.st_mtime_ns
        with os.scandir(path) as entries:
            inside = [entry.stat(follow_symlinks=False).st_mtime_ns for entry in islice(entries, _MOST_ENTRIES)]
    except OSError:  # nothing is there yet, or something was renamed while we looked
        return None
    return max([found.st_mtime_ns, *inside])


class Checkpoints:
    """Tells the server of every checkpoint: `look` again and again, with a time that only runs forwards."""

    def __init__(self, api: Api, attempt: str, path: str) -> None:
        """What is at `path` now was there before, and is no news."""
        self._api = api
        self._attempt = attempt
        self._path = path
        self._told = self._seen = newest(path)
        self._since = 0.0
        self._next = 0.0
        self._tries = 0
        self.over = False
        """Whether there is no use in looking on."""

    def look(self, now: float) -> None:
        """Look once; a change is told when it is `STILL_SECONDS` old, and `APART_SECONDS` after the one before."""
        changed = newest(self._path)
        if changed != self._seen:
            self._seen, self._since = changed, now
        if changed is None or changed == self._told or now < max(self._since + STILL_SECONDS, self._next):
            return
        self._next = now + APART_SECONDS
        body = {"attempt": self._attempt, "ageSeconds": min(86_400.0, now - self._since)}
        try:
            self._api.call("POST", "/api/v3/runtime/checkpoint", body)
            self._told, self._tries = changed, 0
        except Refused as error:
            self._complain(error)
            self.over = True
        except OSError as error:
            self._tries += 1
            if self._tries == _MOST_TRIES:
                self._complain(error)

    def _complain(self, error: Exception) -> None:
        print(f"corral: a checkpoint could not be reported: {error}", file=sys.stderr, flush=True)


def watch(checkpoints: Checkpoints, stop: threading.Event) -> None:
    """Look until there is no use in it, or `stop` is set."""
    while not checkpoints.over and not stop.wait(LOOK_SECONDS):
        checkpoints.look(time.monotonic())
