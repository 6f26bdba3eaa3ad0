"""Serve the portal's built files; hashed assets are cached for a year, and the index is revalidated."""

from __future__ import annotations

import mimetypes
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.types import Receive, Scope, Send

_NOT_BUILT: Final = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Corral</title>
<body style="font: 16px/1.5 system-ui; max-width: 40rem; margin: 4rem auto; padding: 0 1rem">
<h1>Corral is running</h1>
<p>The portal has not been built into this installation. Build it with <code>make portal</code> in a source tree,
or install a released wheel. The command line and the API work without it: <code>corral ls</code>,
<a href="/openapi.json">/openapi.json</a>.</p></body></html>"""
_NOT_PAGES: Final = ("/api/", "/proxy/", "/rest-server/", "/healthz", "/readyz", "/metrics", "/openapi.json")


class Portal:
    """Serves the built portal from `folder`, and its index for URLs of the portal's own routes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request that no route matched."""
        accepted = Headers(scope=scope).get("accept-encoding", "")
        await self.response(scope["path"], scope["method"], accepted)(scope, receive, send)

    def response(self, path: str, method: str, accepted: str = "") -> Response:
        """Return the file at `path`, compressed where the browser accepts that, or the index for a route of the portal.

        Raises HTTPException 404 for URLs outside the portal, 405 for methods other than GET and HEAD.
        """
        if path.startswith(_NOT_PAGES):
            raise HTTPException(404)
        if method not in ("GET", "HEAD"):
            raise HTTPException(405, headers={"Allow": "GET, HEAD"})
        found = self._find(path)
        if found is not None:
            immutable = path.startswith("/assets/")
            headers = {"Cache-Control": "public, max-age=31536000, immutable" if immutable else "no-cache"}
            return _compressed(found, accepted, headers) if immutable else FileResponse(found, headers=headers)
        if "." in path.rpartition("/")[2]:
            raise HTTPException(404)
        index = self._folder / "index.html"
        if not index.is_file():
            return HTMLResponse(_NOT_BUILT, headers={"Cache-Control": "no-cache"})
        return FileResponse(index, headers={"Cache-Control": "no-cache"})

    def _find(self, path: str) -> Path | None:
        if "\0" in path or len(path) > 1000:
            return None
        wanted = (self._folder / path.lstrip("/")).resolve()
        return wanted if wanted.is_relative_to(self._folder) and wanted.is_file() else None


def _compressed(found: Path, accepted: str, headers: dict[str, str]) -> Response:
    """Return what the build has compressed beside a file, or the file itself."""
    beside = found.with_name(f"{found.name}.gz")
    if not beside.is_file():
        return FileResponse(found, headers=headers)
    headers = {**headers, "Vary": "Accept-Encoding"}
    if not _accepts_gzip(accepted):
        return FileResponse(found, headers=headers)
    kind = mimetypes.guess_type(found.name)[0] or "application/octet-stream"
    return FileResponse(beside, media_type=kind, headers={**headers, "Content-Encoding": "gzip"})


def _accepts_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding header names gzip, and not with the weight 0."""
    for each in accepted.lower().split(","):
        name, _, weight = each.partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
