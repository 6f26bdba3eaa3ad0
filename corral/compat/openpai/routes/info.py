"""OpenPAI's version and name of the API, which clients read first."""

from __future__ import annotations

from typing import Final

from fastapi import Request
from fastapi.responses import PlainTextResponse

from corral.api.json_responses import Json
from corral.api.late_routes import late_router

VERSION: Final = "v1.8.1"
"""The release of OpenPAI whose REST API is served."""

router = late_router()
legacy = late_router()
_EVERY: Final = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"]


@router.api_route("/info", methods=_EVERY)
async def info(request: Request) -> Json:
    """Return the name and version of the API, and the sign-in method."""
    return _told(request)


@router.api_route("", methods=_EVERY)
async def root() -> PlainTextResponse:
    """Return a line of text that names the API."""
    return PlainTextResponse("PAI RESTful API v2 (beta version)")


@legacy.api_route("", methods=_EVERY)
async def legacy_root(request: Request) -> Json:
    """Return the same as `/info` of version 2; OpenPAI's SDK reads it from here."""
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
