"""What the API answers about uploads of code archives."""

from __future__ import annotations

from corral.model.records import Record


class Uploaded(Record, frozen=True):
    """A stored blob."""

    digest: str
    size: int


class UploadProgress(Record, frozen=True):
    """How far the upload of an archive is."""

    digest: str
    size: int
    """Bytes that the server has."""
    complete: bool
    """Whether the archive is whole, checked and stored."""
