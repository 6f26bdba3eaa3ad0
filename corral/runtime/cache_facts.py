"""What compiled code depends on, as far as it can be read in a moment and without starting a program.

The facts become the key of a bundle. They only keep bundles apart that are of no use to each other: the frameworks
check again themselves whether an entry fits.
"""

from __future__ import annotations

import glob
import hashlib
import os
import platform
import re
import shutil
from collections.abc import Iterable, Mapping
from typing import Any

PACKAGES = ("torch", "triton", "jax", "jaxlib", "tensorflow", "vllm")
"""Packages whose versions are part of the key."""
_PACKAGE = re.compile(rf"({'|'.join(PACKAGES)})-([0-9][^-/]*)\.dist-info")
_DRIVERS = ("/proc/driver/nvidia/version", "/sys/module/amdgpu/version")
_DIGEST = re.compile(r"@(sha256:[0-9a-f]{64})\Z")
_MOST_BYTES = 1 << 20


def facts_of(given: Mapping[str, Any], argv: list[str], env: Mapping[str, str], *, image_seen: bool) -> dict[str, str]:
    """The facts by name; `given` are those of the plan. Packages are looked for only where the image is seen."""
    found = {
        "image": _image(str(given.get("image", ""))),
        "devices": ", ".join(given.get("devices", ())),
        "driver": _driver() if given.get("devices") else "",
        "machine": platform.machine(),
        "cpu": _cpu(_text("/proc/cpuinfo")),
        "libc": _libc() if image_seen else "",
        **(versions(_site_folders(argv, env)) if image_seen else {}),
    }
    return {name: value[:1000] for name, value in found.items() if value}


def versions(folders: Iterable[str]) -> dict[str, str]:
    """The versions of the known packages in folders of Python packages; the first folder that has one wins."""
    found: dict[str, str] = {}
    for folder in folders:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in sorted(names):
            if match := _PACKAGE.fullmatch(name):
                found.setdefault(match[1], match[2])
    return found


def _site_folders(argv: list[str], env: Mapping[str, str]) -> list[str]:
    """The folders of packages of the Python that the command names, or else of the first one on its PATH."""
    path = env.get("PATH", os.defpath)
    named = argv[0] if argv and os.path.basename(argv[0]).startswith("python") else ""
    program = next(
        (each for name in (named, "python3", "python") if name and (each := shutil.which(name, path=path))), ""
    )
    places = [os.path.dirname(os.path.dirname(each)) for each in (program, os.path.realpath(program)) if program]
    places += [env[name] for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if env.get(name)]
    pattern = os.path.join("lib*", "python3*", "*-packages")
    found = [each for each in env.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(each)]
    for place in dict.fromkeys(places):
        found += sorted(glob.glob(os.path.join(glob.escape(place), pattern)))
    return found


def _image(name: str) -> str:
    """The digest of an image that is named by it, whatever registry and tag stand beside it; else its name."""
    found = _DIGEST.search(name)
    return found[1] if found else name


def _cpu(text: str) -> str:
    """A digest of the processor's features, as the first processor of /proc/cpuinfo lists them."""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return hashlib.sha256(" ".join(sorted(value.split())).encode()).hexdigest()[:16]
    return ""


def _driver() -> str:
    return next((text.splitlines()[0] for path in _DRIVERS if (text := _text(path).strip())), "")


def _libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (OSError, ValueError):  # another C library
        return ""


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_BYTES)
    except OSError:
        return ""
