"""Routes of the sign-in with OpenID Connect: login, callback and the provider's logout notifications."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from fastapi import Query, Request
from starlette.responses import RedirectResponse, Response

from corral.api.authentication import clear_session, current_actor, own_cookie, service_of, session_cookie, set_session
from corral.api.json_responses import Json, answers, no_content, refused_with
from corral.api.routers import router_of
from corral.kernel.errors import CorralError, InvalidInput, NotFound, Unauthenticated
from corral.model.views import OidcView, SignedIn
from corral.service.openid.flow import MINUTES

if TYPE_CHECKING:
    from corral.service.openid import OpenId

router = router_of("session")

GoOn = Callable[[Request, SignedIn, Mapping[str, str]], Awaitable[Response]]
"""Returns the response after a sign-in, from the data that the sign-in was started with."""

CALLBACK: Final = "/api/v3/oidc/callback"
_COOKIE: Final = "corral_oidc_"
_INSIDE: Final = re.compile(r"/(?![/\\])[^\x00-\x20\\]*")
_FORM_LIMIT: Final = 16 * 1024
_TAKEN: Final = ("code", "state", "iss", "error", "session_state")
_LOGOUT_FORM: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "properties": {"logout_token": {"type": "string"}},
                    "required": ["logout_token"],
                }
            }
        },
    }
}
_Next = Annotated[str, Query(max_length=2048, description="The page of the portal to go on to.")]
_Issuer = Annotated[str, Query(max_length=2048, description="The provider that ended the session.")]
_Session = Annotated[str, Query(max_length=2048, description="The session that it ended, by the provider's name.")]


def _leads(where: str) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of a redirect, which has no answer below 300: browsers follow its `Location`."""
    location = {
        "description": f"The address of {where}; of the sign-in page, with the code of the refusal, where it is refused.",
        "required": True,
        "schema": {"type": "string", "format": "uri-reference"},
    }
    documented: dict[int | str, dict[str, Any]] = {
        303: {"description": f"Leads to {where}", "headers": {"Location": location}, "content": {}}
    }
    return documented | {status: refused_with(status) for status in (400, 404, 422, 503)}


@router.get("/oidc", responses=answers(OidcView))
async def oidc(request: Request) -> Json:
    """Return whether OpenID Connect is set up, and the label of its sign-in button; needs no token."""
    known: OpenId | None = request.app.state.oidc
    if known is None:
        return Json(OidcView(enabled=False))
    host = urlsplit(known.settings.issuer).hostname or ""
    return Json(OidcView(enabled=True, label=known.settings.label or f"Sign in with {host}"))


@router.get("/oidc/login", status_code=303, responses=_leads("the provider"))
async def oidc_login(request: Request, next: _Next = "/") -> Response:
    """Start a sign-in at the provider; `next` is the portal's page to return to."""
    openid_of(request)
    try:
        return await begin(request, {"next": inside(next)})
    except CorralError as error:
        return _refused(request, error)


@router.get("/oidc/callback", status_code=303, responses=_leads("the page that was asked for"))
async def oidc_callback(request: Request) -> Response:
    """Finish a sign-in when the provider returns the browser, and set the session cookie."""
    return await finish(request)


@router.post("/oidc/callback", status_code=303, responses=_leads("the same address, to be read"))
async def oidc_posted(request: Request) -> Response:
    """Accept the provider's answer as a form, and redirect to the same URL with a query.

    Browsers send their cookies with the redirected GET, but not with a POST from another site.
    """
    return await read_instead(request)


@router.get("/oidc/logout", status_code=303, responses=_leads("the provider's sign-out, or the sign-in"))
async def oidc_logout(request: Request) -> Response:
    """End this session, and the provider's session if it began there."""
    return await leave(request)


@router.get("/oidc/frontchannel-logout", status_code=204, responses=answers(None, 204))
async def oidc_ended(request: Request, iss: _Issuer = "", sid: _Session = "") -> Response:
    """End the sessions that began in a session of the provider, which has ended (front-channel logout)."""
    if sid and iss == openid_of(request).settings.issuer:
        await service_of(request).openid_sessions.end(iss, "", sid)
    return no_content()


@router.post(
    "/oidc/backchannel-logout",
    status_code=204,
    responses=answers(None, 204, also=(401, 503)),
    openapi_extra=_LOGOUT_FORM,
)
async def oidc_ended_behind(request: Request) -> Response:
    """End the sessions named in a signed logout token that the provider sends (back-channel logout)."""
    openid = openid_of(request)
    token = dict(await _form(request)).get("logout_token", "")
    subject, session = await openid.provider.ended(token)
    await service_of(request).openid_sessions.end(openid.settings.issuer, subject, session)
    return no_content()


def openid_of(request: Request) -> OpenId:
    """Return the OpenID Connect provider.

    Raises NotFound when none is set up.
    """
    known: OpenId | None = request.app.state.oidc
    if known is None:
        raise NotFound("no-oidc", "Sign-in with OpenID Connect is not configured; an administrator sets oidc_issuer.")
    return known


async def begin(request: Request, next: Mapping[str, str]) -> Response:
    """Redirect the browser to the provider; `next` is kept for the response after the sign-in."""
    begun = await openid_of(request).begin(request.app.state.oidc_redirect_url or public_url(request) + CALLBACK, next)
    response = RedirectResponse(begun.address, 303)
    response.set_cookie(
        _cookie(request, begun.state),
        begun.sealed,
        max_age=MINUTES * 60,
        path="/",
        secure=request.app.state.secure,
        httponly=True,
        samesite="lax",
    )
    return response


async def finish(request: Request) -> Response:
    """Finish the sign-in of a browser that returns from the provider, and redirect it."""
    answer = {name: value for name, value in request.query_params.items() if name in _TAKEN}
    cookie = _cookie(request, answer.get("state", ""))
    openid, service = openid_of(request), service_of(request)
    try:
        person, next = await openid.finish(answer, request.cookies.get(cookie, ""))
        signed = await service.openid_sessions.sign_in(person, openid.settings)
    except CorralError as error:
        response = _refused(request, error)
    else:
        onward: GoOn = request.app.state.oidc_onward.get(next.get("mode"), to_page)
        response = await onward(request, signed, next)
        _hand_out(request, response, signed)
    response.delete_cookie(cookie, path="/", secure=request.app.state.secure, httponly=True, samesite="lax")
    return response


async def to_page(request: Request, signed: SignedIn, next: Mapping[str, str]) -> Response:
    """Redirect to the portal's page that was requested."""
    return RedirectResponse(inside(next.get("next", "")), 303)


async def read_instead(request: Request) -> Response:
    """Redirect a browser that sent a form to the same URL, with the form's fields as its query."""
    openid_of(request)
    fields = [(name, value) for name, value in await _form(request) if name in _TAKEN]
    return RedirectResponse(f"{request.url.path}?{urlencode(fields)}", 303)


async def leave(request: Request) -> Response:
    """End the session of the browser's cookie, and redirect to the provider's sign-out if it began there.

    A link on another site ends nothing, because browsers do not send the cookie with it.
    """
    openid, service = openid_of(request), service_of(request)
    target = public_url(request) + "/sign-in"
    if not request.cookies.get(session_cookie(request)):
        return RedirectResponse(target, 303)
    try:
        actor = await current_actor(request)
    except Unauthenticated:
        return RedirectResponse(target, 303)
    at_provider = await service.openid_sessions.has_session(actor)
    await service.sessions.sign_out(actor)
    response = RedirectResponse(await openid.leave(target) if at_provider else target, 303)
    clear_session(request, response)
    return response


def public_url(request: Request) -> str:
    """Return the URL under which browsers reach this server, without a slash at its end."""
    given: str = request.app.state.public_url
    return (given or str(request.base_url)).rstrip("/")


def inside(next: str) -> str:
    """Return a path within the portal unchanged, and `/` for anything else, such as another site."""
    return next if _INSIDE.fullmatch(next) else "/"


async def _form(request: Request) -> list[tuple[str, str]]:
    body = await request.body()
    if len(body) > _FORM_LIMIT:
        raise InvalidInput("bad-form", "The provider's answer is too long.")
    try:
        return parse_qsl(body.decode("ascii"), max_num_fields=100)
    except ValueError:
        raise InvalidInput("bad-form", "The provider's answer is not a form.") from None


def _hand_out(request: Request, response: Response, signed: SignedIn) -> None:
    expires = datetime.fromisoformat(signed.expires_at).timestamp()
    age = max(0, int(expires - request.app.state.clock.now()))
    set_session(request, response, signed.token, age)


def _refused(request: Request, error: CorralError) -> Response:
    """Redirect to the sign-in page, which explains the error code."""
    return RedirectResponse(f"/sign-in?{urlencode({'refused': error.code})}", 303)


def _cookie(request: Request, state: str) -> str:
    """Return the name of one sign-in's cookie, so that sign-ins in two windows do not disturb each other."""
    return own_cookie(request, _COOKIE + hashlib.sha256(state.encode()).hexdigest()[:16])
