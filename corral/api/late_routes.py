"""Routes that read their endpoint's parameters when they are called first, for which no start of a server waits.

FastAPI reads the signature of each endpoint and makes validators of its parameters where a route is declared. A server
has more than four hundred routes, and is called at a few of them before it is stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.routing import Match, compile_path, get_name
from starlette.types import Scope

_OF_PATH: Final = frozenset({"path_regex", "path_format", "param_convertors"})
"""The attributes of a route that follow from its path alone."""


class LateRoute(APIRoute):
    """A route that is built when something of it is asked for that its path and its methods do not tell.

    Building it twice at the same time, in two threads, gives two equal routes of which one stays.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """`options` are those of FastAPI's route."""
        self.path, self.endpoint = path, endpoint
        self.name = options.get("name") or get_name(endpoint)
        self.methods = {method.upper() for method in options.get("methods") or ("GET",)}
        self.include_in_schema = options.get("include_in_schema", True)
        self._options = options
        self._literal = path.partition("{")[0]

    def __getattr__(self, name: str) -> Any:
        """Build what is missing, and return it."""
        if name in _OF_PATH:
            self.path_regex, self.path_format, self.param_convertors = compile_path(self.path)
        elif not name.startswith("__"):
            super().__init__(self.path, self.endpoint, **self._options)
        return object.__getattribute__(self, name)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match a call; one whose path lacks the literal beginning of this route's is not looked at further."""
        if scope["type"] == "http" and self._literal not in scope["path"]:
            return Match.NONE, {}
        return super().matches(scope)

    def below(self, prefix: str, options: dict[str, Any]) -> LateRoute:
        """The same route below a prefix; `options` replace its own, but not the class that it chose for its answers."""
        chosen = self._options.get("response_class")
        kept = {"response_class": chosen} if isinstance(chosen, type) else {}
        return LateRoute(prefix + self.path, self.endpoint, **self._options | options | kept)


def late_router(**options: Any) -> APIRouter:
    """A router whose routes are late; `options` are those of FastAPI's router."""
    return APIRouter(route_class=LateRoute, **options)


def routes_below(prefix: str, router: APIRouter, **options: Any) -> Iterator[LateRoute]:
    """The routes of a late router below a prefix; `options` hold for all that have none of their own.

    FastAPI's own way to include a router builds all of its routes at the first call to any address that others do not
    have, such as a page of the portal.
    """
    for route in router.routes:
        assert isinstance(route, LateRoute), "the router was not made by `late_router`"
        yield route.below(prefix, options)
