"""Why: a client's first question is what it talks to; the answer is that of the OpenPAI whose API this is."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from corral.api.wire import Json

VERSION: Final = "v1.8.1"
"""The release of OpenPAI whose REST API is served."""

router = APIRouter()
legacy = APIRouter()
_EVERY: Final = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"]


@router.api_route("/info", methods=_EVERY)
async def info(request: Request) -> Json:
    """What is served here, and how people sign in."""
    return _told(request)


@router.api_route("", methods=_EVERY)
async def root() -> PlainTextResponse:
    """A line that says which API this is."""
    return PlainTextResponse("PAI RESTful API v2 (beta version)")


@legacy.api_route("", methods=_EVERY)
async def legacy_root(request: Request) -> Json:
    """The same of the first version, which told here what `/info` of the second tells: OpenPAI's SDK asks this."""
    return _told(request)


def _told(request: Request) -> Json:
    oidc = getattr(request.app.state, "oidc", None) is not None
    told = {
        "name": "PAI RESTful API",
        "version": VERSION,
        "launcherType": "k8s",
        "authnMethod": "OIDC" if oidc else "basic",
    }
    return Json(told)
