"""Why: OpenPAI's first version let anybody read; here that is a choice of the site, made in one place for such routes."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Request

from corral.api.openpai.callers import AnyOrNone
from corral.service.actor import Actor
from corral.service.openpai_refusals import guest

NOBODY: Final = Actor("guest")
"""Who reads where anybody may."""


async def reader(request: Request, actor: AnyOrNone) -> Actor:
    """Who reads.

    Raises OpenPaiRefusal for nobody, where the server is not set to answer anybody.
    """
    if actor is not None:
        return actor
    if not request.app.state.openpai_anonymous_reads:
        raise guest()
    return NOBODY


Reader = Annotated[Actor, Depends(reader)]
"""Whoever has a token; anybody, where the site says so."""
