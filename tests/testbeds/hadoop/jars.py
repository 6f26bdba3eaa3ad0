"""Hadoop's jars from Maven, because no package registry has Hadoop's release archive.

They are kept in the test cache under a hash of `pom.xml`, complete or missing.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.testbeds.hadoop import classes

_POM: Final = Path(__file__).resolve().parent / "pom.xml"
_OPENED: Final = ("java.lang", "java.io", "java.util", "java.net")
"""Packages of Java 17 whose internals Hadoop accesses."""
_SECONDS: Final = 900


def missing() -> str:
    """The missing programs for Hadoop, "" when all are installed."""
    needs = {"default-jre-headless": shutil.which("java"), "maven": shutil.which("mvn") or _folder().is_dir()}
    absent = [package for package, found in needs.items() if not found]
    return f"the Debian packages {' and '.join(absent)} are not installed" if absent else ""


def command(main: str, configuration: Path, *words: str, heap: str = "256m") -> Sequence[str]:
    """The command of one of Hadoop's programs: its main class, the folder of its XML files, its own arguments."""
    return ["java", *options(main, heap), "-cp", class_path(configuration), main, *words]


def options(program: str, heap: str = "256m") -> Sequence[str]:
    """Java's options for one of Hadoop's programs."""
    return [f"-Xmx{heap}", "-XX:TieredStopAtLevel=1", *classes.options(folder(), program), *opened()]


def class_path(*folders: str | Path) -> str:
    """All jars, then these folders: an archive of classes serves only a path that begins with its jars."""
    return ":".join(map(str, (classes.path_of(folder()), *folders)))


def opened() -> Sequence[str]:
    """The words that let Hadoop access internals of Java 17."""
    return [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED]


def folder() -> Path:
    """The folder of all jars; filled if it is missing."""
    jars = _folder()
    if jars.is_dir():
        return jars
    jars.parent.mkdir(parents=True, exist_ok=True)
    with open(jars.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jars.is_dir():
            print("fetching Hadoop's jars (about half a minute)", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory(prefix=".jars-", dir=jars.parent) as scratch:
                _fetch(Path(scratch))
                (Path(scratch) / "jars").rename(jars)
    return jars


def _fetch(scratch: Path) -> None:
    shutil.copy(_POM, scratch)
    words = ["nice", "-n", "15", "mvn", "--batch-mode", "--quiet", "dependency:copy-dependencies"]
    done = subprocess.run(
        [*words, "-DoutputDirectory=jars"], cwd=scratch, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"Maven could not fetch Hadoop's jars:\n{done.stdout[-4000:]}{done.stderr[-1000:]}")


def _folder() -> Path:
    cache = Path(os.environ.get("CORRAL_CACHE") or Path.home() / ".cache" / "corral")
    return cache / "hadoop" / f"jars-{hashlib.sha256(_POM.read_bytes()).hexdigest()[:16]}"
