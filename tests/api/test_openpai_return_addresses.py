"""Return URLs of a sign-in must match the listed ones exactly, because the user's token goes with them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from fastapi import Request

from corral.compat.openpai.routes import oidc

LISTED = ("https://tools.example/portal", "https://slash.example/portal/", "https://whole.example")


def listed(target: str) -> bool:
    request = SimpleNamespace(app=SimpleNamespace(state=SimpleNamespace(openpai_return_urls=LISTED)))
    return oidc._listed(cast(Request, request), target)


@pytest.mark.parametrize(
    "target",
    [
        "https://tools.example/portal",
        "https://tools.example/portal/",
        "https://tools.example/portal/in/it?x=1",
        "https://slash.example/portal/in",
        "https://whole.example",
        "https://whole.example/anything",
    ],
)
def test_an_address_at_or_below_a_listed_one_is_listed(target: str) -> None:
    assert listed(target)


@pytest.mark.parametrize(
    "target",
    [
        "https://tools.example/portal-of-another",
        "https://tools.example/portalx/",
        "https://slash.example/portals",
        "https://tools.example/",
        "https://tools.example/portal/../other",
        "https://tools.example/portal/%2e%2E/other",
        "https://tools.example/portal/..\\other",
        "http://tools.example/portal",
        "https://tools.example.evil.example/portal",
        "https://tools.example@evil.example/portal",
    ],
)
def test_an_address_that_only_begins_alike_is_not(target: str) -> None:
    assert not listed(target)
