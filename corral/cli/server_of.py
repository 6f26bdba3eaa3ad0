"""Why: every command that talks to a server finds it in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corral.client.sync import Client


def connect() -> Client:
    """A client of the server that one is signed in to.

    Raises Unauthenticated when nobody is.
    """
    from corral.client import config
    from corral.client.sync import Client

    here = config.current()
    return Client(here.url, config.require_token(here), ca=here.ca)
