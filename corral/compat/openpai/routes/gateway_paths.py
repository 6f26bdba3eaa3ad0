"""Map URLs of OpenPAI's gateway Pylon (`/rest-server/api/…`) to routes, and ignore a slash at their end."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

GATEWAY: Final = "/rest-server"
CAME_BY: Final = "corral.gateway"
"""The scope key that holds the prefix a call came by; URLs in its answer get the same prefix."""
_OURS: Final = f"{GATEWAY}/api/v3"
_VERSIONS: Final = ("/api/v1/", "/api/v2/")


class Pylon:
    """Rewrites the path of each call to that of its route, then passes it on."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "http":
            path: str = scope["path"]
            known = address_of(path)
            if known is not path:
                scope = {**scope, "path": known, "raw_path": known.encode("utf-8", "replace")}
                if path.startswith(GATEWAY):
                    scope[CAME_BY] = GATEWAY
        await self._app(scope, receive, send)


def address_of(path: str) -> str:
    """Return the route's path for a call to `path`; `path` itself if it needs no change."""
    if path.startswith(f"{GATEWAY}/api/") and not path.startswith(_OURS):
        path = path[len(GATEWAY) :]
    if path.endswith("/") and path.startswith(_VERSIONS):
        path = path.rstrip("/")
    return path
