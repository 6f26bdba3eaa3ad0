"""The bundles of gangs that hung: a file for each, readable by the server's user alone, with a quota and an age.

A stack, a log and a flight recorder's dump can hold secrets, so a bundle is only for those who may enter the job's tasks.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from corral.kernel.errors import NotFound
from corral.kernel.ids import JobId

QUOTA: Final = 1024**3
"""Bytes of all bundles; the oldest are removed beyond."""
MOST_SECONDS: Final = 30 * 86_400.0
MOST_BYTES: Final = 32 * 1024**2
"""Bytes of the files of one bundle before they are compressed."""
LEFT_OUT: Final = "left-out.txt"
_NAME: Final = re.compile(r"[0-9]{8}-[0-9]{6}")
_ENDING: Final = ".tar.gz"


class _Kept(NamedTuple):
    path: Path
    size: int
    at: float


class Bundles:
    """The bundles in one folder: `JOB/NAME.tar.gz`."""

    def __init__(self, folder: Path, quota: int = QUOTA, most_seconds: float = MOST_SECONDS) -> None:
        self._folder, self._quota, self._most_seconds = folder, quota, most_seconds

    def keep(self, job: JobId, name: str, files: Mapping[str, bytes], now: float) -> int:
        """Keep a bundle and return its size; then those beyond the quota and the age go. Raises OSError."""
        data = _packed(files, now)
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        folder = self._folder / job
        folder.mkdir(mode=0o700, exist_ok=True)
        part = folder / f"{name}.part"
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with open(handle, "wb") as file:
                file.write(data)
            os.replace(part, folder / f"{name}{_ENDING}")
        finally:
            part.unlink(missing_ok=True)
        self.clear(now, f"{job}/{name}")
        return len(data)

    def read(self, job: str, name: str) -> bytes:
        """The bytes of a bundle. Raises NotFound `no-such-bundle`."""
        if re.fullmatch(r"[a-z0-9]{1,64}", job) and _NAME.fullmatch(name):
            with contextlib.suppress(OSError):
                return (self._folder / job / f"{name}{_ENDING}").read_bytes()
        message = (
            "This bundle is not there: it was removed for its age or the quota, or it is on another server's disk."
        )
        raise NotFound("no-such-bundle", message)

    def forget(self, job: JobId) -> None:
        """Remove the bundles of a job that is gone."""
        shutil.rmtree(self._folder / job, ignore_errors=True)

    def clear(self, now: float, newest: str = "") -> None:
        """Remove what is too old, and the oldest beyond the quota; `newest` stays."""
        room = self._quota
        for each in sorted(self._kept(), key=lambda each: each.at, reverse=True):
            room -= each.size
            stays = str(each.path.relative_to(self._folder)) == f"{newest}{_ENDING}"
            if not stays and (room < 0 or now - each.at > self._most_seconds):
                with contextlib.suppress(OSError):
                    each.path.unlink()
                    each.path.parent.rmdir()  # if it was the last one of its job

    def _kept(self) -> list[_Kept]:
        found = []
        for path in self._folder.glob(f"*/*{_ENDING}"):
            with contextlib.suppress(OSError):
                status = path.stat()
                found.append(_Kept(path, status.st_size, status.st_mtime))
        return found


def _packed(files: Mapping[str, bytes], now: float) -> bytes:
    """The files as a tar.gz; those beyond MOST_BYTES are left out and named in a file of their own."""
    packed, left, left_out = io.BytesIO(), MOST_BYTES, []
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=6) as archive:

        def add(name: str, data: bytes) -> None:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(data), int(now), 0o600
            archive.addfile(entry, io.BytesIO(data))

        for name, data in files.items():
            if len(data) > left:
                left_out.append(name)
                continue
            left -= len(data)
            add(name, data)
        if left_out:
            add(LEFT_OUT, "".join(f"{name}\n" for name in left_out).encode())
    return packed.getvalue()
