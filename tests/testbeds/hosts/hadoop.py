"""A bundle of Hadoop for hosts of our own: Maven's jars in the layout of a release, and Debian's Java; made once."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.testbeds.hadoop import jars
from tests.testbeds.hosts import roots

VERSION: Final = "3.4.2"
_PACKAGES: Final = ("default-jre-headless", "python3")
_FORM: Final = 1
"""Counts the changes of what is made below, so that each makes a new bundle."""
_PARTS: Final = {
    "hadoop-common-": "common",
    "hadoop-hdfs-": "hdfs",
    "hadoop-yarn-server-timelineservice-": "yarn/timelineservice",
    "hadoop-yarn-": "yarn",
    "hadoop-mapreduce-": "mapreduce",
}
"""The folders of a release that have Hadoop's own jars, by the beginnings of their names; the others are in common/lib."""
_GUARD: Final = 600
"""Seconds against hanging."""


def missing() -> str:
    """What a bundle lacks on this machine, "" when nothing."""
    curl = "" if shutil.which("curl") else "the Debian package curl is not installed"
    return roots.missing() or jars.missing() or curl


def bundle() -> Path:
    """The bundle's folder, complete or missing."""
    source = jars.folder()
    pins = hashlib.sha256(repr((source.name, str(roots.root()), _PACKAGES, _FORM)).encode()).hexdigest()
    folder = roots.root().parent.parent / f"hadoop-{pins[:16]}"
    with open(folder.parent / "hadoop.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            scratch = Path(tempfile.mkdtemp(prefix=".hadoop-", dir=folder.parent))
            try:
                _pack(source, scratch)
                _download(scratch / "packages")
                scratch.chmod(0o755)
                scratch.rename(folder)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    return folder


def _pack(source: Path, folder: Path) -> None:
    """Pack the jars as a release has them; its folder of jars is removed again."""
    release = folder / f"hadoop-{VERSION}"
    for jar in source.glob("hadoop-*.jar"):
        _copy(jar, release / "share/hadoop" / _part_of(jar.name))
    for jar in source.glob("*.jar"):
        if _part_of(jar.name) == "common/lib" and not jar.name.startswith("corral-"):
            _copy(jar, release / "share/hadoop/common/lib")
    (folder / "hadoop").mkdir()
    archive = folder / "hadoop" / f"{release.name}.tar.gz"
    # Jars are compressed already.
    words = ["tar", "--owner=0", "--group=0", "-C", str(folder), "-I", "gzip -1", "-cf", str(archive), release.name]
    subprocess.run(words, check=True, timeout=_GUARD)
    shutil.rmtree(release)


def _part_of(name: str) -> str:
    return next((part for prefix, part in _PARTS.items() if name.startswith(prefix)), "common/lib")


def _copy(jar: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(jar, folder)


def _download(folder: Path) -> None:
    """Fetch what the root lacks of Java and Python, from the mirror of this machine's apt."""
    (folder / "partial").mkdir(parents=True)
    options = (
        "Debug::NoLocking=1", f"Dir::State::status={roots.root()}/var/lib/dpkg/status", f"Dir::Cache::archives={folder}",
        "APT::Sandbox::User=root",
    )  # fmt: skip
    chosen = [word for option in options for word in ("-o", option)]
    words = ["apt-get", "-q", *chosen, "-y", "--no-install-recommends", "--download-only", "install", *_PACKAGES]
    subprocess.run(words, check=True, timeout=_GUARD, stdout=subprocess.DEVNULL)
    shutil.rmtree(folder / "partial")
    (folder / "lock").unlink(missing_ok=True)
