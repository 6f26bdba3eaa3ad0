"""The example of quotas in git works in an empty folder: its hook and its workflow let only good changes pass."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "policy-test"
LIMIT = "limit: {devices: 16}"
GOOD, BAD, BROKEN = "limit: {devices: 24}", "limit: {devices: 8}", "limti: {devices: 24}"


class Repository:
    """A folder under git, with a `corral` command of this source tree on its path."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self.environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder.parent),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.com",
            "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@example.com",
        }  # fmt: skip

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment | more,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def git(self, *words: str) -> None:
        done = self.run("git", *words)
        assert done.returncode == 0, done.stderr

    def change(self, limit: str) -> None:
        queues = self.folder / "quotas" / "queues.yaml"
        text = (EXAMPLE / "quotas" / "queues.yaml").read_text()
        assert LIMIT in text
        queues.write_text(text.replace(LIMIT, limit))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """The example in an empty folder, committed on `main`, with its hook turned on."""
    programs = tmp_path / "bin"
    programs.mkdir()
    corral = programs / "corral"
    corral.write_text(f'#!/bin/sh\nexec {sys.executable} -m corral.cli.main "$@"\n')
    corral.chmod(0o755)
    folder = tmp_path / "quotas-of-a-team"
    shutil.copytree(EXAMPLE, folder)
    found = Repository(folder, programs)
    found.git("init", "--initial-branch", "main")
    found.git("config", "core.hooksPath", "hooks")
    found.git("add", "--all")
    found.git("commit", "--message", "Begin")
    return found


def test_the_hook_lets_a_good_change_pass_and_refuses_a_bad_one(repository: Repository) -> None:
    repository.change(GOOD)
    passed = repository.run("git", "commit", "--all", "--message", "Raise the limit of vision")
    assert passed.returncode == 0 and "All 7 assertions hold." in passed.stdout + passed.stderr
    repository.git("reset", "--hard", "HEAD~1")
    for limit, said in ((BAD, "2 of 7 assertions do not hold."), (BROKEN, 'did you mean "limit"?')):
        repository.change(limit)
        refused = repository.run("git", "commit", "--all", "--message", "Not to be")
        assert refused.returncode == 1 and said in refused.stdout + refused.stderr
    assert repository.run("git", "log", "--format=%s").stdout == "Begin\n"


def test_the_workflow_reports_on_a_pull_request(repository: Repository) -> None:
    clone = Repository(repository.folder.parent / "clone", repository.folder.parent / "bin")
    repository.git("clone", "--quiet", ".", str(clone.folder))
    workflow = yaml.safe_load((clone.folder / ".github/workflows/policy-test.yaml").read_text())
    (step,) = (each for each in workflow["jobs"]["policy-test"]["steps"] if each.get("name") == "Test the quotas")
    for limit, code, mark in ((GOOD, 0, "All 7 assertions hold."), (BAD, 1, "2 of 7 assertions do not hold.")):
        clone.change(limit)
        summary = clone.folder / f"summary-{code}.md"
        done = clone.run("sh", "-e", "-c", step["run"], GITHUB_BASE_REF="main", GITHUB_STEP_SUMMARY=str(summary))
        assert done.returncode == code, done.stderr
        text = summary.read_text()
        assert f"### Policy test: {mark}" in text and "against `quotas at origin/main`" in text and "```mermaid" in text
        suite = ElementTree.parse(clone.folder / "report.xml").getroot()
        quoted = "\n".join(f"> {line}".rstrip() for line in text.rstrip().splitlines())
        page = (ROOT / "docs" / "policy-tests.md").read_text()
        assert (quoted in page) == bool(code)
        assert (suite.get("tests"), suite.get("failures")) == ("7", str(2 * code))
