"""Routes for the documents that configure the cluster, guarded by their revision.

The revision is the document's entity tag. A change with `If-Match` is refused when the document has changed since, one
with `If-None-Match: *` when the document exists. A file of several documents names theirs with `revision`. Without any of
these, the current revision is replaced.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, TypedDict

import msgspec
from fastapi import Depends, Header, Path, Query, Request

from corral.api.authentication import Caller, service_of
from corral.api.client_disconnect import cancel_on_disconnect
from corral.api.json_responses import Json, answers, json_body, read_json
from corral.api.parameters import After, Limit
from corral.api.routers import router_of
from corral.kernel.errors import InvalidInput
from corral.model.document_revisions import Applied, DocumentDiff, DocumentSummary, DocumentView
from corral.model.records import Page

router = router_of("documents")

_AT: Final = re.compile(r"([A-Za-z]{1,40})/([A-Za-z0-9][A-Za-z0-9._-]{0,62}):([0-9]{1,9})")
"""A document and the revision that it must be at."""
_FILE: Final = {
    "requestBody": {
        "required": True,
        "description": "One or several documents: YAML parted by `---`, or JSON.",
        "content": {
            "application/yaml": {"schema": {"type": "string"}},
            "application/json": {"schema": {"type": "object"}},
        },
    }
}
Kind = Annotated[
    str,
    Path(
        pattern="^[A-Za-z]{1,40}$",
        description="Cluster, Queue, Policy, Storage or Prices; any case, and the plural, will do.",
    ),
]
DocumentName = Annotated[
    str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$", description="The document's name; a Cluster's engine.")
]
OfKind = Annotated[str, Query(max_length=40, description="Only documents of this kind.")]
Deleted = Annotated[bool, Query(description="Those that were deleted instead, each at the revision that deleted it.")]
Revision = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="The revision; default: the current one.")]
From = Annotated[
    int | None, Query(alias="from", ge=0, le=2**31 - 1, description="The earlier revision; 0 for nothing.")
]
To = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="The later revision; default: the latest.")]
DryRun = Annotated[bool, Query(alias="dryRun", description="Store nothing; say what would change, or what refuses it.")]
Preempt = Annotated[bool, Query(description="Apply it although jobs that run would lose what they hold by right.")]
Note = Annotated[str, Query(max_length=500, description="Why, for the history.")]
Revisions = Annotated[
    list[str],
    Query(
        alias="revision",
        max_length=1000,
        description="KIND/NAME:REVISION, the revision that this document of the file must be at (0: none); repeat it.",
    ),
]
IfMatch = Annotated[str, Header(max_length=100, description="The revision that must be the current one.")]
IfNoneMatch = Annotated[str, Header(max_length=100, description="`*`: the document must not be there.")]


class How(TypedDict):
    """The options of a change."""

    dry_run: bool
    preempt: bool
    note: str


class GuardedHow(How):
    """The options of a change to one document; `guard` is the revision that must be the current one."""

    guard: int | None


async def _how(dry_run: DryRun = False, preempt: Preempt = False, note: Note = "") -> How:
    return {"dry_run": dry_run, "preempt": preempt, "note": note}


async def _guarded_how(how: Annotated[How, Depends(_how)], if_match: IfMatch = "") -> GuardedHow:
    return {**how, "guard": _guard(if_match, "")}


Change = Annotated[How, Depends(_how)]
GuardedChange = Annotated[GuardedHow, Depends(_guarded_how)]


class RollbackRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The revision to make the current one again."""

    revision: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


@router.get("/documents", responses=answers(Page[DocumentSummary]))
async def list_documents(
    request: Request, actor: Caller, kind: OfKind = "", deleted: Deleted = False, limit: Limit = 200, after: After = ""
) -> Json:
    """List the documents that configure the cluster, by kind and name."""
    page = service_of(request).configuration.page(actor, kind=kind, deleted=deleted, limit=limit, after=after)
    return Json(await page)


@router.post("/documents", responses=answers(Applied, also=(409, 413)), openapi_extra=_FILE)
async def apply_documents(request: Request, actor: Caller, how: Change, revision: Revisions = []) -> Json:  # noqa: B006
    """Apply every document of a file, or none of them."""
    guards = _guards(revision)
    return Json(await service_of(request).configuration.apply(actor, await request.body(), guards=guards, **how))


@router.post("/documents/diff", responses=answers(Applied, also=(413,)), openapi_extra=_FILE)
async def compare_documents(request: Request, actor: Caller) -> Json:
    """Return the lines that applying a file would change, without checks against running jobs."""
    work = service_of(request).configuration.compare(actor, await request.body())
    return Json(await cancel_on_disconnect(request, work))


@router.get("/documents/{kind}/{name}", responses=answers(DocumentView))
async def get_document(
    request: Request, actor: Caller, kind: Kind, name: DocumentName, revision: Revision = None
) -> Json:
    """Return one document, as data and as YAML; its revision is its entity tag."""
    found = await service_of(request).configuration.get(actor, kind, name, revision)
    return Json(found, 200, {"ETag": f'"{found.revision}"'})


@router.put("/documents/{kind}/{name}", responses=answers(Applied, also=(409, 413)), openapi_extra=_FILE)
async def put_document(
    request: Request,
    actor: Caller,
    kind: Kind,
    name: DocumentName,
    how: Change,
    if_match: IfMatch = "",
    if_none_match: IfNoneMatch = "",
) -> Json:
    """Apply this one document."""
    guard, body = _guard(if_match, if_none_match), await request.body()
    return _applied(await service_of(request).configuration.apply(actor, body, only=(kind, name), guard=guard, **how))


@router.delete("/documents/{kind}/{name}", responses=answers(Applied, also=(409,)))
async def delete_document(request: Request, actor: Caller, kind: Kind, name: DocumentName, how: GuardedChange) -> Json:
    """Delete a document; its revisions are kept, and it can be rolled back to one of them."""
    return _applied(await service_of(request).configuration.delete(actor, kind, name, **how))


@router.get("/documents/{kind}/{name}/history", responses=answers(Page[DocumentSummary]))
async def document_history(
    request: Request, actor: Caller, kind: Kind, name: DocumentName, limit: Limit = 100, after: After = ""
) -> Json:
    """List the revisions of a document, newest first: author, time and note."""
    return Json(await service_of(request).configuration.history(actor, kind, name, limit=limit, after=after))


@router.get("/documents/{kind}/{name}/diff", responses=answers(DocumentDiff))
async def document_diff(
    request: Request, actor: Caller, kind: Kind, name: DocumentName, from_: From = None, to: To = None
) -> Json:
    """Return the lines that differ between two revisions; by default the last two."""
    return Json(await service_of(request).configuration.diff(actor, kind, name, before=from_, after=to))


@router.post(
    "/documents/{kind}/{name}/rollback",
    responses=answers(Applied, also=(409, 413)),
    openapi_extra=json_body(RollbackRequest),
)
async def roll_back_document(
    request: Request, actor: Caller, kind: Kind, name: DocumentName, how: GuardedChange
) -> Json:
    """Make an earlier revision the current one, as a new revision."""
    asked: RollbackRequest = read_json(await request.body(), RollbackRequest)
    return _applied(await service_of(request).configuration.roll_back(actor, kind, name, asked.revision, **how))


def _applied(applied: Applied) -> Json:
    """Return the answer to a change of one document, with its new entity tag."""
    done = applied.documents[0]
    gone = applied.dry_run or done.action == "deleted"
    return Json(applied, 200, None if gone else {"ETag": f'"{done.revision}"'})


def _guard(if_match: str, if_none_match: str) -> int | None:
    """Return the revision that must be the current one; 0 if the document must not exist, None for any.

    Raises InvalidInput for a header that does not hold a revision.
    """
    if if_none_match:
        if if_none_match.strip() != "*" or if_match:
            raise InvalidInput("invalid-guard", "If-None-Match takes * alone, and not together with If-Match.")
        return 0
    if not if_match:
        return None
    number = if_match.strip().removeprefix('"').removesuffix('"')
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise InvalidInput("invalid-guard", 'If-Match takes a revision, such as "3"; history lists them.')
    return int(number)


def _guards(revisions: list[str]) -> dict[tuple[str, str], int]:
    """Return the revision that each named document must be at.

    Raises InvalidInput for a text that does not name a document and its revision.
    """
    guards: dict[tuple[str, str], int] = {}
    for text in revisions:
        found = _AT.fullmatch(text)
        if found is None:
            raise InvalidInput(
                "invalid-guard", f'revision takes KIND/NAME:REVISION, such as "Queue/a:3", got "{text[:80]}".'
            )
        guards[found[1], found[2]] = int(found[3])
    return guards
