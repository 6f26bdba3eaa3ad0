"""Why: what one server may ask of an API server at once is a handful of numbers, in one place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What one transport may use."""

    connections: int = 32
    """Calls at once; more wait, within their deadlines."""
    streams: int = 256
    """Watches and logs at once."""
    sessions: int = 512
    """Commands and forwarded connections at once: people open them, and must not take the watches' places."""
    answer_bytes: int = 64 * 2**20
    deadline_seconds: float = 15.0
    connect_seconds: float = 5.0
