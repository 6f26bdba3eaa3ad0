"""Why: OpenPAI's portal and plugins begin a sign-in at its own addresses and expect to come back with who they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final
from urllib.parse import unquote, urlencode, urlsplit

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from corral.api import oidc
from corral.api.callers import service_of
from corral.kernel.errors import InvalidInput
from corral.model.views import SignedIn
from corral.service.openpai_refusals import bad_parameters

router = APIRouter()

MODE: Final = "openpai"
"""What a sign-in that began here is known by when it comes back."""
_Text = Annotated[str, Query(max_length=2000)]


@router.get("/authn/oidc/login")
async def login(
    request: Request, redirect_uri: _Text = "", from_: Annotated[_Text, Query(alias="from")] = ""
) -> Response:
    """Begin to sign in; afterwards the browser is at `redirect_uri`."""
    oidc.openid_of(request)
    if redirect_uri and not _own(request, redirect_uri) and not _listed(request, redirect_uri):
        raise bad_parameters("redirect_uri is not an address that this server sends people to.")
    return await oidc.begin(request, {"mode": MODE, "redirect": redirect_uri, "from": from_})


@router.get("/authn/oidc/return")
async def come_back(request: Request) -> Response:
    """Where the provider sends the browser back to."""
    return await oidc.finish(request)


@router.post("/authn/oidc/return")
async def come_back_with_a_form(request: Request) -> Response:
    """The same, as OpenPAI asked its provider to do it."""
    return await oidc.read_instead(request)


@router.get("/authn/oidc/logout")
async def logout(request: Request) -> Response:
    """End the session, the provider's too."""
    return await oidc.leave(request)


async def go_on(request: Request, signed: SignedIn, next: Mapping[str, str]) -> Response:
    """Lead somebody who has signed in to where they asked for, in OpenPAI's words; another site is told their token."""
    target = next.get("redirect", "") or oidc.public_url(request) + "/"
    told = {"user": signed.user, "admin": str(signed.role == "admin").lower(), "hasGitHubPAT": "false"}
    if next.get("from"):
        told["from"] = next["from"]
    if not _own(request, target):
        if not _listed(request, target):
            raise InvalidInput(
                "bad-redirect", "This server does not send people there; openpai_return_urls says where."
            )
        actor = await service_of(request).authenticate(signed.token)
        told["token"] = await service_of(request).openpai_sign_in_token(actor)
    return RedirectResponse(f"{target}{'&' if urlsplit(target).query else '?'}{urlencode(told)}", 303)


def _own(request: Request, target: str) -> bool:
    """Whether it is a page of this server."""
    here, there = urlsplit(oidc.public_url(request)), urlsplit(target)
    if not there.scheme and not there.netloc:
        return oidc.inside(target) == target
    return (here.scheme, here.netloc) == (there.scheme, there.netloc)


def _listed(request: Request, target: str) -> bool:
    """Whether an administrator allows that people are sent there with their token."""
    allowed: tuple[str, ...] = request.app.state.openpai_return_urls
    there = urlsplit(target)
    for each in allowed:
        known = urlsplit(each)
        same = (known.scheme, known.netloc) == (there.scheme, there.netloc)
        if same and _below(there.path, known.path):
            return True
    return False


def _below(path: str, folder: str) -> bool:
    """Whether a path is that one or inside it; one that a browser would shorten is nowhere."""
    parts = unquote(path).replace("\\", "/").split("/")
    top = folder.rstrip("/")
    return not {".", ".."} & set(parts) and (path.rstrip("/") == top or path.startswith(f"{top}/"))
