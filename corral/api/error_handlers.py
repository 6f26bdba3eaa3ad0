"""Exception handlers that give every refusal the API's error shape."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from corral.api.json_responses import Json, refusal
from corral.api.pattern_words import refused_parameter
from corral.api.tenants import ErrorShape, shape_for
from corral.kernel.errors import CorralError

_CODES: Final = {404: "no-such-address", 405: "method-not-allowed", 415: "wrong-media-type"}


def install(app: FastAPI) -> None:
    """Install the handlers on `app`."""
    app.add_exception_handler(CorralError, _on_corral_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(RequestValidationError, _on_invalid_parameter)


def _shape(request: Request) -> ErrorShape | None:
    return shape_for(request.app.state.error_shapes, request.url.path)


async def _on_corral_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, CorralError)
    shape = _shape(request)
    return refusal(error) if shape is None else shape.refusal(error)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if (shape := _shape(request)) is not None:
        return shape.on_http_exception(request, error)
    code = _CODES.get(error.status_code, HTTPStatus(error.status_code).phrase.lower().replace(" ", "-"))
    message = {
        404: f"There is nothing at {request.url.path[:200]}; the API is described at /openapi.json.",
        405: f"{request.url.path[:200]} does not take {request.method[:20]}; the API is described at /openapi.json.",
    }.get(error.status_code, str(error.detail))
    return Json({"code": code, "message": message}, status_code=error.status_code, headers=error.headers)


async def _on_invalid_parameter(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first.get("loc", ())[1:]) or "the call"
    if (shape := _shape(request)) is not None:
        return shape.invalid_parameter(where[:100], str(first.get("msg", "it is malformed")))
    pattern = (first.get("ctx") or {}).get("pattern")
    if pattern and isinstance(value := first.get("input"), str):
        message = refused_parameter(where[:100], value, str(pattern))
    else:
        message = f"The parameter {where[:100]} cannot be used: {first.get('msg', 'it is malformed')}."
    return Json({"code": "invalid-parameter", "message": message}, status_code=422)
