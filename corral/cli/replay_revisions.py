"""Run two versions of Corral over one journal, each in a process that imports that version alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import TYPE_CHECKING, Final

from corral.kernel.errors import InvalidInput
from corral.spec.errors import shorten

if TYPE_CHECKING:
    from corral.control.journal.comparison import Compared

_MOST_BYTES: Final = 1 << 30
"""The most bytes of a version's files."""
_REPLAYED: Final = frozenset({0, 1})
"""The exit codes of a replay that went through."""


def compared(journal: Path, good: str, bad: str) -> Compared:
    """Replay a journal by two versions, and find the first step that decides otherwise.

    Raises InvalidInput for a version that is not there, or that cannot replay it.
    """
    from corral.control.journal.blocks import BlockReader
    from corral.control.journal.comparison import compare

    with TemporaryDirectory(prefix="corral-bisect-") as name:
        folder = Path(name).resolve()
        versions = [(ref, version_at(ref, folder / f"version{at}")) for at, ref in enumerate((good, bad))]
        first, second = record(versions, journal, folder)
        with first.open("rb") as one, second.open("rb") as other:
            return compare(BlockReader(one), BlockReader(other))


def version_at(ref: str, folder: Path) -> Path:
    """Return a folder that has the package `corral` of a folder, a wheel or a git revision, or an environment with it.

    `folder` is filled for a wheel and a revision. Raises InvalidInput for what is none of them.
    """
    place = Path(ref)
    if (place / "corral" / "__init__.py").is_file() or _python_of(place):
        return place.resolve()
    folder.mkdir()
    if place.suffix == ".whl" and place.is_file():
        _unpack_wheel(place, folder)
    else:
        _unpack_revision(ref, folder)
    if not (folder / "corral" / "__init__.py").is_file():
        raise InvalidInput("no-corral", f"{shorten(ref)} has no package `corral`.")
    return folder


def _python_of(place: Path) -> str:
    """The interpreter of an environment, as `python -m venv` makes one; "" for another folder."""
    made = place / "pyvenv.cfg", place / "bin" / "python"
    return str(made[1]) if all(each.is_file() for each in made) else ""


def record(versions: Sequence[tuple[str, Path]], journal: Path, folder: Path) -> list[Path]:
    """Replay a journal by each version, beside each other; returns the journals that they wrote.

    Raises InvalidInput for a version that cannot replay it.
    """
    written = [folder / f"{number}.journal" for number in range(len(versions))]
    running = [_begin(place, journal, file, folder) for (_, place), file in zip(versions, written, strict=True)]
    try:
        for (ref, place), child in zip(versions, running, strict=True):
            _finish(ref, place, child)
    finally:
        for child in running:
            child.kill()
            child.wait()
    return written


_REPLAY: Final = """
import sys
import corral
print(corral.__file__, flush=True)
from corral.cli.main import main
sys.argv[0] = "corral"
main()
"""


def _begin(place: Path, journal: Path, target: Path, folder: Path) -> subprocess.Popen[str]:
    words = ["replay", "run", str(journal.absolute()), "--record", str(target)]
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    python = _python_of(place)
    if not python:
        environment["PYTHONPATH"] = str(place)
    return subprocess.Popen(
        [python or sys.executable, "-c", _REPLAY, *words],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _finish(ref: str, place: Path, child: subprocess.Popen[str]) -> None:
    said, complaint = child.communicate()
    imported = Path(said.partition("\n")[0])
    if child.returncode and not said:  # Python began, and found no Corral
        raise InvalidInput("no-corral", f"{shorten(ref)} has no package `corral`.")
    if not imported.is_relative_to(place):
        message = f"Python imports corral from {shorten(str(imported), 200)} and not from {shorten(ref)}."
        raise InvalidInput("other-corral", message)
    if child.returncode not in _REPLAYED:
        last = next((line for line in reversed(complaint.splitlines()) if line.strip()), "it says nothing")
        message = f"{shorten(ref)} cannot replay the journal (exit code {child.returncode}): {shorten(last, 300)}"
        raise InvalidInput("version-failed", message)


def _unpack_wheel(wheel: Path, folder: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            if sum(each.file_size for each in archive.infolist()) > _MOST_BYTES:
                raise InvalidInput("wheel-too-large", f"{wheel} has more than {_MOST_BYTES >> 20} MiB of files.")
            archive.extractall(folder)
    except zipfile.BadZipFile:
        raise InvalidInput("no-wheel", f"{wheel} is not a wheel: it cannot be unpacked.") from None


def _unpack_revision(ref: str, folder: Path) -> None:
    top = _git("rev-parse", "--show-toplevel", ref=ref).stdout.decode().strip()
    commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", ref=ref)
    with TemporaryFile() as packed:
        words = ["git", "-C", top, "archive", "--format=tar", commit.stdout.decode().strip(), "corral"]
        if subprocess.run(words, stdout=packed, stderr=subprocess.DEVNULL, check=False).returncode:
            return
        packed.seek(0)
        with tarfile.open(fileobj=packed) as archive:
            archive.extractall(folder, filter="data")


def _git(*words: str, ref: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", *words], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        kinds = "a wheel, nor a folder or an environment with the package `corral`, nor a git revision here"
        raise InvalidInput("unknown-version", f"{shorten(ref)} is neither {kinds}.") from None
