"""Distributions of a few files in a folder, as an installer leaves them, to be found on a path of modules."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def distribution(folder: Path, name: str, groups: Mapping[str, Mapping[str, str]]) -> Path:
    """Write the metadata of a distribution with these entry points by group; returns `folder`, for the path."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        line for group, points in groups.items() for line in (f"[{group}]", *(f"{k} = {v}" for k, v in points.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


def corrals_own(folder: Path) -> Path:
    """Write the metadata of Corral itself, with the entry points of this tree."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return distribution(folder, "corral", {"console_scripts": project["scripts"], **project["entry-points"]})
