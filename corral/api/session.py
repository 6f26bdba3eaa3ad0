"""Routes to sign in with a one-time link or a password, and to sign out; all other calls use the token."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

import msgspec
from fastapi import Request

from corral.api.authentication import Caller, clear_session, service_of, set_session
from corral.api.json_responses import Json, answers, json_body, no_content, read_json
from corral.api.password_attempts import counted_attempt
from corral.api.routers import router_of
from corral.kernel.errors import InvalidInput
from corral.model.views import Me, SignedIn, VersionView

router = router_of("session")

_Short = Annotated[str, msgspec.Meta(max_length=1024)]
FEATURES: Final = ("events", "exec", "logs-follow", "code-upload", "idempotency")


class Login(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Credentials: either the TOKEN of a one-time link, or `user` and `password`."""

    link: _Short = ""
    user: _Short = ""
    password: _Short = ""


@router.get("/version", responses=answers(VersionView))
async def version(request: Request) -> Json:
    """Return the server's version and features; needs no token."""
    return Json(VersionView(version=request.app.version, api="v3", features=FEATURES))


@router.post("/login", responses=answers(SignedIn, also=(413,)), openapi_extra=json_body(Login))
async def login(request: Request) -> Json:
    """Sign in; the answer contains a token for programs and sets a cookie for browsers."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise InvalidInput("wrong-media-type", "A sign-in is sent as application/json.")
    asked: Login = read_json(await request.body(), Login)
    if bool(asked.link) == bool(asked.user):
        raise InvalidInput("invalid-login", "Send either the link, or user and password.")
    service = service_of(request)
    async with counted_attempt(request, asked.user):
        if asked.link:
            signed = await service.sessions.sign_in_link(asked.link)
        else:
            signed = await service.sessions.sign_in_password(asked.user, asked.password)
    response = Json(signed)
    expires = datetime.fromisoformat(signed.expires_at).timestamp()
    age = max(0, int(expires - request.app.state.clock.now()))
    set_session(request, response, signed.token, age)
    return response


@router.post("/logout", status_code=204, responses=answers(None, 204))
async def logout(request: Request, actor: Caller) -> Json:
    """Revoke the token that this call was made with."""
    await service_of(request).sessions.sign_out(actor)
    response = no_content()
    clear_session(request, response)
    return response


@router.get("/me", responses=answers(Me))
async def me(request: Request, actor: Caller) -> Json:
    """Return the caller's name, role, groups and managed queues."""
    return Json(Me(user=actor.user, role=actor.role, groups=tuple(actor.groups), manages=actor.manages))
