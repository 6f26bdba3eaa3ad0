"""The built web page and the way to its files; no logic."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def portal_folder() -> Path:
    """The folder of the built portal; it may not exist."""
    return Path(str(files(__name__))) / "static"
