"""Routes for the outputs of a job: where they are, their files, previews, pictures and downloads."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path as InPath
from fastapi import Request
from starlette.responses import Response

from corral.api.authentication import Caller, service_of
from corral.api.files import FILE_ANSWERS, PICTURE_ANSWERS, AfterName, Path, file_response, picture_response
from corral.api.json_responses import Json, answers
from corral.api.parameters import Limit, Ref
from corral.api.routers import router_of
from corral.api.stream_limits import HoldsLogs
from corral.model.outputs import FilePreview, OutputView
from corral.model.records import Page
from corral.model.views import FileView

router = router_of("jobs")

Number = Annotated[int, InPath(ge=0, le=10_000, description="The `index` of the output.")]


@router.get("/jobs/{ref}/outputs", responses=answers(Page[OutputView]))
async def list_outputs(request: Request, actor: Caller, ref: Ref) -> Json:
    """List where a job keeps results: the outputs of its document, and the storages that its tasks may write."""
    return Json(Page(items=await service_of(request).job_outputs.views(actor, ref)))


@router.get("/jobs/{ref}/outputs/{index}/files", responses=answers(Page[FileView], also=(409,)))
async def list_files(
    request: Request,
    actor: Caller,
    ref: Ref,
    index: Number,
    path: Path = "",
    limit: Limit = 200,
    after: AfterName = "",
) -> Json:
    """List a folder of an output, by name; links are listed and not followed."""
    found = await service_of(request).job_outputs.files(actor, ref, index, path, limit=limit, after=after)
    return Json(found)


@router.get("/jobs/{ref}/outputs/{index}/file", responses=FILE_ANSWERS, dependencies=[HoldsLogs])
async def fetch_file(request: Request, actor: Caller, ref: Ref, index: Number, path: Path) -> Response:
    """Return a file of an output, as a download."""
    return file_response(path, *await service_of(request).job_outputs.file(actor, ref, index, path))


@router.get("/jobs/{ref}/outputs/{index}/preview", responses=answers(FilePreview, also=(409,)))
async def preview_file(request: Request, actor: Caller, ref: Ref, index: Number, path: Path) -> Json:
    """Return the beginning of a file as text or as a table, or say that it is a picture or neither."""
    return Json(await service_of(request).job_outputs.preview(actor, ref, index, path))


@router.get("/jobs/{ref}/outputs/{index}/picture", responses=PICTURE_ANSWERS, dependencies=[HoldsLogs])
async def show_picture(request: Request, actor: Caller, ref: Ref, index: Number, path: Path) -> Response:
    """Return a PNG, JPEG, GIF or WebP picture, by what is in it; anything else is refused."""
    return picture_response(*await service_of(request).job_outputs.picture(actor, ref, index, path))
