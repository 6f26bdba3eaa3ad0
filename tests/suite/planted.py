"""`python -m tests.suite.planted [--tree PATH] [--only TEXT] [--list] [--unchanged]`: check that tests catch faults.

`planted.toml` has one-line faults from all packages, each with the tests that must fail because of it. Each fault is
planted in a scratch copy of the tree, its tests run there, and the line is restored. A fault is caught when pytest ends
with 1 (tests failed); a usage error, a collection error or a run with only skipped tests is no catch. `--tree` runs the
same faults against another checkout and its tests. `--unchanged` runs the same tests without a fault, where all must
pass.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
FAULTS: Final = Path(__file__).with_suffix(".toml")
PORTAL: Final = Path("corral/portal/static")
"""The built portal: git ignores it, and the server needs it."""
MOST_SECONDS: Final = 1200
"""Seconds for the tests of one fault; pytest's own time limit ends a single test much sooner."""
_PASSED, _FAILED = 0, 1
"""pytest's exit codes when all tests passed, and when some failed."""
_UNSET: Final = frozenset({"CI", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH"})
"""With CI=true a skipped test fails, which would look like a catch; without bytecode each run compiles all modules."""


class Fault(NamedTuple):
    """One line that is replaced, and the tests that must fail then."""

    file: str
    was: str
    now: str
    breaks: str
    suite: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.suite:<20} {self.file}: {self.breaks}"


class Run(NamedTuple):
    """How pytest ended: its exit code, the last line that it printed, and the seconds that it took."""

    code: int
    said: str
    seconds: float


def main(words: Sequence[str]) -> int:
    """Plant the faults one by one; returns the exit code, 0 when all were caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.suite.planted", description=__doc__)
    parser.add_argument("--tree", type=Path, default=ROOT, metavar="PATH", help="the checkout; default: this one")
    parser.add_argument("--only", default="", metavar="TEXT", help="only faults whose suite, file or effect has TEXT")
    parser.add_argument("--list", action="store_true", help="print the faults and run nothing")
    parser.add_argument("--unchanged", action="store_true", help="run the same tests without a fault: all must pass")
    options = parser.parse_args(words)
    faults = [fault for fault in load(FAULTS) if options.only in str(fault)]
    if options.list:
        for fault in faults:
            print(fault)
        return 0
    begun, good = time.monotonic(), 0
    with _scratch_copy(options.tree.resolve()) as (copy, environment):
        print(f"corral is {_imported_from(copy, environment)}", flush=True)
        for fault in faults:
            verdict, seconds = _check(copy, environment, fault, plant=not options.unchanged)
            good += verdict in ("caught", "passed")
            print(f"{verdict:<8} {seconds:6.1f} s  {fault}", flush=True)
    print(f"in {time.monotonic() - begun:.0f} s")
    print(f"{good} of {len(faults)} {'passed unchanged' if options.unchanged else 'caught'}")
    return 0 if good == len(faults) else 1


def load(path: Path) -> list[Fault]:
    """The faults of a file.

    Raises TypeError when one of them lacks a field or has an unknown one.
    """
    tables = tomllib.loads(path.read_text())["fault"]
    return [Fault(**{**table, "tests": tuple(table["tests"])}) for table in tables]


@contextmanager
def _scratch_copy(tree: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """A copy of the tree that is removed afterwards, and the environment in which tests import it."""
    environment = {name: value for name, value in os.environ.items() if name not in _UNSET}
    data = tree.parent / "shared" / "data"
    if "CORRAL_DATA" not in environment and data.is_dir():
        environment["CORRAL_DATA"] = str(data)
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        Path(folder).chmod(0o755)  # some tests run tasks as other users, who must be able to read the package
        copy = Path(folder) / "tree"
        for name in _files_of(tree):
            target = copy / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, target, follow_symlinks=False)
        if (tree / PORTAL).is_dir():
            shutil.copytree(tree / PORTAL, copy / PORTAL, dirs_exist_ok=True)
        # Precedes the editable install in site-packages, which leads to the checkout, also in processes that tests
        # start.
        yield copy, environment | {"PYTHONPATH": str(copy)}


def _files_of(tree: Path) -> list[str]:
    """The files that git knows or would add; those deleted in the working tree are left out."""
    listing = ["git", "-C", str(tree), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, check=True, capture_output=True, text=True).stdout.split("\0")
    return sorted({name for name in names if name and os.path.lexists(tree / name)})


def _imported_from(copy: Path, environment: Mapping[str, str]) -> str:
    """Where a process in another folder imports `corral` from.

    Raises SystemExit when that is not the copy.
    """
    ask = [sys.executable, "-c", "import corral; print(corral.__file__)"]
    asked = subprocess.run(ask, check=True, capture_output=True, text=True, cwd=copy.parent, env=environment)
    found = asked.stdout.strip()
    if not Path(found).is_relative_to(copy):
        raise SystemExit(f"the tests would import {found}, not the copy {copy}")
    return found


def _check(copy: Path, environment: Mapping[str, str], fault: Fault, *, plant: bool) -> tuple[str, float]:
    """The verdict on one fault, and the seconds that its tests took."""
    if not plant:
        run = _pytest(copy, environment, fault.tests)
        return ("passed" if run.code == _PASSED else f"FAILED ({run.said})"), run.seconds
    source = copy / fault.file
    text = source.read_text() if source.is_file() else ""
    if text.count(fault.was) != 1 or "\n" in fault.was + fault.now:
        return f"MISSED (the line is there {text.count(fault.was)} times)", 0.0
    stat = source.stat()
    try:
        source.write_text(text.replace(fault.was, fault.now))
        _forget_bytecode(source)
        run = _pytest(copy, environment, fault.tests)
    finally:
        source.write_text(text)
        os.utime(source, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        _forget_bytecode(source)
    if run.code == _FAILED:
        return "caught", run.seconds
    return f"MISSED (pytest ended with {run.code}: {run.said})", run.seconds


def _forget_bytecode(source: Path) -> None:
    """Python compares times in seconds and sizes only: a fault planted quickly after another could go unseen."""
    Path(importlib.util.cache_from_source(str(source))).unlink(missing_ok=True)


def _pytest(copy: Path, environment: Mapping[str, str], tests: Sequence[str]) -> Run:
    """Run tests of the copy until one fails."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["--hypothesis-seed=0", f"--basetemp={copy.parent / 't'}", *tests]
    begun = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, errors="replace", timeout=MOST_SECONDS
        )
    except subprocess.TimeoutExpired:
        return Run(-1, f"no end in {MOST_SECONDS} s", time.monotonic() - begun)
    said = (done.stdout.strip() or done.stderr.strip() or "no output").splitlines()[-1]
    return Run(done.returncode, said, time.monotonic() - begun)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
