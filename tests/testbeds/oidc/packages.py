"""The provider's npm packages, as its lock file pins them, in the test cache: complete or missing."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).resolve().parent
_LOCK: Final = _HERE / "package-lock.json"
_SECONDS: Final = 300


def missing() -> str:
    """The missing programs for the provider, "" when all are installed."""
    needs = {"nodejs": shutil.which("node"), "npm": shutil.which("npm") or _folder().is_dir()}
    absent = [package for package, found in needs.items() if not found]
    return f"the Debian packages {' and '.join(absent)} are not installed" if absent else ""


def folder() -> Path:
    """The folder of the provider's script with its packages; filled if it is missing."""
    kept = _folder()
    if kept.is_dir():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    with open(kept.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.is_dir():
            print("installing the OpenID provider (a few seconds)", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory(prefix=".provider-", dir=kept.parent) as scratch:
                made = Path(scratch) / "made"
                _install(made)
                made.rename(kept)
    return kept


def main() -> None:
    """Install the packages that the cache lacks."""
    if reason := missing():
        print(f"{reason}: the tests with a real OpenID provider will skip", file=sys.stderr)
    else:
        folder()


def _install(place: Path) -> None:
    place.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(_HERE / name, place)
    words = ["nice", "-n", "15", "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"npm could not install the provider:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def _folder() -> Path:
    cache = Path(os.environ.get("CORRAL_CACHE") or Path.home() / ".cache" / "corral")
    return cache / "oidc" / f"provider-{hashlib.sha256(_LOCK.read_bytes()).hexdigest()[:16]}"
