"""OpenPAI's routes that list, create, check and revoke tokens; `token` in version 1, `tokens` in version 2."""

from __future__ import annotations

from fastapi import Request

from corral.api.json_responses import Json
from corral.api.late_routes import late_router
from corral.compat.openpai.routes.callers import AnyCaller, SignedInCaller
from corral.compat.openpai.routes.operations import openpai_of
from corral.compat.openpai.routes.sign_in import sign_in

router = late_router()


@router.get("")
async def get_tokens(request: Request, actor: SignedInCaller) -> Json:
    """List the caller's valid tokens."""
    return Json({"tokens": await openpai_of(request).tokens.all(actor)})


@router.post("")
async def create_token(request: Request) -> Json:
    """Sign in with a password, as clients did before `/authn/basic/login`."""
    return await sign_in(request)


@router.post("/application")
async def create_application_token(request: Request, actor: SignedInCaller) -> Json:
    """Create a token for a program, which does not expire."""
    return Json({"token": await openpai_of(request).tokens.create(actor), "application": True})


@router.get("/check")
async def check_token(actor: AnyCaller) -> Json:
    """Report that the call's token is valid."""
    return Json({"message": "token is valid"})


@router.delete("/{token}")
async def delete_token(request: Request, actor: SignedInCaller, token: str) -> Json:
    """Revoke a token."""
    await openpai_of(request).tokens.revoke(actor, token)
    return Json({"message": "revoke successfully"})
