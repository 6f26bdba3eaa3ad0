"""Images of this Corral and of PostgreSQL, made from this machine's files, for a real install of the chart.

`deploy/Dockerfile` makes the same from a base image and a wheel: Python, the server's requirements, the command
`corral`.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

from tests.entry_points import corrals_own
from tests.testbeds.kubernetes.pythontree import copy_corral, copy_module, python_tree
from tests.testbeds.postgresql import binaries

SERVER: Final = "corral.test/corral"
POSTGRESQL: Final = "corral.test/postgresql:1"
POSTGRES_USER: Final = 999
ROOT: Final = Path(__file__).resolve().parents[3]
_EXTRAS: Final = ("server", "kubernetes")
_LIBRARY: Final = re.compile(r"(/\S+) \(0x")
_COMMAND: Final = "import sys; from corral.cli.main import main; main()"


def server_tree(root: Path) -> Path:
    """Fill `root` with Python, Corral, and all imports of its server and its Kubernetes engine."""
    python_tree(root)
    site = _site_of_the_image(root)
    site.mkdir(parents=True, exist_ok=True)
    for distribution in requirements():
        _copy_distribution(distribution, site)
    copy_corral(site)
    corrals_own(site)
    command = root / "usr" / "bin" / "corral"
    command.write_text(f"#!/bin/sh\nexec /usr/bin/python3 -c '{_COMMAND}' \"$@\"\n")
    command.chmod(0o755)
    for library in {found for file in site.rglob("*.so*") if file.is_file() for found in _libraries(file)}:
        _copy_library(root, library)
    return root


def postgres_tree(root: Path) -> Path:
    """Fill `root` with a shell and Debian's PostgreSQL, its programs on the PATH, as in the official image."""
    programs = binaries()
    assert programs is not None, "PostgreSQL is not installed"
    python_tree(root)
    for folder in (programs.parent, Path("/usr/share/postgresql") / programs.parent.name):
        target = root / folder.relative_to("/")
        shutil.copytree(folder, target, symlinks=True, ignore=shutil.ignore_patterns("bitcode", "man", "doc"))
    for link in ("initdb", "postgres", "pg_isready", "psql"):
        (root / "usr" / "bin" / link).symlink_to(programs / link)
    for applet in ("rm", "mv", "mkdir"):
        (root / "bin" / applet).symlink_to("busybox")
    (root / "etc" / "passwd").write_text(f"postgres:x:{POSTGRES_USER}:{POSTGRES_USER}::/tmp:/bin/sh\n")
    for library in {found for file in (root / programs.relative_to("/")).iterdir() for found in _libraries(file)}:
        _copy_library(root, library)
    return root


def requirements() -> list[importlib.metadata.Distribution]:
    """Every distribution that Corral with its Kubernetes engine requires, directly or not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = project["dependencies"] + [text for extra in _EXTRAS for text in project["optional-dependencies"][extra]]
    wanted = [(each.name, more) for each in map(Requirement, texts) for more in ("", *each.extras)]
    found: dict[str, importlib.metadata.Distribution] = {}
    seen = set()
    while wanted:
        name, extra = wanted.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        distribution = importlib.metadata.distribution(name)
        found[name] = distribution
        for text in distribution.requires or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                wanted += [(needed.name, more) for more in ("", *needed.extras)]
    return list(found.values())


def _site_of_the_image(root: Path) -> Path:
    """A package folder that the image's own Python, the one of this environment, searches; Debian's has another name."""
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    words = [str(python), "-I", "-c", "import site; print(site.getsitepackages()[0])"]
    found = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    return root / Path(found).relative_to("/")


def _copy_distribution(distribution: importlib.metadata.Distribution, site: Path) -> None:
    """Copy its modules with their bytecode, because a read-only image cannot store it later."""
    for file in distribution.files or ():
        source = Path(str(distribution.locate_file(file)))
        if ".." in file.parts or "tests" in file.parts or not source.is_file():
            continue
        copy_module(source, site / file)


def _libraries(file: Path) -> Iterator[Path]:
    if file.is_symlink() or not os.access(file, os.R_OK):
        return
    said = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=False).stdout
    yield from (Path(found) for found in _LIBRARY.findall(said) if not Path(found).is_relative_to("/tmp"))


def _copy_library(root: Path, library: Path) -> None:
    target = root / library.relative_to("/")
    if not target.exists() and library.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(library, target)
