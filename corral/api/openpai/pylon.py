"""Why: clients of OpenPAI call `/rest-server/api/…`, as its gateway Pylon mapped it, and do not care about a last slash."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

GATEWAY: Final = "/rest-server"
CAME_BY: Final = "corral.gateway"
"""The scope's word for the prefix that a call came by: an answer that names an address names it under the same."""
_OURS: Final = f"{GATEWAY}/api/v3"
_VERSIONS: Final = ("/api/v1/", "/api/v2/")


class Pylon:
    """Passes every call on under the address that its route is known by."""

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
    """The address of the route that a call to `path` means; `path` itself when that is it."""
    if path.startswith(f"{GATEWAY}/api/") and not path.startswith(_OURS):
        path = path[len(GATEWAY) :]
    if path.endswith("/") and path.startswith(_VERSIONS):
        path = path.rstrip("/")
    return path
