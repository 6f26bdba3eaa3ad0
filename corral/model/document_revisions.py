"""Configuration documents with a revision history: every change of a document is stored with its author.

A document is identified by kind and name. Every change is a new revision, counted from 1; a deletion is a revision too.
Times are seconds since 1970 between control, service and store, and RFC 3339 in the API.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from corral.model.records import Record

CONFIGURED: Final = "configuration.changed"
"""The kind of the intent that tells control of new revisions; its job is ""."""


class DocumentRevision(msgspec.Struct, frozen=True):
    """One stored revision; `doc` is the canonical document as JSON text, "" if the revision deleted it."""

    kind: str
    name: str
    revision: int
    doc: str
    at: float
    actor: str
    note: str = ""
    deleted: bool = False


class DocumentChange(msgspec.Struct, frozen=True):
    """A document to store, or to delete if `doc` is None."""

    kind: str
    name: str
    doc: str | None
    guard: int | None = None
    """The revision that must be current, 0 if none may exist; None skips the check."""
    note: str = ""


class Documents(msgspec.Struct, frozen=True):
    """All current documents; `change` grows with every transaction that stored a revision."""

    change: int
    revisions: tuple[DocumentRevision, ...] = ()


class DocumentSummary(Record, frozen=True):
    """One revision of a document, as lists and histories show it."""

    kind: str
    name: str
    revision: int
    at: str
    actor: str
    note: str = ""
    deleted: bool = False


class DocumentView(DocumentSummary, frozen=True):
    """One revision with the document itself; `text` is the same document as YAML."""

    document: dict[str, Any] = {}
    text: str = ""


class DocumentDiff(Record, frozen=True):
    """The unified diff of two revisions; "" if they are equal."""

    kind: str
    name: str
    before: int
    """The earlier revision; 0 for none."""
    after: int
    """The later revision; 0 for one that is not stored."""
    diff: str = ""


class GuaranteeFinding(Record, frozen=True):
    """A guarantee that a change would break: `queue` needs `needed` cells of `level`, and `available` exist."""

    message: str
    queue: str = ""
    level: str = ""
    model: str = ""
    needed: int | float = 0
    available: int | float = 0
    preemptible: bool = False
    """Whether the change is possible by preempting the jobs that stand in its way."""


class ConfigurationQuestion(msgspec.Struct, frozen=True):
    """A question to control: check these canonical documents as the complete configuration."""

    documents: tuple[dict[str, Any], ...]


class AppliedDocument(Record, frozen=True):
    """The result for one document of a file; `action` is `created`, `changed`, `unchanged` or `deleted`."""

    kind: str
    name: str
    revision: int
    """The current revision afterwards; in a dry run the one before."""
    action: str
    diff: str = ""


class Applied(Record, frozen=True):
    """The result of applying a file of documents; in a dry run, the result that it would have."""

    documents: tuple[AppliedDocument, ...]
    dry_run: bool = False
    findings: tuple[GuaranteeFinding, ...] = ()
    """The guarantees that were broken because the caller asked for `preempt`."""
