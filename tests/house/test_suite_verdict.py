"""The verdict of a run of the suite, and its output."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from tests.suite import flaky
from tests.suite.__main__ import MEMORY, has_room
from tests.suite.flaky import BadPage, Entry

ROOT = Path(__file__).resolve().parents[2]
PAGE = """\
# Testing

## Known flaky tests

Words about them.

| test | since | cause |
|---|---|---|
| `tests/portal/test_a.py::test_one` | 2026-11-01 | a page comes late |
| `tests/api/test_b.py::test_two` | 2026-11-20 | unknown |

## Something else

| another | table |
"""
NONE_KNOWN = PAGE.replace("| `tests/portal/test_a.py::test_one` | 2026-11-01 | a page comes late |\n", "").replace(
    "| `tests/api/test_b.py::test_two` | 2026-11-20 | unknown |\n", ""
)
KNOWN = flaky.entries(PAGE)
UNUSED = "-p no:schemathesis -p no:hypothesispytest -p no:anyio"
STEADY = """
def test_passes():
    pass
"""
FLAKY = """
from pathlib import Path

def test_flickers():
    mark = Path({mark!r})
    print("seen before:", mark.exists())
    if not mark.exists():
        mark.touch()
        raise AssertionError("not yet")
"""
BROKEN = """
def test_fails():
    assert 1 == 2
"""


def run_suite(folder: Path, *words: str, page: str = NONE_KNOWN, **files: str) -> subprocess.CompletedProcess[str]:
    """Run the suite on a folder of tests of its own."""
    command, env = suite_command(folder, *words, page=page, **files)
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def suite_command(folder: Path, *words: str, page: str = NONE_KNOWN, **files: str) -> tuple[list[str], dict[str, str]]:
    """The command that runs the suite on a folder of tests of its own, which it makes, and its environment."""
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    (folder / "page.md").write_text(page)
    (folder / "tests" / "portal").mkdir(parents=True)
    for name, text in files.items():
        (folder / "tests" / "portal" / f"{name}.py").write_text(text)
    command = [sys.executable, "-m", "tests.suite", "--lanes", "2", "--folder", str(folder)]
    command += ["--known", str(folder / "page.md"), *words]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return command, env | {"PYTEST_ADDOPTS": UNUSED}  # plug-ins that each of the processes would load


def row(test: str) -> str:
    """A page on which this test is known to be flaky."""
    return NONE_KNOWN.replace(
        "|---|---|---|\n", f"|---|---|---|\n| `{test}` | 2026-11-20 | it flickers on purpose |\n", 1
    )


def test_a_run_in_which_all_pass_is_green_and_ends_with_the_count(tmp_path: Path) -> None:
    done = run_suite(tmp_path, test_a=STEADY, test_b=STEADY)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "2 passed, 0 failed, 0 skipped"
    assert "portal                       2" in done.stdout


def test_a_test_that_fails_twice_is_a_failure(tmp_path: Path) -> None:
    done = run_suite(tmp_path, test_a=STEADY, test_b=BROKEN)
    assert done.returncode == 1
    assert "not green: tests/portal/test_b.py::test_fails failed twice." in done.stdout
    assert done.stdout.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"


def test_a_flaky_test_that_is_known_is_printed_with_both_outputs_and_the_run_is_green(tmp_path: Path) -> None:
    text = FLAKY.format(mark=str(tmp_path / "mark"))
    done = run_suite(tmp_path, test_a=STEADY, test_b=text, page=row("tests/portal/test_b.py::test_flickers"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        "flaky: tests/portal/test_b.py::test_flickers (known since 2026-11-20: it flickers on purpose)" in done.stdout
    )
    said = done.stdout.rpartition("flaky: ")[2]
    assert said.index("seen before: False") < said.index("seen before: True")
    assert done.stdout.splitlines()[-1] == "2 passed, 0 failed, 0 skipped"


def test_a_flaky_test_that_is_not_known_makes_the_run_red(tmp_path: Path) -> None:
    done = run_suite(tmp_path, test_b=FLAKY.format(mark=str(tmp_path / "mark")))
    assert done.returncode == 1
    assert "is flaky and not in docs/testing.md" in done.stdout


def test_a_file_that_cannot_be_collected_makes_the_run_red(tmp_path: Path) -> None:
    done = run_suite(tmp_path, test_a=STEADY, test_b="import nothing_of_that_name")
    assert done.returncode == 1
    assert "not green: tests/portal/test_b.py could not be collected." in done.stdout
    assert done.stdout.splitlines()[-1].endswith(" 1 failed, 0 skipped"), "each lane tells of it, and it is one file"


def test_a_path_without_tests_is_refused_in_a_sentence(tmp_path: Path) -> None:
    done = run_suite(tmp_path, "--lanes", "1", "--", "tests/nonsense", test_a=STEADY)
    assert done.returncode == 1
    assert "not green: pytest could not be started: an option, or the path of a test, is wrong" in done.stdout


@pytest.mark.parametrize("words", [(), ("--forked",)], ids=["lanes", "forked lanes"])
def test_a_lane_that_dies_makes_its_test_fail_and_the_rest_is_run(tmp_path: Path, words: tuple[str, ...]) -> None:
    dying = "import os\n\ndef test_dies():\n    os._exit(1)\n"
    done = run_suite(tmp_path, *words, test_a=STEADY, test_b=dying, test_c=STEADY)
    assert done.returncode == 1
    assert "not green: tests/portal/test_b.py::test_dies failed twice." in done.stdout
    assert done.stdout.splitlines()[-1] == "2 passed, 1 failed, 0 skipped"


def test_forked_lanes_import_a_file_once_for_all_of_them(tmp_path: Path) -> None:
    mark = tmp_path / "imported"
    importing = f"with open({str(mark)!r}, 'a') as file:\n    file.write('x')\n{STEADY}"
    done = run_suite(tmp_path, "--forked", test_a=importing, test_b=STEADY)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "2 passed, 0 failed, 0 skipped"
    assert mark.read_text() == "x"


def test_files_are_kept_in_memory_where_it_has_room(tmp_path: Path) -> None:
    told = tmp_path / "told"
    telling = (
        f"from pathlib import Path\n\ndef test_tells(tmp_path):\n    Path({str(told)!r}).write_text(str(tmp_path))\n"
    )
    done = run_suite(tmp_path, "--memory", test_a=telling)
    assert done.returncode == 0, done.stdout + done.stderr
    assert told.read_text().startswith(f"{MEMORY}/") == has_room(MEMORY)
    assert not Path(told.read_text()).exists()
    assert not has_room(tmp_path / "none") and not has_room(Path("/proc"))


def test_a_run_that_is_ended_by_a_signal_says_which_tests_ran(tmp_path: Path) -> None:
    mark = tmp_path / "told"
    lasting = f"from pathlib import Path\n\ndef test_lasts():\n    while not Path({str(mark)!r}).exists(): pass\n"
    command, env = suite_command(tmp_path, "--", "-v", test_a=lasting)
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE) as suite:
        begun = read_until(suite, b"::test_lasts")  # a verbose run names a test that begins
        suite.terminate()
        said = read_until(suite, b" s)\n")
        mark.touch()
    assert suite.returncode == 128 + 15, begun
    assert b"ended by SIGTERM after" in said and b"tests/portal/test_a.py::test_lasts (for " in said


def read_until(process: subprocess.Popen[bytes], end: bytes) -> bytes:
    """What a process prints up to and with `end`, or to its own end."""
    assert process.stdout is not None
    said = b""
    while end not in said and (more := os.read(process.stdout.fileno(), 4096)):
        said += more
    return said


def test_a_make_target_that_fails_beside_the_tests_makes_the_run_red(tmp_path: Path) -> None:
    done = run_suite(tmp_path, "--beside", "no-such-target", test_a=STEADY)
    assert done.returncode == 1
    assert "not green: make no-such-target failed." in done.stdout


def test_no_test_at_all_is_no_success(tmp_path: Path) -> None:
    done = run_suite(tmp_path, "--", "-k", "nothing", test_a=STEADY)
    assert done.returncode == 1
    assert "No test was selected." in done.stdout


def test_the_known_flaky_tests_are_read_from_the_page() -> None:
    assert [
        Entry("tests/portal/test_a.py::test_one", date(2026, 11, 1), "a page comes late"),
        Entry("tests/api/test_b.py::test_two", date(2026, 11, 20), "unknown"),
    ] == KNOWN
    assert flaky.entries(NONE_KNOWN) == []


@pytest.mark.parametrize(
    "page",
    [
        PAGE.replace("2026-11-01", "lately"),
        PAGE.replace("`tests/portal/test_a.py::test_one`", "a test"),
        PAGE.replace("## Known flaky tests", "## Flaky tests"),
    ],
    ids=["no date", "no test", "no section"],
)
def test_a_page_that_cannot_be_read_is_refused(page: str) -> None:
    with pytest.raises(BadPage):
        flaky.entries(page)


def test_an_entry_expires_after_fourteen_days() -> None:
    assert flaky.expired(KNOWN, date(2026, 11, 15)) == []
    assert flaky.expired(KNOWN, date(2026, 11, 16)) == [KNOWN[0]]


@pytest.mark.parametrize(
    ("unsteady", "objection"),
    [
        (["tests/portal/test_a.py::test_one[x]"], ""),
        (["tests/portal/test_a.py::test_other"], "not in docs/testing.md"),
        ([f"tests/portal/test_a.py::test_one[{number}]" for number in range(4)], "at most 3"),
        (["tests/scheduler/test_a.py::test_one"], "a test of scheduler may never be"),
        (["tests/service/test_a.py::test_one"], "a test of service may never be"),
        (["tests/store/test_a.py::test_one"], "a test of store may never be"),
        (["tests/frameworks/test_registry.py::test_one"], "a test of frameworks may never be"),
        (["tests/frameworks/test_on_the_server.py::test_one"], "not in docs/testing.md"),
    ],
)
def test_what_keeps_a_run_with_flaky_tests_from_being_green(unsteady: list[str], objection: str) -> None:
    found = flaky.objections(unsteady, KNOWN)
    assert (found == []) if not objection else any(objection in each for each in found)


def test_the_page_of_known_flaky_tests_can_be_read() -> None:
    flaky.entries(flaky.PAGE.read_text())
