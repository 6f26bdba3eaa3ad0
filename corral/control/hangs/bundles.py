"""The bundles of gangs that hung: a file for each, with a quota and an age.

A stack, a log and a flight recorder's dump can hold secrets, so a bundle is only for those who may enter the job's tasks.
On the disk the server's user alone can read it. Where servers share a folder, each bundle is there too, so that the one
that leads next has it; other users cannot enter that folder on a disk or in HDFS, and a bucket has its own rules.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import re
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from corral.kernel.errors import NotFound, Unavailable
from corral.kernel.ids import JobId

if TYPE_CHECKING:
    from corral.storage.remote_folder import RemoteFolder  # its library is loaded only where there is a remote folder

log = structlog.get_logger()

QUOTA: Final = 1024**3
"""Bytes of all bundles; the oldest are removed beyond."""
MOST_SECONDS: Final = 30 * 86_400.0
MOST_BYTES: Final = 32 * 1024**2
"""Bytes of the files of one bundle before they are compressed."""
_MOST_PACKED: Final = MOST_BYTES + 4 * 1024**2
"""Bytes of a bundle: what cannot be compressed has the headers of the archive beside it."""
_SHARE_SECONDS: Final = 60.0
"""Seconds in which the shared folder must have taken a bundle."""
_CLEAR_SECONDS: Final = 600.0
"""Seconds in which old bundles must have been removed from the shared folder."""
_MOST_GONE: Final = 10_000
"""Removed jobs whose bundles are still to be removed from the shared folder; those of others go by their age."""
LEFT_OUT: Final = "left-out.txt"
_JOB: Final = re.compile(r"[a-z0-9]{1,64}")
_NAME: Final = re.compile(r"[0-9]{8}-[0-9]{6}")
_ENDING: Final = ".tar.gz"


class _Kept(NamedTuple):
    job: str
    name: str
    size: int
    at: float


class Bundles:
    """The bundles in one folder, `JOB/NAME.tar.gz`, and in the folder that servers share, `JOB.NAME.tar.gz`."""

    def __init__(
        self,
        folder: Path,
        quota: int = QUOTA,
        most_seconds: float = MOST_SECONDS,
        shared: RemoteFolder | None = None,
    ) -> None:
        self._folder, self._quota, self._most_seconds, self._shared = folder, quota, most_seconds, shared
        self._gone: set[str] = set()
        """Jobs that are gone, whose bundles in the shared folder are still to be removed."""
        self._there: set[str] | None = None
        """Jobs of which the shared folder has bundles; None before it was first listed."""
        self._closed = False
        """Whether the shared folder was closed to other users."""

    async def keep(self, job: JobId, name: str, files: Mapping[str, bytes], now: float) -> int:
        """Keep a bundle on this disk and return its size; then those beyond the quota and the age go. Raises OSError."""
        return await asyncio.to_thread(self._keep, job, name, files, now)

    async def share(self, job: JobId, name: str) -> None:
        """Put a bundle that was kept into the shared folder; where that fails, it is logged."""
        if self._shared is None:
            return
        try:
            async with asyncio.timeout(_SHARE_SECONDS):
                if not self._closed:
                    await self._shared.close_to_others()
                    self._closed = True
                if self._there is not None:
                    self._there.add(job)
                await self._shared.put(_shared_name(job, name), self._path(job, name))
        except (Unavailable, TimeoutError) as error:
            why = _why(error, _SHARE_SECONDS)
            log.warning("the bundle of a job that hangs is on this server alone", job=job, error=why)

    async def drop(self, job: JobId, name: str) -> None:
        """Remove a bundle that was kept and is told to nobody; "" is none."""
        if name:
            await asyncio.to_thread(self._remove, job, name)

    async def read(self, job: str, name: str) -> bytes:
        """The bytes of a bundle. Raises NotFound `no-such-bundle`, Unavailable."""
        if _JOB.fullmatch(job) and _NAME.fullmatch(name):
            path = self._path(job, name)
            with contextlib.suppress(OSError):
                return await asyncio.to_thread(path.read_bytes)
            if self._shared is not None:
                with contextlib.suppress(NotFound):
                    return await self._shared.read(_shared_name(job, name), 0, _MOST_PACKED)
        message = (
            "This bundle is not there: it was removed for its age or the quota, or it is on another server's disk."
        )
        raise NotFound("no-such-bundle", message)

    def forget(self, job: JobId) -> None:
        """Remove the bundles of a job that is gone; those in the shared folder go when it is next cleared."""
        folder = self._folder / job
        known = folder.exists() or self._there is None or job in self._there
        shutil.rmtree(folder, ignore_errors=True)
        if self._shared is not None and known and len(self._gone) < _MOST_GONE:
            self._gone.add(job)

    async def clear(self, now: float) -> None:
        """Remove what is too old, and the oldest beyond the quota, here and in the shared folder."""
        await asyncio.to_thread(self._clear, now)
        if self._shared is None:
            return
        gone = frozenset(self._gone)
        try:
            async with asyncio.timeout(_CLEAR_SECONDS):
                kept = list(_shared_kept(await self._shared.files()))
                self._there = {each.job for each in kept}
                excess = list(self._excess(kept, now))
                for each in dict.fromkeys([*excess, *(each for each in kept if each.job in gone)]):
                    await self._shared.remove(_shared_name(each.job, each.name))
        except (Unavailable, TimeoutError) as error:
            log.warning("old bundles of jobs that hung could not be removed", error=_why(error, _CLEAR_SECONDS))
            return
        self._gone -= gone

    def _keep(self, job: JobId, name: str, files: Mapping[str, bytes], now: float) -> int:
        data = _packed(files, now)
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        folder = self._folder / job
        folder.mkdir(mode=0o700, exist_ok=True)
        part = folder / f"{name}.part"
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with open(handle, "wb") as file:
                file.write(data)
            os.replace(part, self._path(job, name))
        finally:
            part.unlink(missing_ok=True)
        self._clear(now, (job, name))
        return len(data)

    def _clear(self, now: float, newest: tuple[str, str] = ("", "")) -> None:
        """Remove from this disk what is too old, and the oldest beyond the quota; `newest` stays."""
        for each in self._excess(self._kept(), now):
            if (each.job, each.name) != newest:
                self._remove(each.job, each.name)

    def _remove(self, job: str, name: str) -> None:
        path = self._path(job, name)
        with contextlib.suppress(OSError):
            path.unlink()
            path.parent.rmdir()  # if it was the last one of its job

    def _excess(self, kept: Iterable[_Kept], now: float) -> Iterator[_Kept]:
        """The bundles that are too old, and the oldest beyond the quota."""
        room = self._quota
        for each in sorted(kept, key=lambda each: each.at, reverse=True):
            room -= each.size
            if room < 0 or now - each.at > self._most_seconds:
                yield each

    def _kept(self) -> list[_Kept]:
        found = []
        for path in self._folder.glob(f"*/*{_ENDING}"):
            with contextlib.suppress(OSError):
                status = path.stat()
                found.append(_Kept(path.parent.name, path.name[: -len(_ENDING)], status.st_size, status.st_mtime))
        return found

    def _path(self, job: str, name: str) -> Path:
        return self._folder / job / f"{name}{_ENDING}"


def _why(error: Unavailable | TimeoutError, seconds: float) -> str:
    return (
        error.message if isinstance(error, Unavailable) else f"The shared folder did not answer within {seconds:g} s."
    )


def _shared_name(job: str, name: str) -> str:
    return f"{job}.{name}{_ENDING}"


def _shared_kept(files: Mapping[str, int]) -> Iterator[_Kept]:
    """The bundles among the files of the shared folder; their names tell when they were made."""
    for file, size in files.items():
        job, _, name = file.removesuffix(_ENDING).partition(".")
        if file.endswith(_ENDING) and _JOB.fullmatch(job) and _NAME.fullmatch(name):
            with contextlib.suppress(ValueError):
                at = datetime.strptime(name, "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp()
                yield _Kept(job, name, size, at)


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
