"""Connect to the server of the current sign-in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corral.client.sync import Client
    from corral.kernel.errors import Unavailable


def connect(timeout: float = 30.0) -> Client:
    """Return a client of the current server, which waits for each answer for so many seconds.

    Raises Unauthenticated without a sign-in.
    """
    from corral.client import config
    from corral.client.sync import Client

    here = config.current()
    return Client(here.url, config.require_token(here), ca=here.ca, timeout=timeout, waiting=_say_waiting)


def _say_waiting(refused: Unavailable) -> None:
    from corral.cli.output import say

    say(f"Waiting for the server: {refused.message}")
