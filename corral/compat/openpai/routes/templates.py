"""The job template marketplace of OpenPAI in 2019, under `/api/v2/template`: share, search and fetch."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final

import msgspec
from fastapi import Request

from corral.api.json_responses import Json
from corral.api.late_routes import late_router
from corral.compat.openpai.routes.anonymous_reads import Reader
from corral.compat.openpai.routes.callers import AnyCaller
from corral.compat.openpai.routes.operations import openpai_of
from corral.compat.openpai.routes.request_bodies import document_of
from corral.compat.openpai.service.template_fields import TemplateRefusal

router = late_router()

_DIGITS: Final = 6


@router.get("/template")
async def search(request: Request, actor: Reader) -> Json:
    """Return a page of the templates that contain the given words."""
    query = request.query_params
    words = query.get("query", "")
    if not words:
        return _refused(TemplateRefusal(400, 'Failed to extract "query" parameter in the request.'))
    openpai = openpai_of(request)
    return await _answer(openpai.templates.all(actor, words=words, kind=query.get("type", ""), page=_page(request)))


@router.post("/template")
async def share(request: Request, actor: AnyCaller) -> Json:
    """Share a template, or a new version of the caller's own."""
    try:
        item = msgspec.json.decode(await document_of(request))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _refused(TemplateRefusal(400, "Failed to parse template content."))
    try:
        summary, new = await openpai_of(request).templates.share(actor, item)
    except TemplateRefusal as refusal:
        return _refused(refusal)
    return Json(summary, 201 if new else 200)


@router.get("/template/{kind}")
async def list_of(request: Request, actor: Reader, kind: str) -> Json:
    """Return a page of the templates of one type."""
    return await _answer(openpai_of(request).templates.all(actor, kind=kind, page=_page(request)))


@router.get("/template/{kind}/{name}")
async def fetch(request: Request, actor: Reader, kind: str, name: str) -> Json:
    """Return one template."""
    return await _answer(openpai_of(request).templates.get(actor, kind, name, request.query_params.get("version", "")))


async def _answer(found: Awaitable[dict[str, Any]]) -> Json:
    try:
        return Json(await found)
    except TemplateRefusal as refusal:
        return _refused(refusal)


def _refused(refusal: TemplateRefusal) -> Json:
    """Return a refusal in the marketplace's shape: its `code` is the HTTP status, not a name."""
    return Json({"code": refusal.status, "message": refusal.theirs}, refusal.status)


def _page(request: Request) -> int:
    text = request.query_params.get("pageno", "")
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) <= _DIGITS and int(text) else 1
