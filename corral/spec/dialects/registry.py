"""The dialects of job documents, those of this tree and those of installed packages (`corral.dialects`)."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint
from typing import Any, Final
from urllib.parse import unquote

from corral.kernel.plug_ins import broken, load, plug_ins
from corral.spec.dialects.dialect import Dialect

GROUP: Final = "corral.dialects"
"""The entry-point group; each entry point is a class that subclasses `Dialect`."""


@cache
def dialects() -> tuple[Dialect, ...]:
    """All dialects in the order in which they are asked.

    Raises InvalidInput if one cannot be loaded.
    """
    return tuple(_loaded(point) for point in plug_ins(GROUP).values())


def dialect_of(data: Any) -> Dialect | None:
    """The dialect that recognises parsed data; None for Corral's own documents."""
    return next((each for each in dialects() if each.recognises(data)), None)


def of_job_type(job_type: str) -> Dialect | None:
    """The dialect whose documents become jobs of this type; None for other types."""
    return next((each for each in dialects() if job_type in each.job_types), None)


def readable(text: str | bytes) -> str | bytes:
    """The text of a job file as YAML; only files of some dialects change."""
    for each in dialects():
        text = each.readable(text)
    return text


def own_secret(name: str) -> str:
    """The name, in its dialect, of a secret that belongs to one job alone; "" for a secret of the user."""
    for each in dialects():
        if each.secret_prefix and name.startswith(each.secret_prefix):
            return name.removeprefix(each.secret_prefix)
    return ""


def kept_secret(file: str) -> str:
    """The name of a secret that only the runtime reads, by its file; "" for a file that the task gets."""
    for each in dialects():
        if each.kept_folder and file.startswith(each.kept_folder):
            return unquote(file.removeprefix(each.kept_folder))
    return ""


def is_for_registries(file: str) -> bool:
    """Whether a secret with this file name is for pulling images."""
    return any(file == each.registries_file for each in dialects() if each.registries_file)


def _loaded(point: EntryPoint) -> Dialect:
    made = load(point, "dialect")
    if not isinstance(made, Dialect):
        raise broken(point, "dialect", "does not give a corral.spec.dialects Dialect")
    return made
