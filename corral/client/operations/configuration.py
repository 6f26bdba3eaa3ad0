"""Calls for configuration documents; a change takes a note, a guard, and whether it may preempt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from corral.client.calls import Call, call, written

if TYPE_CHECKING:
    from corral.client.schema import Applied, DocumentDiff, DocumentSummary, DocumentView
    from corral.client.types import Page


def documents(
    *, kind: str = "", deleted: bool = False, limit: int = 200, after: str = ""
) -> Call[Page[DocumentSummary]]:
    """Return a page of the documents that configure the cluster, or of those that were deleted."""
    return call("GET", "/documents", {"kind": kind, "deleted": deleted, "limit": limit, "after": after})


def configuration(kind: str, name: str, *, revision: int | None = None) -> Call[DocumentView]:
    """Return one configuration document, as data and as YAML (`text`)."""
    return call("GET", _path(kind, name), {"revision": revision})


def apply(
    text: str | bytes,
    *,
    revisions: Mapping[str, int] | None = None,
    note: str = "",
    dry_run: bool = False,
    preempt: bool = False,
) -> Call[Applied]:
    """Apply every document of a file, or none; `revisions` has those that must be current by KIND/NAME, 0 for none."""
    guards = [f"{name}:{revision}" for name, revision in (revisions or {}).items()]
    return written(call("POST", "/documents", {**_change(note, dry_run, preempt), "revision": guards}), text)


def put_configuration(
    kind: str,
    name: str,
    text: str | bytes,
    *,
    guard: int | None = None,
    note: str = "",
    dry_run: bool = False,
    preempt: bool = False,
) -> Call[Applied]:
    """Apply one document; `guard` is the revision that must be the current one, 0 if there must be none."""
    return written(call("PUT", _path(kind, name), _change(note, dry_run, preempt), **_guarded(guard)), text)


def diff(text: str | bytes) -> Call[Applied]:
    """Return the changes that applying a file would make."""
    return written(call("POST", "/documents/diff"), text)


def configuration_history(kind: str, name: str, *, limit: int = 100, after: str = "") -> Call[Page[DocumentSummary]]:
    """Return a page of a document's revisions, newest first."""
    return call("GET", _path(kind, name, "history"), {"limit": limit, "after": after})


def configuration_diff(
    kind: str, name: str, *, before: int | None = None, after: int | None = None
) -> Call[DocumentDiff]:
    """Return the differences between two revisions, by default the last two."""
    query = {"from": None if before is None else str(before), "to": after}
    return call("GET", _path(kind, name, "diff"), query)


def roll_back(
    kind: str,
    name: str,
    revision: int,
    *,
    guard: int | None = None,
    note: str = "",
    dry_run: bool = False,
    preempt: bool = False,
) -> Call[Applied]:
    """Make an earlier revision the current one, as a new revision."""
    path, query = _path(kind, name, "rollback"), _change(note, dry_run, preempt)
    return call("POST", path, query, data={"revision": revision}, **_guarded(guard))


def delete_configuration(
    kind: str, name: str, *, guard: int | None = None, note: str = "", dry_run: bool = False, preempt: bool = False
) -> Call[Applied]:
    """Delete a document; its revisions are kept."""
    return call("DELETE", _path(kind, name), _change(note, dry_run, preempt), **_guarded(guard))


def _path(kind: str, name: str, *parts: str) -> str:
    return "/".join(["/documents", quote(kind, safe=""), quote(name, safe=""), *parts])


def _guarded(guard: int | None) -> dict[str, str]:
    """Return the header with the revision that must be the current one."""
    if guard is None:
        return {}
    return {"if_match": f'"{guard}"'} if guard else {"if_none_match": "*"}


def _change(note: str, dry_run: bool, preempt: bool) -> dict[str, Any]:
    return {"note": note, "dryRun": dry_run, "preempt": preempt}
