"""Routes that list storages and their folders, and send files as downloads, which browsers never display."""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import quote

from fastapi import Query, Request
from starlette.responses import Response

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers
from corral.api.parameters import Limit, Name
from corral.api.routers import router_of
from corral.api.stream_limits import EndingResponse, HoldsLogs
from corral.model.records import Page
from corral.model.views import FileView, StorageView

router = router_of("storages")

Path = Annotated[str, Query(max_length=4096, description="A path in the storage; empty is its folder itself.")]
AfterName = Annotated[str, Query(max_length=2000, description="The `next` of the page before.")]
"""Bounds a page cursor in characters; a name of 1,024 bytes, which S3 allows, fits."""
_BYTES: Final = "application/octet-stream"
_ANSWERS: Final = answers(None, 200, text="The bytes of the file", also=(409,)) | {
    200: {
        "description": "The bytes of the file",
        "content": {_BYTES: {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.get("/storages", responses=answers(Page[StorageView]))
async def list_storages(request: Request, actor: Caller) -> Json:
    """List the storages that the caller may use."""
    return Json(Page(items=await service_of(request).storage_browser.views(actor)))


@router.get("/storages/{name}/files", responses=answers(Page[FileView], also=(409,)))
async def list_files(
    request: Request, actor: Caller, name: Name, path: Path = "", limit: Limit = 200, after: AfterName = ""
) -> Json:
    """List a folder of a storage, by name; links are listed and not followed."""
    return Json(await service_of(request).storage_browser.files(actor, name, path, limit=limit, after=after))


@router.get("/storages/{name}/file", responses=_ANSWERS, dependencies=[HoldsLogs])
async def fetch_file(request: Request, actor: Caller, name: Name, path: Path) -> Response:
    """Return a file of a storage, as a download."""
    size, pieces = await service_of(request).storage_browser.file(actor, name, path)
    return EndingResponse(pieces, cut=b"", media_type=_BYTES, headers=_headers(path, size))


def _headers(path: str, size: int) -> dict[str, str]:
    """Return headers that keep a browser from displaying or running a file as a page of the portal."""
    name = path.rstrip("/").rpartition("/")[2]
    return {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "Content-Length": str(size),
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Cache-Control": "no-store",
    }
