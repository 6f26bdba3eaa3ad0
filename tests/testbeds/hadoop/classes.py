"""An archive of Hadoop's classes, from which its programs start with less processor time.

Java verifies and parses some ten thousand classes for each daemon and each service master. Class data sharing (JEP 310)
maps them from a file instead. A program whose class path does not begin with the archive's jar starts without it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PATH: Final = "corral-class-path.jar"
_OPTIONS: Final = ("-XX:+UseSerialGC", "-Xlog:cds=off")
"""The collector must be the one that the archive was made with; without the archive Java warns on its output."""
_LIST: Final = "CORRAL_CLASS_LIST"
"""The environment variable with the folder in which started programs list their classes; unset: they do not."""
_SECONDS: Final = 600


def path_of(jars: Path) -> Path:
    """The jar whose manifest names all jars of a folder; it is made if it is missing.

    Java expands a `*` in the order of the folder, and YARN takes no `*` in a master's options.
    """
    path = jars / _PATH
    if not path.exists():
        names = sorted(each.name for each in jars.glob("*.jar") if each.name != _PATH)
        with tempfile.NamedTemporaryFile(dir=jars, delete=False) as file:
            with zipfile.ZipFile(file, "w") as jar:
                jar.writestr("META-INF/MANIFEST.MF", _manifest(" ".join(names)))
        Path(file.name).chmod(0o644)
        Path(file.name).replace(path)
    return path


def options(jars: Path, program: str) -> Sequence[str]:
    """Java's options to start a program from the archive, or to list the program's classes while it is being made."""
    if folder := os.environ.get(_LIST):
        number = len(list(Path(folder).iterdir()))
        listed = Path(folder) / f"{program}-{number}"
        listed.touch()
        return [*_OPTIONS, "-Xshare:off", f"-XX:DumpLoadedClassList={listed}"]
    return [*_OPTIONS, f"-XX:SharedArchiveFile={_archive(jars)}"] if _archive(jars).exists() else [*_OPTIONS]


def exists(jars: Path) -> bool:
    """Whether this Java's archive of the jars has been made."""
    return _archive(jars).exists()


@contextmanager
def made_from_what_starts(jars: Path) -> Iterator[None]:
    """Make the archive from the classes of all programs that are started within. Raises RuntimeError if Java cannot."""
    with tempfile.TemporaryDirectory(prefix="corral-classes-") as folder:
        os.environ[_LIST] = folder
        try:
            yield
        finally:
            del os.environ[_LIST]
        lines = (line for each in sorted(Path(folder).iterdir()) for line in each.read_text().splitlines())
        listed, scratch = Path(folder) / "all", Path(folder) / "archive"
        listed.write_text("\n".join(dict.fromkeys(lines)) + "\n")
        words = ["-Xshare:dump", f"-XX:SharedClassListFile={listed}", f"-XX:SharedArchiveFile={scratch}"]
        done = subprocess.run(
            ["java", *_OPTIONS, *words, "-cp", str(path_of(jars))],
            capture_output=True, text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
        if done.returncode != 0 or not scratch.exists():
            raise RuntimeError(f"Java could not archive Hadoop's classes:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        beside = _archive(jars).with_suffix(f".{os.getpid()}")
        shutil.copyfile(scratch, beside)
        beside.replace(_archive(jars))


def _archive(jars: Path) -> Path:
    """The archive of the installed Java, which can read no other one's."""
    java = Path(shutil.which("java") or "java").resolve()
    build = java.parent.parent / "release"
    key = hashlib.sha256(str(java).encode() + (build.read_bytes() if build.exists() else b"")).hexdigest()[:16]
    return jars / f"corral-classes-{key}.jsa"


def _manifest(class_path: str) -> str:
    """A manifest with a class path; its lines have at most 72 bytes, and those that go on begin with a blank."""
    whole = f"Class-Path: {class_path}"
    pieces = [whole[:70], *(f" {whole[at : at + 69]}" for at in range(70, len(whole), 69))]
    return "Manifest-Version: 1.0\r\n" + "\r\n".join(pieces) + "\r\n"
