"""Debian's Prometheus and its promtool, unpacked once into the test cache and not installed."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

_SECONDS: Final = 300
_PROGRAMS: Final = ("prometheus", "promtool")


def missing() -> str:
    """Why the programs cannot be had, "" if they can."""
    if _found() or all(map(shutil.which, ("apt-get", "dpkg-deb"))):
        return ""
    return "only Debian's apt-get brings Prometheus"


def program(name: str) -> Path:
    """The path of `prometheus` or `promtool`; fetched at the first call on a machine.

    Raises RuntimeError with apt's complaint when it cannot be fetched.
    """
    cache = _cache()
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _found():
            with tempfile.TemporaryDirectory(prefix=".new-", dir=cache) as scratch:
                _fetch(Path(scratch))
    return cache / name


def _fetch(scratch: Path) -> None:
    for refresh in (False, True):
        if refresh:
            _run(scratch, "apt-get", "update", "-qq")
        try:
            _run(scratch, "apt-get", "download", "-qq", "prometheus")
            break
        except RuntimeError:
            if refresh:
                raise
    (package,) = scratch.glob("*.deb")
    _run(scratch, "dpkg-deb", "-x", str(package), "tree")
    for name in _PROGRAMS:
        (scratch / "tree/usr/bin" / name).rename(_cache() / name)


def _run(folder: Path, *words: str) -> None:
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        words,
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout[-2000:]}")


def _found() -> bool:
    return all((_cache() / name).is_file() for name in _PROGRAMS)


def _cache() -> Path:
    return Path(os.environ.get("CORRAL_CACHE") or Path.home() / ".cache" / "corral") / "prometheus"


if __name__ == "__main__":
    if not missing():
        program("prometheus")
