"""The build hook never makes a wheel without the portal, and installing one never needs Node."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAKE_NPM = """#!/bin/sh
echo "$1" >> "$(dirname "$0")/calls"
[ "$1" = ci ] && exit 0
[ -e fail ] && exit 3
mkdir -p ../corral/portal/static && cp index.html ../corral/portal/static/
"""


@pytest.fixture
def hook() -> ModuleType:
    """The build hook of the repository's root, as a module."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with portal sources and nothing built."""
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "package.json").write_text("{}")
    (tmp_path / "web" / "index.html").write_text("<title>Corral</title>")
    return tmp_path


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake npm that records its calls and "builds" by copying; returns the file of the calls."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "npm").write_text(FAKE_NPM)
    (tools / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    return tools / "calls"


@pytest.fixture
def no_npm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without Node."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


def test_builds_when_nothing_is_built(hook: ModuleType, tree: Path, npm: Path) -> None:
    assert hook.ensure_portal(tree) == "the portal was built"
    assert (tree / "corral/portal/static/index.html").is_file()
    assert npm.read_text().split() == ["ci", "run"]


def test_does_nothing_while_the_sources_stay_the_same(hook: ModuleType, tree: Path, npm: Path) -> None:
    hook.ensure_portal(tree)
    assert hook.ensure_portal(tree) == "the portal is up to date"
    assert npm.read_text().split() == ["ci", "run"]


def test_what_a_type_check_leaves_is_no_source(hook: ModuleType, tree: Path, npm: Path) -> None:
    hook.ensure_portal(tree)
    (tree / "web" / "tsconfig.tsbuildinfo").write_text("{}")
    assert hook.ensure_portal(tree) == "the portal is up to date"


def test_a_build_after_one_that_failed_installs_the_same_packages_once(
    hook: ModuleType, tree: Path, npm: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tree / "web" / "fail").touch()
    with pytest.raises(hook.PortalMissingError):
        hook.ensure_portal(tree)
    assert "installing the packages that build the portal\nbuilding the portal\n" in capfd.readouterr().err
    (tree / "web" / "fail").unlink()
    hook.ensure_portal(tree)
    assert npm.read_text().split() == ["ci", "run", "run"]
    assert capfd.readouterr().err == "building the portal\n"


def test_other_locked_packages_are_installed(hook: ModuleType, tree: Path, npm: Path) -> None:
    hook.ensure_portal(tree)
    (tree / "web" / "package-lock.json").write_text('{"lockfileVersion": 3}')
    hook.ensure_portal(tree)
    assert npm.read_text().split() == ["ci", "run", "ci", "run"]


def test_the_build_leaves_the_type_check_to_the_tests() -> None:
    scripts = json.loads((ROOT / "web" / "package.json").read_text())["scripts"]
    recipe = (ROOT / "Makefile").read_text().partition("\nportal-test:")[2].partition("\n\n")[0]
    assert "tsc" not in scripts["build"] and "tsc" in scripts["check"]
    assert "npm run --silent check && npm test" in recipe


def test_builds_anew_when_a_source_changes(hook: ModuleType, tree: Path, npm: Path) -> None:
    hook.ensure_portal(tree)
    (tree / "web" / "index.html").write_text("<title>Corral 2</title>")
    assert hook.ensure_portal(tree) == "the portal was built"
    assert (tree / "corral/portal/static/index.html").read_text() == "<title>Corral 2</title>"


def test_a_failed_build_is_an_error_and_leaves_no_stamp(hook: ModuleType, tree: Path, npm: Path) -> None:
    (tree / "web" / "fail").touch()
    with pytest.raises(hook.PortalMissingError, match="exit code 3"):
        hook.ensure_portal(tree)
    assert not (tree / "corral/portal/static/.sources").exists()


def test_without_node_a_built_portal_is_kept(hook: ModuleType, tree: Path, no_npm: None) -> None:
    static = tree / "corral" / "portal" / "static"
    static.mkdir(parents=True)
    (static / "index.html").write_text("<title>built before</title>")
    assert "kept" in hook.ensure_portal(tree)


def test_without_node_and_without_a_portal_it_refuses_in_one_sentence(
    hook: ModuleType, tree: Path, no_npm: None
) -> None:
    with pytest.raises(hook.PortalMissingError, match="install Node 20 and build once more"):
        hook.ensure_portal(tree)
