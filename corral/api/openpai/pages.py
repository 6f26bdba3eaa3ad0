"""Addresses of OpenPAI's portal, which scripts and mails link to: each leads to the page of the portal that shows it."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query
from starlette.responses import RedirectResponse, Response

router = APIRouter()

_Name = Annotated[str, Query(max_length=300)]


@router.get("/job-list.html")
async def job_list() -> Response:
    """The list of jobs."""
    return RedirectResponse("/", 302)


@router.get("/job-detail.html")
async def job_detail(username: _Name = "", name: Annotated[_Name, Query(alias="jobName")] = "") -> Response:
    """One job; without its name, the list of jobs."""
    if not name:
        return RedirectResponse("/", 302)
    ref = f"{username}~{name}" if username else name
    return RedirectResponse(f"/jobs/{quote(ref, safe='~')}", 302)
