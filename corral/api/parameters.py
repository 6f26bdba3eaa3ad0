"""The types and bounds of path and query parameters that several routes share."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from fastapi import Path, Query

from corral.kernel.errors import InvalidInput
from corral.model.page_bounds import MAX_CURSOR, MAX_PAGE

MaxPriority = Annotated[int, msgspec.Meta(ge=-999_999_999, le=999_999_999)]
"""Bounds the highest priority of an account's or a group's jobs."""

Ref = Annotated[
    str,
    Path(
        pattern=r"^[A-Za-z0-9._-][A-Za-z0-9._~-]{0,199}$",
        description="A job: its id, its name (the latest of that name), or USER~NAME.",
    ),
]
Role = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", description="A role of the job.")]
Index = Annotated[int, Path(ge=0, le=1_000_000, description="The task's index within its role.")]
Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9._-][A-Za-z0-9._@-]{0,125}$", description="The name of the thing.")]
NodeName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,252}$", description="ENGINE/NODE.")]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="How many items to answer with.")]
After = Annotated[str, Query(max_length=MAX_CURSOR, description="The `next` of the page before.")]
TIME: Final = "A time such as 2026-11-27T10:00:00Z, or a day in UTC."
"""Describes the parameters that `service.times.read_time` reads."""
Follow = Annotated[bool, Query(description="Go on with what is printed until the end, instead of what is there.")]


def parameters(pairs: list[str]) -> dict[str, str]:
    """Return `NAME=VALUE` pairs as a mapping.

    Raises InvalidInput for a pair without a name or without `=`.
    """
    built: dict[str, str] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not name or not sign:
            raise InvalidInput("invalid-parameter", f"A parameter is given as NAME=VALUE, not {pair[:60]!r}.")
        built[name] = value
    return built
