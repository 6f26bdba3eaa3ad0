"""The templates of `/api/v2/template` under `/api/v3/templates`, with Corral's sign-in and errors."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from fastapi import Query, Request
from starlette.responses import Response

from corral.api.authentication import Caller
from corral.api.json_responses import Json, answers, json_body, no_content
from corral.api.late_routes import late_router
from corral.compat.openpai.records.templates import SharedTemplate, TemplateDetail, TemplateItem, TemplatePage
from corral.compat.openpai.routes.operations import openpai_of
from corral.compat.openpai.service.template_fields import TemplateRefusal

router = late_router(prefix="/templates", tags=["templates"])

_MOST_PAGES: Final = 100_000
_LONGEST_SEARCH: Final = 1000
_PICTURE_HEADERS: Final = {
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cache-Control": "private, max-age=3600",
}
_PICTURE: Final = {
    "description": "The picture",
    "content": {f"image/{kind}": {"schema": {"type": "string", "format": "binary"}} for kind in ("png", "jpeg")},
}

Words = Annotated[str, Query(max_length=_LONGEST_SEARCH, description="Words that the template contains.")]
Kind = Annotated[str, Query(description="Only `job`, `dockerimage`, `script`, `data` or `output`.")]
Whose = Annotated[str, Query(description="Only `mine`, `groups` (shared with the caller's) or `everybody`.")]
PageNumber = Annotated[int, Query(ge=1, le=_MOST_PAGES, description="The page, from 1 on.")]
Version = Annotated[str, Query(description="An earlier version; default: the latest.")]


@router.get("", responses=answers(TemplatePage))
async def list_templates(
    request: Request, actor: Caller, q: Words = "", kind: Kind = "", whose: Whose = "", page: PageNumber = 1
) -> Json:
    """Return a page of the templates that the caller sees."""
    return Json(await openpai_of(request).templates.browse(actor, words=q, kind=kind, whose=whose, page=page))


@router.post(
    "",
    responses=answers(SharedTemplate, 201, also=(409, 413)) | answers(SharedTemplate, text="A new version"),
    openapi_extra=json_body(TemplateItem),
    status_code=201,
)
async def share_template(request: Request, actor: Caller) -> Json:
    """Share a template, or a new version of the caller's own."""
    try:
        item = msgspec.json.decode(await request.body())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise TemplateRefusal(400, "The template is not JSON.") from None
    shared, new = await openpai_of(request).templates.share(actor, item)
    return Json(shared, 201 if new else 200)


@router.get("/{kind}/{name}", responses=answers(TemplateDetail))
async def get_template(request: Request, actor: Caller, kind: str, name: str, version: Version = "") -> Json:
    """Return one template with its owner and its versions."""
    return Json(await openpai_of(request).templates.detail(actor, kind, name, version))


@router.delete("/{kind}/{name}", status_code=204, responses=answers(None, 204, text="It is deleted"))
async def delete_template(request: Request, actor: Caller, kind: str, name: str) -> Json:
    """Delete a template with all its versions."""
    await openpai_of(request).templates.remove(actor, kind, name)
    return no_content()


@router.get("/{kind}/{name}/picture", responses=answers(None) | {200: _PICTURE})
async def template_picture(request: Request, actor: Caller, kind: str, name: str) -> Response:
    """Return the first picture of a template."""
    media_type, content = await openpai_of(request).templates.picture(actor, kind, name)
    return Response(content, media_type=media_type, headers=_PICTURE_HEADERS)
