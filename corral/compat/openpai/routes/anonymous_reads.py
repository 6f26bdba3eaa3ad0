"""Callers of the v1 routes that OpenPAI let anybody read; here anonymous reads are a setting, off by default."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Request

from corral.compat.openpai.routes.callers import AnyOrNone
from corral.compat.openpai.service.errors import guest
from corral.service.actor import Actor

ANONYMOUS: Final = Actor("guest")
"""The actor of an anonymous read."""


async def reader(request: Request, actor: AnyOrNone) -> Actor:
    """Return the caller, or `ANONYMOUS` where anonymous reads are on.

    Raises OpenPaiRefusal without a token where they are off.
    """
    if actor is not None:
        return actor
    if not request.app.state.openpai_anonymous_reads:
        raise guest()
    return ANONYMOUS


Reader = Annotated[Actor, Depends(reader)]
"""A caller with a token, or anybody where anonymous reads are on."""
