"""Full and read-only disks: small file systems of the test's own, which only root can mount."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """A folder on a file system of `megabytes` MB; skips where mounting is not allowed."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system: run this test as root")
    folder = Path(tempfile.mkdtemp(prefix="corral-d-"))
    done = _run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "tmpfs", str(folder))
    if done.returncode != 0:
        folder.rmdir()
        pytest.skip(f"this machine does not let root mount a file system: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        _run("umount", "-l", str(folder))
        folder.rmdir()


def set_writable(folder: Path, writable: bool) -> None:
    """Remount it, read-only or writable."""
    done = _run("mount", "-o", f"remount,{'rw' if writable else 'ro'}", str(folder))
    assert done.returncode == 0, done.stderr


def bound_inodes(folder: Path, free: int) -> None:
    """Leave room for only `free` more files."""
    found = os.statvfs(folder)
    done = _run("mount", "-o", f"remount,nr_inodes={found.f_files - found.f_ffree + free}", str(folder))
    assert done.returncode == 0, done.stderr


def fill(folder: Path) -> Path:
    """Use all the free space; returns the file to delete afterwards."""
    ballast = folder / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (1024 * 1024, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"\0" * size)
    return ballast


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)
