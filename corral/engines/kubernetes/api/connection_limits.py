"""The limits of one server's connections to an API server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one transport."""

    connections: int = 32
    """Concurrent calls; further ones wait, within their deadlines."""
    streams: int = 256
    """Concurrent watches and logs."""
    sessions: int = 512
    """Concurrent commands and forwarded connections.

    People open them, so they must not use up the watches' connections.
    """
    answer_bytes: int = 64 * 2**20
    deadline_seconds: float = 15.0
    connect_seconds: float = 5.0
