"""Routes that list storages and their folders, preview files, and send them as downloads, which browsers never display."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from corral.api.authentication import Caller, service_of
from corral.api.files import FILE_ANSWERS, PICTURE_ANSWERS, AfterName, Path, file_response, picture_response
from corral.api.json_responses import Json, answers
from corral.api.parameters import Limit, Name
from corral.api.routers import router_of
from corral.api.stream_limits import HoldsLogs
from corral.model.outputs import FilePreview
from corral.model.records import Page
from corral.model.views import FileView, StorageView

router = router_of("storages")


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


@router.get("/storages/{name}/file", responses=FILE_ANSWERS, dependencies=[HoldsLogs])
async def fetch_file(request: Request, actor: Caller, name: Name, path: Path) -> Response:
    """Return a file of a storage, as a download."""
    return file_response(path, *await service_of(request).storage_browser.file(actor, name, path))


@router.get("/storages/{name}/preview", responses=answers(FilePreview, also=(409,)))
async def preview_file(request: Request, actor: Caller, name: Name, path: Path) -> Json:
    """Return the beginning of a file as text or as a table, or say that it is a picture or neither."""
    return Json(await service_of(request).storage_browser.preview(actor, name, path))


@router.get("/storages/{name}/picture", responses=PICTURE_ANSWERS, dependencies=[HoldsLogs])
async def show_picture(request: Request, actor: Caller, name: Name, path: Path) -> Response:
    """Return a PNG, JPEG, GIF or WebP picture, by what is in it; anything else is refused."""
    return picture_response(*await service_of(request).storage_browser.picture(actor, name, path))
