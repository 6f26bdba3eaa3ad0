"""Connect to the server of the current sign-in."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from corral.kernel.errors import Unavailable

if TYPE_CHECKING:
    from corral.client.sync import Client

_HERE: Final = ("127.0.0.1", "localhost", "::1")
_PATIENCE: Final = 2.0
"""Seconds within which this machine accepts a connection."""


def connect(timeout: float = 30.0) -> Client:
    """Return a client of the current server, which waits for each answer for so many seconds.

    Raises Unauthenticated without a sign-in, or Unavailable where no server of this machine answers, either.
    """
    from corral.client import config
    from corral.client.sync import Client

    here = config.current()
    if not here.token and not _listens(here.url):
        message = (
            f"No server answers at {here.url}; start one: corral up --detach, or sign in to another: corral login LINK."
        )
        raise Unavailable("no-server", message)
    return Client(here.url, config.require_token(here), ca=here.ca, timeout=timeout, waiting=_say_waiting)


def _listens(url: str) -> bool:
    """Whether something accepts connections at an address of this machine; other addresses are not tried."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:  # the client says what is wrong with the address
        return True
    if parts.hostname not in _HERE:
        return True
    try:
        with socket.create_connection((parts.hostname, port), timeout=_PATIENCE):
            return True
    except ConnectionRefusedError:
        return False
    except OSError:
        return True


def _say_waiting(refused: Unavailable) -> None:
    from corral.cli.output import say

    say(f"Waiting for the server: {refused.message}")
