"""Routes for the filters of the list of jobs that the caller saved under names."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request

from corral.api.authentication import Caller, service_of
from corral.api.json_responses import Json, answers, json_body, no_content, read_json
from corral.api.routers import router_of
from corral.model.records import Page
from corral.model.saved_filters import LONGEST_NAME, SavedFilter

router = router_of("accounts")


@router.get("/account/filters", responses=answers(Page[SavedFilter]))
async def list_filters(request: Request, actor: Caller) -> Json:
    """List the caller's saved filters of the list of jobs, by name."""
    return Json(Page(items=await service_of(request).saved_filters.all(actor)))


@router.post("/account/filters", responses=answers(SavedFilter, also=(409, 413)), openapi_extra=json_body(SavedFilter))
async def save_filter(request: Request, actor: Caller) -> Json:
    """Save a filter under its name, in the place of one of the same name."""
    asked: SavedFilter = read_json(await request.body(), SavedFilter)
    return Json(await service_of(request).saved_filters.save(actor, asked))


@router.delete("/account/filters/{name}", status_code=204, responses=answers(None, 204))
async def forget_filter(
    request: Request,
    actor: Caller,
    name: Annotated[str, Path(max_length=LONGEST_NAME, description="The filter's name.")],
) -> Json:
    """Delete a saved filter."""
    await service_of(request).saved_filters.forget(actor, name)
    return no_content()
