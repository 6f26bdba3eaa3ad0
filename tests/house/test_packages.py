"""The contracts of import-linter cover every package."""

from __future__ import annotations

import ast
import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "corral"
PURE = {"kernel", "spec", "frameworks", "model", "scheduler", "launcher", "monitor.rules"}
PURE |= {"deploy.hosts", "deploy.checks", "deploy.steps", "profiles"}
PURE |= {f"benchmarks.{name}" for name in ("results", "rules", "suite", "workloads")}
PURE_IN_TENANTS = {"language", "frameworks", "records"}
STANDARD_LIBRARY_ONLY = {"kernel", "runtime"}
# Contracts of the form "only X may": the packages that may; all others are sources.
DOORS = {
    "sql": {"store", "compat.*.tables", "monitor.series.database"},
    "remote-files": {"storage"},
    "vendor-devices": {"devices"},
    "apiserver": {"engines.kubernetes"},
    "web-framework": {"api", "compat.*.routes", "app", "control", "front", "service.watched_socket"},
}


def top_packages() -> set[str]:
    """Every child of the package: folders that are packages, and modules."""
    found = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return found | {path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__"}


def contract(name: str) -> dict[str, list[str]]:
    """One contract of .importlinter: each option's lines."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter")
    section = parser[f"importlinter:contract:{name}"]
    return {key: [line for line in value.splitlines() if line.strip()] for key, value in section.items()}


def contract_names() -> list[str]:
    """Every contract's id."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter")
    prefix = "importlinter:contract:"
    return [section.removeprefix(prefix) for section in parser.sections() if section.startswith(prefix)]


def imports_of(path: Path) -> set[str]:
    """The absolute names that a module imports anywhere, also in functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    return names


def test_every_package_stands_on_a_floor() -> None:
    layers = " ".join(contract("layers")["layers"]).replace("(", " ").replace(")", " ")
    floors = set(layers.replace("|", " ").replace(":", " ").split())
    assert top_packages() <= floors, f"place these packages in .importlinter: {sorted(top_packages() - floors)}"


@pytest.mark.parametrize("door", sorted(DOORS))
def test_a_library_with_one_door_is_closed_to_every_other_package(door: str) -> None:
    said = contract(door)
    assert said["source_modules"] == ["corral.*"]
    exceptions = {line.split()[0].removesuffix(".**").removeprefix("corral.") for line in said["ignore_imports"]}
    assert exceptions == DOORS[door]


def test_a_forbidden_import_is_found(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "corral", ignore=shutil.ignore_patterns("static", "__pycache__"))
    shutil.copy(ROOT / ".importlinter", tmp_path)
    (tmp_path / "corral" / "service" / "stray.py").write_text("import sqlalchemy\nimport corral.scheduler\n")
    found = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 1
    assert "corral.service.stray -> sqlalchemy" in found.stdout
    assert "corral.service.stray -> corral.scheduler" in found.stdout


def test_the_contract_of_the_pure_packages_names_them_all() -> None:
    assert {line.removeprefix("corral.") for line in contract("pure-packages")["source_modules"]} == PURE | {
        f"compat.*.{folder}" for folder in PURE_IN_TENANTS
    }


@pytest.mark.parametrize("name", contract_names())
def test_contract_names_are_sentences(name: str) -> None:
    (sentence,) = contract(name)["name"]
    assert len(sentence.split()) >= 5 and sentence[0].isupper()


def pure_folders() -> list[str]:
    """The pure packages, and the pure folders of tenants."""
    tenants = [path.relative_to(PACKAGE).as_posix() for path in (PACKAGE / "compat").glob("*/*/")]
    return sorted(PURE) + sorted(path for path in tenants if path.rpartition("/")[2] in PURE_IN_TENANTS)


@pytest.mark.parametrize("package", pure_folders())
def test_a_pure_package_bans_clocks_and_randomness(package: str) -> None:
    config = (PACKAGE / package.replace(".", "/") / "ruff.toml").read_text()
    for banned in ("datetime.datetime.now", "time", "random", "uuid.uuid4", "numpy.random"):
        assert f'"{banned}".msg' in config
    assert '"TID251"' in config and '"DTZ"' in config


@pytest.mark.parametrize("package", sorted(STANDARD_LIBRARY_ONLY))
def test_a_package_without_dependencies_imports_the_standard_library_only(package: str) -> None:
    allowed = sys.stdlib_module_names | {f"corral.{package}"}
    for path in (PACKAGE / package).rglob("*.py"):
        for name in imports_of(path):
            own = name == f"corral.{package}" or name.startswith(f"corral.{package}.")
            assert own or name.split(".")[0] in allowed, f"{path.relative_to(ROOT)} imports {name}"


def packages() -> list[str]:
    """Every package below corral/, by path."""
    return sorted(path.parent.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("__init__.py"))


@pytest.mark.parametrize("package", packages())
def test_a_package_opens_with_one_sentence(package: str) -> None:
    docstring = ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text()))
    assert docstring, f"{package}/__init__.py has no docstring"
    first = docstring.splitlines()[0]
    assert first.endswith(".") and len(first) > 20, f"{package}: {first!r} is not a sentence"
