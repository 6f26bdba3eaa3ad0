"""Why: the document must be complete and cost no request anything: its schemas come from the structs, once, when asked."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from corral.api.wire import REFERENCE, SHAPES, refused_with

_SUMMARY = "Runs AI jobs on shared accelerators: whole gangs, close together, and always says why something waits."
_OPEN = {"/healthz", "/readyz", "/metrics", "/api/v3/version", "/api/v3/login"}
_OPEN_BELOW = "/api/v3/oidc"
"""Browsers, and the provider, come there before anybody is signed in."""


def describe(app: FastAPI) -> None:
    """Have `app` serve a complete OpenAPI document."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = document(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of `app`."""
    refused_with(400)
    built = get_openapi(title=app.title, version=app.version, summary=_SUMMARY, routes=app.routes)
    _, shapes = msgspec.json.schema_components(SHAPES, ref_template=REFERENCE)
    components = built.setdefault("components", {})
    components["schemas"] = shapes
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "session": {"type": "apiKey", "in": "cookie", "name": "corral_session"},
    }
    for path, methods in built["paths"].items():
        for operation in methods.values():
            is_open = path in _OPEN or path.startswith(_OPEN_BELOW)
            operation["security"] = [] if is_open else [{"token": []}, {"session": []}]
            for answer in operation["responses"].values():
                for content in answer.get("content", {}).values():
                    _mend(content["schema"])
    return built


def _mend(schema: dict[str, Any]) -> None:
    """FastAPI calls every answer that it does not render itself a string, beside what the route says it is."""
    if len(schema) > 1 and schema.get("type") == "string" and ("$ref" in schema or "anyOf" in schema):
        del schema["type"]
