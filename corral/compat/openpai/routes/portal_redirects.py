"""Redirect URLs of OpenPAI's portal, found in scripts and mails, to the matching page of Corral's portal."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import Query
from starlette.responses import RedirectResponse, Response

from corral.api.late_routes import late_router

router = late_router()

_Name = Annotated[str, Query(max_length=300)]


@router.get("/job-list.html")
async def job_list() -> Response:
    """Redirect to the list of jobs."""
    return RedirectResponse("/", 302)


@router.get("/job-detail.html")
async def job_detail(username: _Name = "", name: Annotated[_Name, Query(alias="jobName")] = "") -> Response:
    """Redirect to one job; without its name, to the list of jobs."""
    if not name:
        return RedirectResponse("/", 302)
    ref = f"{username}~{name}" if username else name
    return RedirectResponse(f"/jobs/{quote(ref, safe='~')}", 302)
