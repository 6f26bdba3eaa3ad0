"""`python -m tests.suite [--lanes N] [--forked] [--memory] [--noise] [--stalls N] [--beside TARGET]... [-- PYTEST...]`.

Runs tests in lanes, beside the make targets of `--beside`, and judges. When both are done, each failed test runs once
more, alone. The run is green (exit code 0) when nothing failed twice, every target passed, and the flaky tests are few,
known and none of the steady suites. The last line counts the tests.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Final

from tests.suite import flaky, forked, outcomes, report, stalls
from tests.suite.outcomes import FAILED, PASSED, Outcome, Run

ROOT: Final = Path(__file__).resolve().parents[2]
MOST_AGAIN: Final = 12
"""Failed tests that are run again; with more, none is, because the cause is not flakiness."""
MEMORY: Final = Path("/dev/shm")
"""A file system in memory, where syncs take no time."""
ROOM: Final = 4 * 1024**3
"""Bytes that must be free there."""
_ENDED: Final = {
    2: "pytest was interrupted, or could not collect every file.",
    4: "pytest could not be started: an option, or the path of a test, is wrong (its words are above).",
    5: "No test was selected.",
}
"""The meaning of pytest's exit codes other than passed and failed."""


def main(words: Sequence[str]) -> int:
    """Run everything; returns the exit code."""
    options = _options(words)
    begun = time.monotonic()
    beside = {target: _start_target(target) for target in options.beside}
    noise = _start_noise() if options.noise else None
    memory = options.memory and has_room(MEMORY)
    if memory:
        forget_killed_runs(MEMORY)
    scratch = Path(tempfile.mkdtemp(prefix="crl-", dir=MEMORY if memory else None))
    (scratch / "pid").write_text(str(os.getpid()))
    try:
        if options.stalls:
            os.environ.update(stalls.environment(scratch, options.stalls))
        with _in_lanes(options, scratch) as lanes:
            kept = ["-o", "tmp_path_retention_policy=failed"] if memory else []
            words = [*lanes, f"--basetemp={scratch / 't'}", *kept, *options.pytest]
            first = _pytest(scratch / "first.json", words, options.folder)
        broken = [name for name, target in beside.items() if not _finish_target(name, target)]
        again = _run_again(scratch, first, options.folder)
    finally:
        if noise is not None:
            noise.kill()
            noise.wait()
        shutil.rmtree(scratch, ignore_errors=True)
    if options.outcomes:
        outcomes.write(options.outcomes, first)
    known = flaky.entries(options.known.read_text())
    unsteady = {test: alone.said for test, alone in again.items() if alone.state == PASSED}
    objections = [f"make {name} failed." for name in broken]
    objections += _objections(first, again) + flaky.objections(list(unsteady), known)
    print("\n" + report.times(first, time.monotonic() - begun))
    print(report.flaky(first, unsteady, known), end="")
    for objection in objections:
        print(f"not green: {objection}")
    print(report.count(first, len(unsteady)), flush=True)
    return 1 if objections else 0


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.suite", description=__doc__)
    lanes = max(2, len(os.sched_getaffinity(0)) + 1)
    parser.add_argument("--lanes", type=int, default=lanes, help="how many tests run beside each other (%(default)s)")
    parser.add_argument("--forked", action="store_true", help="lanes are forks of one process that imports the tests")
    parser.add_argument("--memory", action="store_true", help="keep the files of the tests in memory if it has room")
    parser.add_argument("--noise", action="store_true", help="keep one core and the disk busy meanwhile")
    parser.add_argument(
        "--stalls", type=int, default=0, metavar="N", help="let one sync to the disk in N take six seconds"
    )
    parser.add_argument(
        "--beside", action="append", default=[], metavar="TARGET", help="a make target to run meanwhile"
    )
    parser.add_argument("--outcomes", type=Path, metavar="FILE", help="write what became of each test to FILE")
    parser.add_argument("--folder", type=Path, default=ROOT, help="where pytest runs (%(default)s)")
    parser.add_argument("--known", type=Path, default=flaky.PAGE, metavar="FILE", help="the page of known flaky tests")
    parser.add_argument("pytest", nargs="*", metavar="PYTEST", help="words for pytest, after --")
    return parser.parse_args(words)


def has_room(folder: Path) -> bool:
    """Whether files of the tests have room in a folder and can be run there."""
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return False
    found = os.statvfs(folder)
    room = min(found.f_bavail * found.f_frsize, available_memory() // 2)  # what lies there is memory
    return room >= ROOM and not found.f_flag & os.ST_NOEXEC


def forget_killed_runs(folder: Path) -> None:
    """Remove what killed runs left in memory: folders whose process is gone."""
    for left in folder.glob("crl-*/pid"):
        with contextlib.suppress(OSError, ValueError):
            if not Path(f"/proc/{int(left.read_text())}").exists():
                shutil.rmtree(left.parent, ignore_errors=True)


def available_memory(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Bytes of memory that programs can still take; 0 where the kernel does not tell."""
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError, IndexError):
        return 0


@contextlib.contextmanager
def _in_lanes(options: argparse.Namespace, scratch: Path) -> Iterator[list[str]]:
    """pytest's words for the lanes."""
    if options.lanes == 1:
        yield ["-p", "no:xdist"]
    elif options.forked:
        with forked.lanes(options.lanes, options.pytest, scratch / "lanes", options.folder, _environment()) as words:
            yield words
    else:
        yield ["-n", str(options.lanes)]


def _pytest(path: Path, words: Sequence[str], folder: Path) -> Run:
    command = [sys.executable, "-m", "pytest", "-p", "tests.suite.recorder", f"--outcomes={path}", *words]
    with subprocess.Popen(command, cwd=folder, env=_environment()) as pytest:
        try:
            ended = pytest.wait()
        except SystemExit:
            pytest.terminate()
            raise
    if not path.exists():
        return Run(code=ended or 1)
    return outcomes.read(path)


def _environment() -> dict[str, str]:
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": paths}


def _run_again(scratch: Path, first: Run, folder: Path) -> dict[str, Outcome]:
    """Run each failed test once more, in a process of its own with nothing beside it; returns the outcomes."""
    again: dict[str, Outcome] = {}
    for number, test in enumerate(first.failed if len(first.failed) <= MOST_AGAIN else ()):
        print(f"\nagain, alone: {test}", flush=True)
        words = ["-p", "no:xdist", "-p", "no:cacheprovider", f"--basetemp={scratch / 'a'}", test]
        run = _pytest(scratch / f"again-{number}.json", words, folder)
        again[test] = run.outcomes.get(test) or Outcome(test, FAILED, said=f"pytest ended with {run.code}")
    return again


def _objections(first: Run, again: dict[str, Outcome]) -> list[str]:
    found = [f"{broken.splitlines()[0]} could not be collected." for broken in first.broken]
    for test in first.failed:
        if test not in again:
            found.append(f"{test} failed.")
        elif again[test].state != PASSED:
            found.append(f"{test} failed twice.")
    if first.code not in {0, 1}:
        found.append(_ENDED.get(first.code, f"pytest ended with {first.code}."))
    return found


def _start_target(target: str) -> subprocess.Popen[str]:
    words = ["make", "--no-print-directory", target]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _finish_target(name: str, target: subprocess.Popen[str]) -> bool:
    printed, _ = target.communicate()
    print(f"make {name}:\n{printed}", end="", flush=True)
    return target.returncode == 0


def _start_noise() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "tests.suite.noise"], cwd=ROOT)


def _exit(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _exit)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
