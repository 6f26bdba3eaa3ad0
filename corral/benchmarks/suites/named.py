"""Find a suite, a workload or a rules file: one of Corral's by its name, or a file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from corral.benchmarks.suite.document import LARGEST
from corral.kernel.errors import InvalidInput, NotFound

_HERE: Final = Path(__file__).parent
_PROGRAMS: Final = _HERE.parent / "programs"


def names() -> list[str]:
    """Return the names of Corral's own suites."""
    return sorted(path.stem for path in _HERE.glob("*.yaml") if path.stem != "rules")


def workload_names() -> list[str]:
    """Return the names of Corral's own workloads for schedulers."""
    return sorted(path.stem for path in (_HERE / "workloads").glob("*.yaml"))


def suite_text(given: str) -> bytes:
    """Return the text of a suite by its name or path. Raises NotFound, InvalidInput."""
    return _text(given, _HERE, names(), "suite")


def workload_text(given: str) -> bytes:
    """Return the text of a workload by its name or path. Raises NotFound, InvalidInput."""
    return _text(given, _HERE / "workloads", workload_names(), "workload")


def _text(given: str, folder: Path, known: list[str], what: str) -> bytes:
    if given in known:
        return (folder / f"{given}.yaml").read_bytes()
    if not Path(given).exists():
        have = ", ".join(known[:-1]) + f" and {known[-1]}"
        raise NotFound(f"no-such-{what}", f"{given[:100]!r} is neither a {what} ({have} are there) nor a file.")
    return bounded(Path(given), LARGEST)


def rules_text(given: str) -> bytes:
    """Return the text of a rules file, or of Corral's own rules for "". Raises NotFound, InvalidInput."""
    return bounded(Path(given), LARGEST) if given else (_HERE / "rules.yaml").read_bytes()


def expected_text(given: str) -> bytes:
    """Return the text of a file of expected values, or of Corral's own for "". Raises NotFound, InvalidInput."""
    return bounded(Path(given), LARGEST) if given else (_HERE / "expected" / "devices.yaml").read_bytes()


def copy_programs(into: Path) -> None:
    """Copy the programs of tasks into a folder, below the names that they import each other by."""
    there = into / "corral" / "benchmarks"
    there.mkdir(parents=True)
    shutil.copytree(_PROGRAMS, there / "programs", ignore=shutil.ignore_patterns("__pycache__"))
    for package in (there, there.parent):
        (package / "__init__.py").touch()


def program_texts() -> dict[str, str]:
    """Return the programs of tasks by the paths that `copy_programs` gives them."""
    there = "corral/benchmarks"
    texts = {f"{there}/programs/{path.name}": path.read_text(encoding="utf-8") for path in _PROGRAMS.glob("*.py")}
    return {"corral/__init__.py": "", f"{there}/__init__.py": "", **dict(sorted(texts.items()))}


def bounded(path: Path, most: int) -> bytes:
    """Read a file of at most `most` bytes. Raises NotFound, InvalidInput."""
    try:
        with path.open("rb") as file:
            text = file.read(most + 1)
    except OSError as error:
        raise NotFound("no-such-file", f"{path} cannot be read: {error.strerror}.") from None
    if len(text) > most:
        raise InvalidInput("file-too-large", f"{path} has more than {most} bytes.")
    return text
