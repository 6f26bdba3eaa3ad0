"""Check the resources of a server process: disk space and inodes of the data folder, file descriptors."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from pathlib import Path
from typing import Final

from corral.kernel.errors import Unavailable
from corral.store.database_errors import FULL, NO_DESCRIPTORS

FEW_DESCRIPTORS: Final = 32
"""With fewer free descriptors, a process will soon open no file and accept no connection."""
_FEW_INODES: Final = 64
_MOST_DESCRIPTORS: Final = 65_536
_PROBE_BYTES: Final = 64 * 1024
"""Bytes that test for free space; more than a file system may have left in a file's last block."""


def shortages(folder: Path, who: str) -> list[str]:
    """One sentence for each resource that this process, called `who`, lacks; a small file is written to find out."""
    return [*disk_shortages(folder), *descriptor_shortages(who)]


def raise_descriptor_limit() -> int:
    """Raise the soft limit on open files to the hard limit (65,536 at most), and return it."""
    soft, hard = (
        _MOST_DESCRIPTORS if limit == resource.RLIM_INFINITY else limit
        for limit in resource.getrlimit(resource.RLIMIT_NOFILE)
    )
    most = min(hard, _MOST_DESCRIPTORS)
    if soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    return max(soft, most)


def descriptor_shortages(who: str) -> list[str]:
    """A sentence if this process has fewer than `FEW_DESCRIPTORS` file descriptors left, else nothing."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    try:
        used = len(os.listdir("/proc/self/fd"))
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            return []
        used = limit
    if limit - used >= FEW_DESCRIPTORS:
        return []
    left = max(0, limit - used)
    return [f"The {who} has {left} of {limit} file descriptors left; raise its limit (ulimit -n) and restart it."]


def descriptors_of(pid: int) -> tuple[int, int]:
    """The open descriptors of another process of this user, and their limit.

    Raises OSError when it is gone or another user's.
    """
    used = len(os.listdir(f"/proc/{pid}/fd"))
    return used, resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]


def disk_shortages(folder: Path) -> list[str]:
    """Sentences that say why a small file cannot be written in the data folder, or that few inodes are left."""
    probe = folder / "run" / f".space.{os.getpid()}"
    try:
        try:
            handle = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                written = os.write(handle, bytes(_PROBE_BYTES))
                if written < _PROBE_BYTES:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fdatasync(handle)
            finally:
                os.close(handle)
        finally:
            with contextlib.suppress(OSError):
                probe.unlink()
    except OSError as error:
        return [_why_unwritable(folder, error)]
    return few_inodes(folder)


def refusal_of(error: OSError, folder: Path | None) -> Unavailable | None:
    """The error for a caller whose call failed for lack of descriptors, space or inodes; None for any other fault."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return Unavailable("no-descriptors", NO_DESCRIPTORS, retry_after=5)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        message = _why_unwritable(folder, error) if folder is not None else FULL
        return Unavailable("storage-full", message, retry_after=30)
    return None


def few_inodes(folder: Path) -> list[str]:
    """A sentence if the data folder's disk has fewer than 64 free inodes, else nothing."""
    found = os.statvfs(folder)
    if not found.f_files or found.f_favail >= _FEW_INODES:  # some file systems count no inodes
        return []
    return [f"The disk that holds Corral's data has {found.f_favail} inodes left; remove unneeded files."]


def _why_unwritable(folder: Path, error: OSError) -> str:
    if error.errno == errno.EMFILE:
        return "No file descriptor is left to look at the data folder; raise the limit (ulimit -n)."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        with contextlib.suppress(OSError):
            if few := few_inodes(folder):
                return few[0]
        return "The disk that holds Corral's data is full; free some space."
    return f"The data folder cannot be written ({error.strerror}); look at its disk."
