"""The packages of haproxy for hosts of our own, from the mirror of this machine's apt; fetched once into the cache."""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

_PACKAGES: Final = ("haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1")
"""haproxy, and what the root lacks of what it depends on."""
_GUARD: Final = 600
"""Seconds against hanging."""


def with_balancer(folder: Path, given: Path) -> Path:
    """The given bundle with haproxy's packages, in the folder."""
    whole = folder / given.name
    for part in given.iterdir():
        (whole / part.name).mkdir(parents=True)
        more = packages() if part.name == "packages" else ()
        for file in (*part.iterdir(), *more):
            (whole / part.name / file.name).symlink_to(file)
    return whole


def packages() -> list[Path]:
    """The .deb files, complete or missing."""
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    cache = Path(os.environ.get("CORRAL_CACHE") or Path.home() / ".cache" / "corral") / "hosts"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"balancer-{release}"
    with open(cache / "balancer.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            scratch = Path(tempfile.mkdtemp(prefix=".balancer-", dir=cache))
            try:
                words = ("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *_PACKAGES)
                subprocess.run(words, cwd=scratch, check=True, timeout=_GUARD, stdout=subprocess.DEVNULL)
                scratch.chmod(0o755)
                scratch.rename(folder)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    return sorted(folder.glob("*.deb"))
