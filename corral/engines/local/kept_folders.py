"""Working folders that outlive attempts: each task of a notebook finds its own again, until its job is over."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from corral.kernel.ids import JobId, parse_attempt_id
from corral.model.launch import TaskLaunch

_log = logging.getLogger(__name__)


class KeptFolders:
    """The folders `JOB.ROLE-INDEX` below one folder of the engine."""

    def __init__(self, root: Path, trash: str, sweep: Callable[[], None]) -> None:
        """`sweep` has the folder `trash` emptied soon."""
        self._root, self._trash, self._sweep = root / "kept", trash, sweep

    def path_of(self, launch: TaskLaunch) -> str:
        """Return the folder of a task; "" if none is kept for it.

        Raises OSError.
        """
        if not launch.keeps_work:
            return ""
        self._root.mkdir(mode=0o711, exist_ok=True)
        key = parse_attempt_id(launch.attempt)
        return str(self._root / f"{key.job}.{key.role}-{key.index}")

    def job_over(self, job: JobId) -> None:
        """Drop the folders of a job that is over."""
        self._drop(lambda owner: owner == job)

    def live_jobs(self, jobs: frozenset[JobId]) -> None:
        """Drop the folders of all other jobs."""
        self._drop(lambda owner: owner not in jobs)

    def _drop(self, is_over: Callable[[str], bool]) -> None:
        try:
            names = os.listdir(self._root)
        except FileNotFoundError:
            return
        over = [name for name in names if is_over(name.partition(".")[0])]
        for name in over:
            with contextlib.suppress(FileNotFoundError):
                os.rename(self._root / name, f"{self._trash}/{name}.{secrets.token_hex(4)}")
        if over:
            self._sweep()
