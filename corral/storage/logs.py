"""Why: tasks append to plain files that outlive everything, and readers see bytes the moment they are written."""

from __future__ import annotations

import os
from pathlib import Path

from corral.kernel.ids import AttemptId

STREAMS = ("all", "stdout", "stderr")


class LogStore:
    """The logs of all attempts under one folder: `JOB/REST-OF-ATTEMPT.STREAM`, one file a stream.

    An attempt writes either `all` (both streams into one file, in the order of writing) or, when its job asked to keep
    them apart, `stdout` and `stderr`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def open(self) -> None:
        """Make the folder.

        Raises OSError when it cannot be made.
        """
        self.root.mkdir(parents=True, exist_ok=True, mode=0o711)

    def prepare(self, attempt: AttemptId, *, split: bool = False) -> tuple[str, str]:
        """The files that an attempt's standard output and error go to, their folder made."""
        job, _, rest = attempt.partition(".")
        folder = f"{self.root}/{job}"
        try:
            os.mkdir(folder, 0o711)
        except FileExistsError:
            pass
        if split:
            return f"{folder}/{rest}.stdout", f"{folder}/{rest}.stderr"
        return f"{folder}/{rest}.all", f"{folder}/{rest}.all"

    def size(self, attempt: AttemptId) -> int:
        """Bytes that all streams of an attempt hold; 0 when there are none."""
        job, _, rest = attempt.partition(".")
        total = 0
        for stream in STREAMS:
            try:
                total += os.stat(f"{self.root}/{job}/{rest}.{stream}").st_size
            except FileNotFoundError:
                continue
        return total
