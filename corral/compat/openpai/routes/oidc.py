"""OpenPAI's URLs for the sign-in with OpenID Connect, used by its portal and plugins.

After the sign-in, the browser goes to the URL that the client gave, with the user's name in the query.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final
from urllib.parse import unquote, urlencode, urlsplit

from fastapi import Query, Request
from starlette.responses import RedirectResponse, Response

from corral.api import oidc
from corral.api.authentication import service_of
from corral.api.late_routes import late_router
from corral.compat.openpai.routes.operations import openpai_of
from corral.compat.openpai.service.errors import bad_parameters
from corral.kernel.errors import InvalidInput
from corral.model.views import SignedIn

router = late_router()

MODE: Final = "openpai"
"""The `mode` in a sign-in's data that marks a sign-in begun here."""
_Text = Annotated[str, Query(max_length=2000)]


@router.get("/authn/oidc/login")
async def login(
    request: Request, redirect_uri: _Text = "", from_: Annotated[_Text, Query(alias="from")] = ""
) -> Response:
    """Start a sign-in, after which the browser goes to `redirect_uri`."""
    oidc.openid_of(request)
    if redirect_uri and not _own(request, redirect_uri) and not _listed(request, redirect_uri):
        raise bad_parameters("redirect_uri is not an address that this server sends people to.")
    return await oidc.begin(request, {"mode": MODE, "redirect": redirect_uri, "from": from_})


@router.get("/authn/oidc/return")
async def come_back(request: Request) -> Response:
    """Finish a sign-in when the provider returns the browser."""
    return await oidc.finish(request)


@router.post("/authn/oidc/return")
async def come_back_with_a_form(request: Request) -> Response:
    """Accept the provider's answer as a form, which OpenPAI asked its provider for."""
    return await oidc.read_instead(request)


@router.get("/authn/oidc/logout")
async def logout(request: Request) -> Response:
    """End the session, and the provider's session."""
    return await oidc.leave(request)


async def go_on(request: Request, signed: SignedIn, next: Mapping[str, str]) -> Response:
    """Redirect a signed-in browser to its target with OpenPAI's parameters; a listed other site also gets a token.

    Raises InvalidInput for another site that is not in `openpai_return_urls`.
    """
    target = next.get("redirect", "") or oidc.public_url(request) + "/"
    told = {"user": signed.user, "admin": str(signed.role == "admin").lower(), "hasGitHubPAT": "false"}
    if next.get("from"):
        told["from"] = next["from"]
    if not _own(request, target):
        if not _listed(request, target):
            raise InvalidInput(
                "bad-redirect", "This server does not send people there; openpai_return_urls says where."
            )
        actor = await service_of(request).authentication.authenticate(signed.token)
        told["token"] = await openpai_of(request).tokens.sign_in_token(actor)
    return RedirectResponse(f"{target}{'&' if urlsplit(target).query else '?'}{urlencode(told)}", 303)


def _own(request: Request, target: str) -> bool:
    """Return whether the URL is a page of this server."""
    here, there = urlsplit(oidc.public_url(request)), urlsplit(target)
    if not there.scheme and not there.netloc:
        return oidc.inside(target) == target
    return (here.scheme, here.netloc) == (there.scheme, there.netloc)


def _listed(request: Request, target: str) -> bool:
    """Return whether the URL is below one of `openpai_return_urls`, to which users are sent with their token."""
    allowed: tuple[str, ...] = request.app.state.openpai_return_urls
    there = urlsplit(target)
    for each in allowed:
        known = urlsplit(each)
        same = (known.scheme, known.netloc) == (there.scheme, there.netloc)
        if same and _below(there.path, known.path):
            return True
    return False


def _below(path: str, folder: str) -> bool:
    """Return whether a path is `folder` or below it; a path with dot segments, which browsers shorten, is not."""
    parts = unquote(path).replace("\\", "/").split("/")
    top = folder.rstrip("/")
    return not {".", ".."} & set(parts) and (path.rstrip("/") == top or path.startswith(f"{top}/"))
