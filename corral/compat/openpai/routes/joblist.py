"""OpenPAI's job list: its query parameters are converted into one filter."""

from __future__ import annotations

from typing import Final

from fastapi import Request
from starlette.datastructures import QueryParams

from corral.api.json_responses import Json
from corral.api.late_routes import late_router
from corral.compat.openpai.records.terms import ORDERS, OpenPaiFilter
from corral.compat.openpai.routes.callers import AnyCaller
from corral.compat.openpai.routes.operations import openpai_of
from corral.compat.openpai.service.errors import OpenPaiRefusal, bad_parameters

router = late_router()

DEFAULT_LIMIT: Final = 5000
MOST: Final = 50_000
_DIGITS: Final = 10
_MOST_VALUES: Final = 1000
"""Values of one query parameter."""
_NO_PRIORITY: Final = "default"


@router.get("/jobs")
async def list_jobs(request: Request, actor: AnyCaller) -> Json:
    """List jobs: filtered, sorted in one of ten orders, and in pages."""
    wanted = filter_of(request.query_params)
    found = await openpai_of(request).jobs.lines(actor, wanted)
    return Json(found if wanted.count else found.data)


def filter_of(query: QueryParams) -> OpenPaiFilter:
    """Return the filter that the query describes; an unknown order means the default order.

    Raises OpenPaiRefusal for a limit or an offset that is not a number, and for a limit that is too high.
    """
    limit = _number(query, "limit", DEFAULT_LIMIT)
    if limit > MOST:
        raise OpenPaiRefusal("InvalidParametersError", f"Limit exceeds max number {MOST}.")
    field, _, direction = query.get("order", "").partition(",")
    known = field in ORDERS and direction in ("ASC", "DESC")
    return OpenPaiFilter(
        users=_several(query, "username"),
        queues=_several(query, "vc"),
        states=_several(query, "state"),
        keyword=query.get("keyword", "").replace("\0", ""),
        tags=_several(query, "tagsContain"),
        without_tags=_several(query, "tagsNotContain"),
        priorities=tuple(None if each == _NO_PRIORITY else each for each in _several(query, "jobPriority")),
        order=field if known else "submissionTime",
        descending=direction == "DESC" if known else True,
        offset=_number(query, "offset", 0),
        limit=limit,
        count=query.get("withTotalCount") == "true",
    )


def _several(query: QueryParams, name: str) -> tuple[str, ...]:
    """Return the comma-separated values of a parameter, without duplicates."""
    text = query.get(name, "").replace("\0", "")
    values = tuple(dict.fromkeys(text.split(","))) if text else ()
    if len(values) > _MOST_VALUES:
        raise bad_parameters(f"{name} names at most {_MOST_VALUES} values.")
    return values


def _number(query: QueryParams, name: str, default: int) -> int:
    text = query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise bad_parameters(f"{name} is a whole number that is not negative.")
    return int(text)
