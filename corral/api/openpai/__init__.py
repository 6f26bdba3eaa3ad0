"""Why: who has scripts, SDKs and job files for OpenPAI changes an address and goes on: its REST API as it was."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, FastAPI

from corral.api.wire import Json

MOUNTS: Final[tuple[tuple[str, APIRouter], ...]] = ()
"""Every router with the address that it is under; those under `/rest-server` are reached through `Pylon`."""


def mount(app: FastAPI) -> None:
    """Have `app` serve OpenPAI's API. It has its own description, so it is not part of ours."""
    for prefix, router in MOUNTS:
        app.include_router(router, prefix=prefix, default_response_class=Json, include_in_schema=False)
