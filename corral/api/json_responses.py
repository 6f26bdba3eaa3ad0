"""Encode and decode the API's JSON with msgspec, and document responses for OpenAPI.

The service returns structs in the API's shape, so that a response costs one encode.
"""

from __future__ import annotations

import re
from types import UnionType
from typing import Any, Final

import msgspec
from starlette.responses import Response

from corral.api.connection_limits import TOO_MANY
from corral.api.pattern_words import refused_field
from corral.api.schemas import REFERENCE
from corral.kernel.errors import CorralError, InvalidInput, Unavailable
from corral.workers.pool import BUSY, TOO_MUCH

_ENCODER: Final = msgspec.json.Encoder()
_NOT_IN_NAME: Final = re.compile(r"[^a-zA-Z0-9.\-_]")

SHAPES: Final[list[Any]] = []
"""Every type that a route returns; the OpenAPI document has a schema for each."""


class ErrorShape(msgspec.Struct, frozen=True):
    """The body of every refusal."""

    code: str
    """A stable error code in kebab case, for programs."""
    message: str
    """One sentence for people, which says how to proceed."""


class Json(Response):
    """A response whose body is the JSON of a msgspec value."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the JSON of `content`."""
        return _ENCODER.encode(content)


_CLOSING: Final = frozenset({TOO_MANY, BUSY, TOO_MUCH})
"""Error codes after which the connection is closed, because the rest of the client's data is not read."""


def no_content() -> Json:
    """Return the response to a change without a result."""
    response = Json(None, 204)
    response.body = b""
    del response.headers["content-length"]
    del response.headers["content-type"]
    return response


def refusal(error: CorralError, headers: dict[str, str] | None = None) -> Json:
    """Return the response for an error; details that are JSON (such as a document's `problems`) are included."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    for name, value in error.details.items():
        body.setdefault(name, value)
    sent = dict(headers or {})
    if isinstance(error, Unavailable):
        sent.setdefault("Retry-After", str(max(1, round(error.retry_after))))
    elif error.status == 429:
        sent.setdefault("Retry-After", str(error.details.get("retryAfter", 60)))
    elif error.status == 401:
        sent.setdefault("WWW-Authenticate", 'Bearer realm="corral"')
    elif error.status == 413:
        sent.setdefault("Connection", "close")
    if error.code in _CLOSING:
        sent.setdefault("Connection", "close")
    return Json(body, status_code=error.status, headers=sent)


def read_json(body: bytes, kind: Any) -> Any:
    """Decode `body` as a value of `kind`.

    Raises InvalidInput when it is not JSON of that shape.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        if words := refused_field(str(error)):
            raise InvalidInput("invalid-body", words) from None
        raise InvalidInput("invalid-body", f"The body does not fit: {error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput("malformed-body", f"The body is not JSON: {error}.") from None


def answers(
    kind: Any, status: int = 200, *, text: str = "What was asked for", also: tuple[int, ...] = ()
) -> dict[Any, Any]:
    """Return the `responses` of a route: `status` with a `kind` (None: no content), and the usual refusals."""
    documented: dict[Any, Any] = {}
    if kind is None:
        documented[status] = {"description": text}
    else:
        documented[status] = {"description": text, "content": {"application/json": {"schema": schema_of(kind)}}}
    for refused in (*_USUAL, *also):
        documented[refused] = refused_with(refused)
    return documented


def schema_of(kind: Any) -> dict[str, Any]:
    """Return a reference to the schema of a struct, which is added to the components; also of unions and mappings."""
    if isinstance(kind, UnionType):
        return {"anyOf": [schema_of(part) for part in kind.__args__]}
    if getattr(kind, "__origin__", kind) is dict:
        return {"type": "object"}
    if kind not in SHAPES:
        SHAPES.append(kind)
    return {"$ref": REFERENCE.format(name=_name_of(kind))}


def refused_with(status: int) -> dict[str, Any]:
    """Return the documentation of a refusal."""
    return {
        "description": _REFUSALS[status],
        "content": {"application/json": {"schema": schema_of(ErrorShape)}},
    }


def json_body(kind: Any) -> dict[str, Any]:
    """Return the `openapi_extra` of a route that reads its JSON body with `read_json`."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema_of(kind)}}}}


def _name_of(kind: Any) -> str:
    """Return the name that msgspec gives the schema of a struct, generic arguments included."""
    arguments = getattr(kind, "__args__", ())
    name: str = getattr(kind, "__origin__", kind).__name__
    if arguments:
        name += f"[{', '.join(argument.__name__ for argument in arguments)}]"
    return _NOT_IN_NAME.sub("_", name)


_USUAL: Final = (400, 401, 403, 404, 422, 429, 503)
_REFUSALS: Final = {
    400: "What was sent cannot be accepted",
    401: "No valid token came with the call",
    403: "The actor may not do this",
    404: "There is no such thing for this actor",
    405: "The address does not take this method",
    409: "The state of things forbids it now",
    413: "The body passes a bound",
    415: "The body is of another type than is read here",
    416: "The range is outside of what there is",
    422: "A parameter is missing or malformed",
    429: "A rate limit was passed",
    503: "Something underneath does not answer; try again later",
}
