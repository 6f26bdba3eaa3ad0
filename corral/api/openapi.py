"""Build the OpenAPI document from the routes and the msgspec structs, once, when it is first requested."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi

from corral.api.json_responses import SHAPES, refused_with
from corral.api.schemas import schemas_of

_SUMMARY = "Runs AI jobs on shared accelerators: whole gangs, close together, and always says why something waits."
_OPEN = {"/healthz", "/readyz", "/metrics", "/api/v3/version", "/api/v3/login"}
_OPEN_BELOW = "/api/v3/oidc"
"""Prefix of the routes that browsers and the provider call before a sign-in."""


def describe(app: FastAPI) -> None:
    """Serve the OpenAPI document of `app` at `/openapi.json`.

    It is built once, at the first request, in a thread: that takes 0.7 s of processor time, which would hold up the loop.
    """
    encoded: list[bytes] = []
    building = asyncio.Lock()

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = document(app)
        return app.openapi_schema

    async def serve(_: Request) -> Response:
        async with building:
            if not encoded:
                encoded.append(await asyncio.to_thread(lambda: json.dumps(openapi()).encode()))
        return Response(encoded[0], media_type="application/json")

    app.openapi = openapi  # type: ignore[method-assign]
    app.add_route("/openapi.json", serve, include_in_schema=False)


def document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document of `app`."""
    refused_with(400)
    built = get_openapi(
        title=app.title,
        version=app.version,
        summary=_SUMMARY,
        routes=app.routes,
        servers=[{"url": "/", "description": "The server that serves this document."}],
        license_info={"name": "MIT", "identifier": "MIT"},
    )
    operations = [operation for methods in built["paths"].values() for operation in methods.values()]
    components = built.setdefault("components", {})
    components["schemas"] = schemas_of(SHAPES, [each.get("requestBody") for each in operations])
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "session": {"type": "apiKey", "in": "cookie", "name": "corral_session"},
    }
    for path, methods in built["paths"].items():
        for operation in methods.values():
            is_open = path in _OPEN or path.startswith(_OPEN_BELOW)
            operation["security"] = [] if is_open else [{"token": []}, {"session": []}]
            for answer in operation["responses"].values():
                _mend(answer)
    return built


def _mend(answer: dict[str, Any]) -> None:
    """Remove the JSON string that FastAPI describes where it does not encode a response itself."""
    contents = answer.get("content", {})
    if contents.get("application/json", {}).get("schema") == {"type": "string"}:
        del contents["application/json"]
    if not contents:
        answer.pop("content", None)
    for content in contents.values():
        schema = content["schema"]
        if len(schema) > 1 and schema.get("type") == "string" and ("$ref" in schema or "anyOf" in schema):
            del schema["type"]
