"""Packages of haproxy and of docker-registry for hosts of our own, from this machine's mirror of apt; fetched once."""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_BALANCER: Final = ("haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1")
"""haproxy, and what the root lacks of what it depends on."""
_REGISTRY: Final = ("docker-registry",)
"""The root has what it depends on."""
_GUARD: Final = 600
"""Seconds against hanging."""


def with_balancer(folder: Path, given: Path) -> Path:
    """The given bundle with haproxy's packages, in the folder."""
    return _with(folder, given, packages("balancer", _BALANCER))


def with_registry(folder: Path, given: Path) -> Path:
    """The given bundle with docker-registry's package, in the folder."""
    return _with(folder, given, registry())


def registry() -> list[Path]:
    """The package of docker-registry."""
    return packages("registry", _REGISTRY)


def _with(folder: Path, given: Path, packages: Sequence[Path]) -> Path:
    whole = folder / given.name
    for part in given.iterdir():
        (whole / part.name).mkdir(parents=True)
        for file in (*part.iterdir(), *(packages if part.name == "packages" else ())):
            (whole / part.name / file.name).symlink_to(file)
    return whole


def packages(kind: str, names: Sequence[str]) -> list[Path]:
    """The .deb files, complete or missing."""
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    cache = Path(os.environ.get("CORRAL_CACHE") or Path.home() / ".cache" / "corral") / "hosts"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"{kind}-{release}"
    with open(cache / f"{kind}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            scratch = Path(tempfile.mkdtemp(prefix=f".{kind}-", dir=cache))
            try:
                words = ("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *names)
                subprocess.run(words, cwd=scratch, check=True, timeout=_GUARD, stdout=subprocess.DEVNULL)
                scratch.chmod(0o755)
                scratch.rename(folder)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    return sorted(folder.glob("*.deb"))
