"""`corral replay bisect` runs two versions of the scheduler over a journal and finds a planted change of one comparison."""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from corral.cli.replay import replay_command
from corral.cli.sim import sim_command

ROOT = Path(__file__).resolve().parents[2]
PLANTED = (
    "scheduler/policy/order.py",
    "return (-gang.priority, gang.submitted_at)",
    "return (gang.priority, gang.submitted_at)",
)
ROWS = [
    f"{number * 7},{100 + number * 13 % 90},{1 + number % 4},user-{number % 5},{number % 3}" for number in range(60)
]


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of jobs with several priorities."""
    folder = tmp_path_factory.mktemp("journal")
    (folder / "trace.csv").write_text("\n".join(["submitted,seconds,devices,user,priority", *ROWS]))
    words = ["run", "--trace", str(folder / "trace.csv"), "--cluster", "2x4", "--policy", "priority"]
    file = folder / "trace.journal"
    done = CliRunner().invoke(sim_command, [*words, "--journal", str(file)], standalone_mode=False)
    assert done.exception is None
    return file


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository whose second revision has another comparison in the scheduler."""
    folder = tmp_path_factory.mktemp("repository")
    kept = shutil.ignore_patterns("__pycache__", "static", "*.pyc")
    shutil.copytree(ROOT / "corral", folder / "corral", ignore=kept)
    git(folder, "init", "-q")
    commit(folder)
    name, before, after = PLANTED
    file = folder / "corral" / name
    assert file.read_text().count(before) == 1
    file.write_text(file.read_text().replace(before, after))
    commit(folder)
    return folder


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, stdout=subprocess.DEVNULL)


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "a version")


def bisected(journal: Path, good: str, bad: str, *more: str) -> Result:
    words = ["bisect", str(journal), "--good", good, "--bad", bad, *more]
    return CliRunner().invoke(replay_command, words, standalone_mode=False)


def test_a_planted_change_of_one_comparison_is_found(
    journal: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    done = bisected(journal, "HEAD~1", "HEAD", "-o", "json")
    assert (done.exception, done.return_value) == (None, 1)
    found = json.loads(done.stdout)
    there = found["difference"]
    starts = [[each for each in there[side] if each["verb"] == "start"] for side in ("good", "bad")]
    assert not found["equal"] and starts[0] != starts[1]
    assert all(any(each["verb"] == "event" and each["why"] for each in there[side]) for side in ("good", "bad"))


def test_equal_versions_decide_the_same(journal: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    done = bisected(journal, "HEAD~1", str(ROOT))
    assert (done.exception, done.return_value) == (None, 0)
    assert "both versions start and stop the same." in done.output


def test_a_wheel_is_a_version(journal: Path, repository: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "corral-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in sorted((repository / "corral").rglob("*")):
            archive.write(file, str(file.relative_to(repository)))
    done = bisected(journal, str(ROOT), str(wheel))
    assert (done.exception, done.return_value) == (None, 1)
    assert "is the first that decides otherwise.\n" in done.output and f"{wheel.name}:\n  start " in done.output


def environment(folder: Path, package: Path | None) -> Path:
    """An environment of its own with a version of Corral, and with the other packages of this one."""
    venv.create(folder, symlinks=True)
    (place,) = folder.glob("lib/python*/site-packages")
    if package is not None:
        shutil.copytree(package, place / "corral", ignore=shutil.ignore_patterns("__pycache__"))
        (place / "others.pth").write_text(sysconfig.get_path("purelib"))
    return folder


def test_an_environment_is_a_version_with_packages_of_its_own(
    journal: Path, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its interpreter runs, and what other processes are told to import is not there."""
    place = environment(tmp_path / "bad", repository / "corral")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    done = bisected(journal, str(ROOT), str(place))
    assert (done.exception, done.return_value) == (None, 1)
    assert "is the first that decides otherwise.\n" in done.output
    empty = environment(tmp_path / "empty", None)
    assert str(bisected(journal, str(empty), str(ROOT)).exception).endswith(" has no package `corral`.")


def test_what_is_no_version_or_no_journal_is_refused(journal: Path, tmp_path: Path) -> None:
    assert "is neither a wheel, nor a folder or an environment" in str(
        bisected(journal, "no-such-revision", str(ROOT)).exception
    )
    broken = tmp_path / "broken.whl"
    broken.write_text("not a wheel")
    assert "cannot be unpacked" in str(bisected(journal, str(broken), str(ROOT)).exception)
    other = tmp_path / "other.journal"
    other.write_text("not a journal")
    assert "is not a journal of Corral" in str(bisected(other, str(ROOT), str(ROOT)).exception)
    assert "nowhere is not there" in str(bisected(tmp_path / "nowhere", str(ROOT), str(ROOT)).exception)
