"""OpenPAI's REST API, so that its scripts, SDKs and job files work after a change of the server's URL."""

from __future__ import annotations

import functools
from itertools import chain
from typing import Final

from fastapi import APIRouter, FastAPI

from corral.api.json_responses import Json
from corral.api.late_routes import LateRoute, routes_below
from corral.compat.openpai.routes import (
    alerts,
    clusters,
    groups,
    info,
    joblist,
    jobs,
    kubernetes,
    launcher,
    oidc,
    portal_redirects,
    sign_in,
    storages,
    tasks,
    templates,
    tokens,
    users,
    yarn_jobs,
)

MOUNTS: Final[tuple[tuple[str, APIRouter], ...]] = (
    ("/api/v2", sign_in.router),
    ("/api/v2", oidc.router),
    ("/api/v2/tokens", tokens.router),
    ("/api/v2/users", users.router),
    ("/api/v2/groups", groups.router),
    ("/api/v2/user", users.router),
    ("/api/v2/group", groups.router),
    ("/api/v2", joblist.router),
    ("/api/v2", jobs.router),
    ("/api/v2", tasks.router),
    ("/api/v2", info.router),
    ("/api/v2", clusters.router),
    ("/api/v2", storages.router),
    ("/api/v2", kubernetes.router),
    ("/api/v2", alerts.router),
    ("/api/internal", tasks.internal),
    ("/api/v1", sign_in.router),
    ("/api/v1", oidc.router),
    ("/api/v1", info.legacy),
    ("/api/v1", clusters.router),
    ("/api/v1", kubernetes.router),
    ("/api/v2", templates.router),
    ("/api/v1", yarn_jobs.router),
    ("/v1", launcher.router),
    ("/api/v1/token", tokens.router),
    ("/api/v1/user", users.legacy),
)
"""Every router with its URL prefix; URLs below `/rest-server` reach them through `Pylon`."""


@functools.cache
def _mounted() -> tuple[LateRoute, ...]:
    """All of them, once for all applications of a process."""
    mounts = (("", portal_redirects.router), *MOUNTS)
    below = (routes_below(prefix, router, response_class=Json, include_in_schema=False) for prefix, router in mounts)
    return tuple(chain.from_iterable(below))


def mount(app: FastAPI) -> None:
    """Mount OpenPAI's API on `app`, outside of Corral's own OpenAPI document."""
    app.router.routes.extend(_mounted())
