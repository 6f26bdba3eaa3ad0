"""OpenPAI's sign-in method, sign-in with a password, and sign-out."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from fastapi import Request

from corral.api.authentication import service_of
from corral.api.json_responses import Json
from corral.api.late_routes import late_router
from corral.api.password_attempts import counted_attempt
from corral.compat.openpai.routes.callers import AnyCaller
from corral.compat.openpai.routes.operations import openpai_of
from corral.compat.openpai.routes.request_bodies import body_of
from corral.compat.openpai.service.tokens import LOGIN_SECONDS, LONGEST, SHORTEST

router = late_router()

_UserName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]+$", max_length=255)]
_GUESSES: Final = ("IncorrectPasswordError", "NoUserError")


class BasicLogin(msgspec.Struct, frozen=True):
    """A user name, a password, and the lifetime of the token in seconds."""

    username: _UserName
    password: Annotated[str, msgspec.Meta(min_length=6, max_length=1024)]
    expiration: Annotated[int, msgspec.Meta(ge=SHORTEST, le=LONGEST)] = LOGIN_SECONDS

    def __repr__(self) -> str:
        return "BasicLogin(…)"


async def sign_in(request: Request) -> Json:
    """Sign in with a password; the answer contains the token."""
    asked = await body_of(request, BasicLogin)
    async with counted_attempt(request, asked.username, *_GUESSES):
        signed = await openpai_of(request).tokens.sign_in(asked.username, asked.password, asked.expiration)
    return Json(signed)


@router.get("/authn/info")
async def info(request: Request) -> Json:
    """Return the sign-in method of this server."""
    version = request.url.path.split("/")[2]
    if getattr(request.app.state, "oidc", None) is not None:
        told = {"authn_type": "OIDC", "loginURI": f"/api/{version}/authn/oidc/login", "loginURIMethod": "get"}
    else:
        told = {"authn_type": "basic", "loginURI": f"/api/{version}/authn/basic/login", "loginURIMethod": "post"}
    return Json(told)


@router.post("/authn/basic/login")
async def basic_login(request: Request) -> Json:
    """Sign in with a password."""
    return await sign_in(request)


@router.delete("/authn/basic/logout")
async def basic_logout(request: Request, actor: AnyCaller) -> Json:
    """Revoke the token that this call was made with."""
    await service_of(request).sessions.sign_out(actor)
    return Json({"message": "Logout successfully"})
