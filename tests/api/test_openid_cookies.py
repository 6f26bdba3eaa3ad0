"""The state that a browser keeps during an OpenID sign-in fits into a cookie, or the sign-in does not begin."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from fastapi import Request

from corral.api import oidc
from corral.api.services.job_ports import JobPorts
from corral.kernel.clock import VirtualClock
from corral.kernel.errors import InvalidInput
from corral.service.openid import OpenId
from corral.service.openid.provider import Metadata, Provider
from corral.service.openid.settings import OpenIdSettings
from corral.service.secret_box import SecretBox

ISSUER = "https://id.example"
LONGEST = 4096
"""Bytes of a cookie, its name and attributes included, that browsers must keep (RFC 6265, 6.1)."""


class Known:
    """A provider that answers at once."""

    async def metadata(self) -> Metadata:
        return Metadata(ISSUER, f"{ISSUER}/authorize", f"{ISSUER}/token", f"{ISSUER}/keys")


def request() -> Request:
    known = OpenId(OpenIdSettings(ISSUER, "corral"), SecretBox(b"k" * 32), VirtualClock(1.0), cast(Provider, Known()))
    url = "https://corral.example/api/v2/authn/oidc/return"
    state = SimpleNamespace(oidc=known, oidc_redirect_url=url, public_url="", secure=True)
    state.services_domain, state.job_ports = "", JobPorts(range(0))
    return cast(Request, SimpleNamespace(app=SimpleNamespace(state=state)))


async def test_addresses_that_no_cookie_holds_are_refused_and_shorter_ones_are_kept() -> None:
    kept = 0
    for length in range(0, 4001, 50):
        next = {"mode": "openpai", "redirect": "/" + "x" * min(length, 1999), "from": "y" * max(0, length - 1999)}
        try:
            response = await oidc.begin(request(), next)
        except InvalidInput as refused:
            assert (refused.status, refused.code) == (400, "address-too-long")
            break
        assert len(response.headers["set-cookie"]) <= LONGEST
        kept = length
    assert 2000 <= kept < 4000


async def test_letters_that_take_several_bytes_count_as_those() -> None:
    with pytest.raises(InvalidInput, match="too long for a browser to keep"):
        await oidc.begin(request(), {"next": "/" + "\N{EURO SIGN}" * 2000})
