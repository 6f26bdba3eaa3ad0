"""Hadoop's own files of settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape


def write_configuration(file: Path, settings: Mapping[str, object]) -> None:
    """Write one of Hadoop's XML files."""
    file.parent.mkdir(parents=True, exist_ok=True)
    found = (
        f"<property><name>{name}</name><value>{escape(str(value))}</value></property>"
        for name, value in settings.items()
    )
    file.write_text("<configuration>\n" + "\n".join(found) + "\n</configuration>\n")
