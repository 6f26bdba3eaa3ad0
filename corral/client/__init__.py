"""The Python SDK over HTTP, sync and async; it installs without the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corral.client.aio import AsyncClient
    from corral.client.sync import Client

__all__ = ["AsyncClient", "Client"]


def __getattr__(name: str) -> Any:
    """Import a client on first use: the command line needs only one of them, and a short start."""
    if name == "Client":
        from corral.client.sync import Client

        return Client
    if name == "AsyncClient":
        from corral.client.aio import AsyncClient

        return AsyncClient
    raise AttributeError(name)
