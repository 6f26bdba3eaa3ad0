"""The JSON shapes of a job's outputs, and of what is shown of a file."""

from __future__ import annotations

from typing import Annotated

from corral.model.records import Record, one_of


class FilePreview(Record, frozen=True):
    """What a page shows of a file: a part of its text, some rows of its table, or that it is a picture."""

    kind: Annotated[str, one_of("text", "table", "picture", "other")]
    """`other` is not shown."""
    size: int
    text: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    cut: bool = False
    """Whether the file has more than is shown."""


class OutputView(Record, frozen=True):
    """A place where a job keeps results: an output of its document, or a storage that its tasks may write."""

    index: int
    uri: str
    """Empty for a storage."""
    path: str
    """Where the tasks have it."""
    storage: str = ""
    """The storage that it is, or is in; empty: none that the caller may use."""
    browsable: bool = False
    message: str = ""
    """Why it is not shown."""
