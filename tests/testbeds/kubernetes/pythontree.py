"""File trees with this machine's Python, for tests of containers that need Python; no registry has such an image."""

from __future__ import annotations

import compileall
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from importlib import metadata
from importlib.util import cache_from_source
from pathlib import Path
from typing import Final

import corral
from tests.testbeds.docker import static_busybox

PYTHON: Final = "corral.test/python:1"
CORRAL: Final = "corral.test/corral:1"
CORRAL_ENV: Final = {"PYTHONPATH": "/opt/corral"}
_REQUIRED: Final = re.compile(r"[^A-Za-z0-9_.-]")
_UNUSED_MODELS: Final = re.compile(r"^botocore/data/(?!s3/|sts/|sso/|sso-oidc/)[^/]+/")
"""Botocore's models except those that an object store needs; the rest is a hundred megabytes."""
_LEFT_OUT: Final = (
    "site-packages",
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "ensurepip",
    "lib2to3",
    "config-*",
)
_LIBRARIES: Final = ("libgcc_s.so.1", "libstdc++.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libz.so.1")
"""Libraries for modules and programs that a pod finds in storages. A thread needs the first one to end by itself."""
_LIBRARY: Final = re.compile(r"(/\S+) \(0x")


def python_tree(root: Path) -> Path:
    """Fill `root` with busybox as the shell and this Python with its standard library, at their paths on this machine."""
    busybox = static_busybox()
    assert busybox is not None, "busybox-static is not installed"
    for folder in ("bin", "usr/bin", "tmp", "etc", "proc", "root"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    shutil.copy2(busybox, root / "bin" / "busybox")
    for applet in ("sh", "cp", "ls", "cat", "echo", "sleep", "ps", "find", "sort"):
        (root / "bin" / applet).symlink_to("busybox")
    return add_python(root)


def add_python(root: Path) -> Path:
    """Add this Python with its standard library to a tree, at their paths here, and the missing libraries."""
    program = Path(os.path.realpath(sys.executable))
    stdlib = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix, "base": sys.base_prefix}))
    shutil.copytree(stdlib, _inside(root, stdlib), ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True)
    _copy(root, program)
    (root / "usr" / "bin" / "python3").symlink_to(program)
    for library in {found for file in (program, *stdlib.glob("lib-dynload/*.so")) for found in _libraries(file)}:
        _copy(root, library)
    return root


def runtime_tree(root: Path) -> Path:
    """The same with this Corral and the imports of it and of its object stores; `CORRAL_ENV` finds it."""
    python_tree(root)
    for name in _LIBRARIES:
        for library in Path("/usr/lib").glob(f"*/{name}"):
            _copy(root, library)
    here = root / "opt" / "corral"
    copy_corral(here)
    for name in _needed(["fsspec", "s3fs"]):
        found = metadata.distribution(name)
        for file in found.files or ():
            place = Path(str(found.locate_file(file)))
            if not _UNUSED_MODELS.search(str(file)) and ".." not in file.parts and place.is_file():
                copy_module(place, here / file)
    return root


def copy_corral(folder: Path) -> None:
    """Copy this Corral into a folder of modules, compiled: a container with a read-only root would compile it each time."""
    source = Path(corral.__file__).parent
    compileall.compile_dir(source, quiet=1)
    shutil.copytree(source, folder / "corral", ignore=shutil.ignore_patterns("static"))


def copy_module(source: Path, target: Path) -> None:
    """Copy a file, and with a module its compiled bytecode."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)
    compiled = Path(cache_from_source(str(source))) if source.suffix == ".py" else source
    if compiled != source and compiled.is_file():
        (target.parent / compiled.parent.name).mkdir(exist_ok=True)
        shutil.copy2(compiled, target.parent / compiled.parent.name)


def _needed(names: Sequence[str]) -> set[str]:
    """These distributions and all that they require."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop().lower().replace("_", "-")
        if name not in found:
            found.add(name)
            for line in metadata.requires(name) or ():
                if "extra ==" not in line and _is_here(needed := _REQUIRED.split(line)[0]):
                    left.append(needed)
    return found


def _is_here(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _libraries(file: Path) -> list[Path]:
    said = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=True).stdout
    return [Path(found) for found in _LIBRARY.findall(said)]


def _copy(root: Path, file: Path) -> None:
    target = _inside(root, file)
    if not os.path.lexists(target):  # a path in a tree may be a link that leads out of it
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)


def _inside(root: Path, place: Path) -> Path:
    return root / place.relative_to("/")
