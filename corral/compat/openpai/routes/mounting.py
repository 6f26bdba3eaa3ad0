"""OpenPAI's part of the application: its routes, its middleware, and the shape of its errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from corral.api.json_responses import Json
from corral.api.late_routes import routes_below
from corral.api.rate_limits import ApiCallLimits, Calls
from corral.compat.openpai.routes import cluster_import, errors, mount, oidc, portal_templates
from corral.compat.openpai.routes.cors import Cors
from corral.compat.openpai.routes.gateway_paths import Pylon
from corral.compat.openpai.service.tenant import OpenPai
from corral.kernel.errors import CorralError

DEFAULT_CALLS: Final = Calls(600, 120, 3600)
"""Calls that one user may make at OpenPAI's API by default."""


class OpenPaiErrors:
    """Errors in OpenPAI's shape, at its addresses; see `ErrorShape`."""

    def owns(self, path: str) -> bool:
        """Whether the path belongs to OpenPAI's API."""
        return errors.is_openpai(path)

    def refusal(self, error: CorralError) -> Json:
        """The response for an error of the service."""
        return errors.refusal(error)

    def on_http_exception(self, connection: HTTPConnection, error: HTTPException) -> Json:
        """The response for an error of the web framework."""
        return errors.on_http_exception(connection, error)

    def invalid_parameter(self, where: str, what: str) -> Json:
        """The response for a malformed parameter."""
        return errors.invalid_parameter(where, what)

    def fault(self, correlation: str) -> Json:
        """The response to an unexpected exception."""
        return errors.fault(correlation)


class OpenPaiRoutes:
    """OpenPAI's routes; see `Routes`."""

    def __init__(self, part: OpenPai | None, options: Mapping[str, Any]) -> None:
        """`part` is None where only the OpenAPI document is made. `options` are the settings named `openpai_...`."""
        self.errors = OpenPaiErrors()
        self._part = part
        self._options = options

    def mount(self, app: FastAPI) -> None:
        """Add OpenPAI's routes and middleware, and those of templates and imports below `/api/v3`."""
        said = self._options
        app.state.openpai = self._part
        limits = Calls(
            said.get("calls_per_minute", DEFAULT_CALLS.per_minute),
            said.get("lists_per_minute", DEFAULT_CALLS.lists_per_minute),
            said.get("submits_per_hour", DEFAULT_CALLS.submits_per_hour),
        )
        app.state.openpai_calls = ApiCallLimits(limits, api="openpai")
        app.state.openpai_anonymous_reads = said.get("anonymous_reads", False)
        app.state.openpai_return_urls = _listed(said.get("return_urls", ""))
        app.state.oidc_onward[oidc.MODE] = oidc.go_on
        app.add_middleware(Cors, origins=_listed(said.get("origins", "*")))
        app.add_middleware(Pylon)
        for router in (cluster_import.router, portal_templates.router):
            app.router.routes.extend(routes_below("/api/v3", router, response_class=Json))
        mount(app)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip())
