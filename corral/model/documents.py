"""Why: how the cluster is configured is a document with a history, so that who changed it, and from what, stays known.

A document is named by its kind and name; every change of it is a new revision, counted from 1, and a deletion is one too.
Times are seconds since 1970 where control and service exchange values with the store, RFC 3339 in what people are shown.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from corral.model.records import Record

CONFIGURED: Final = "configuration.changed"
"""The kind of the intent that tells control of new revisions; its job is ""."""


class DocumentRevision(msgspec.Struct, frozen=True):
    """One revision as stored; `doc` is the canonical document as JSON text, "" when the revision deleted it."""

    kind: str
    name: str
    revision: int
    doc: str
    at: float
    actor: str
    note: str = ""
    deleted: bool = False


class DocumentChange(msgspec.Struct, frozen=True):
    """A document to be stored, or with `doc` None deleted."""

    kind: str
    name: str
    doc: str | None
    guard: int | None = None
    """The revision that must be the current one, 0 when there must be none; None does not ask."""
    note: str = ""


class Documents(msgspec.Struct, frozen=True):
    """All documents as they are; `change` grows with every transaction that stored a revision."""

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
    """One revision with the document itself; `text` is the same as YAML, as people write it."""

    document: dict[str, Any] = {}
    text: str = ""


class DocumentDiff(Record, frozen=True):
    """The lines that differ between two revisions, as a unified diff; "" when they are the same."""

    kind: str
    name: str
    before: int
    """The earlier revision; 0 for none."""
    after: int
    """The later revision; 0 for one that is not stored."""
    diff: str = ""


class GuaranteeFinding(Record, frozen=True):
    """A guarantee that a change would break: `queue` needs `needed` cells of `level` and there are `available`."""

    message: str
    queue: str = ""
    level: str = ""
    model: str = ""
    needed: int | float = 0
    available: int | float = 0
    preemptible: bool = False
    """Whether the change can be made all the same by ending what stands in its way."""


class ConfigurationQuestion(msgspec.Struct, frozen=True):
    """What control is asked: these documents, canonical, would be all that there are."""

    documents: tuple[dict[str, Any], ...]


class AppliedDocument(Record, frozen=True):
    """What became of one document of a file; `action` is `created`, `changed`, `unchanged` or `deleted`."""

    kind: str
    name: str
    revision: int
    """The current revision after it; for a dry run the one before it."""
    action: str
    diff: str = ""


class Applied(Record, frozen=True):
    """What became of a file of documents; in a dry run, what would."""

    documents: tuple[AppliedDocument, ...]
    dry_run: bool = False
    findings: tuple[GuaranteeFinding, ...] = ()
    """The guarantees that were broken because `preempt` was said."""
