"""The routes of tenants: what they add to the application, and the shape of the errors at their addresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from corral.api.json_responses import Json
from corral.kernel.errors import CorralError
from corral.kernel.plug_ins import plug_ins

GROUP: Final = "corral.routes"
"""The entry-point group; an object is called with the tenant's service part and options, and returns its `Routes`."""


class ErrorShape(Protocol):
    """The responses for errors at a tenant's addresses."""

    def owns(self, path: str) -> bool:
        """Whether errors at this path have this shape."""
        ...

    def refusal(self, error: CorralError) -> Json:
        """The response for an error of the service."""
        ...

    def on_http_exception(self, connection: HTTPConnection, error: HTTPException) -> Json:
        """The response for an error of the web framework, such as an unknown path."""
        ...

    def invalid_parameter(self, where: str, what: str) -> Json:
        """The response for a malformed parameter of the path or query."""
        ...

    def fault(self, correlation: str) -> Json:
        """The response to an unexpected exception, with the id of its entry in the server's log."""
        ...


class Routes(Protocol):
    """A tenant's part of the application."""

    errors: ErrorShape | None
    """The shape of errors at its addresses; None if it has Corral's own."""

    def mount(self, app: FastAPI) -> None:
        """Add routers, middleware and state to the application, after Corral's own routes."""
        ...


def routes_of(parts: Mapping[str, Any], options: Callable[[str], Mapping[str, Any]]) -> tuple[Routes, ...]:
    """The routes of every tenant over its service part; a tenant without one gets None."""
    return tuple(point.load()(parts.get(name), options(name)) for name, point in plug_ins(GROUP).items())


def shape_for(shapes: Sequence[ErrorShape], path: str) -> ErrorShape | None:
    """The shape of errors at this path; None for Corral's own."""
    return next((each for each in shapes if each.owns(path)), None)
