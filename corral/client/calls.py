"""The calls of the API, built without input or output, for both clients.

`corral.client.operations` has a function for each operation of the API that returns its `Call`. A client sends the call
and returns the decoded answer. The two clients differ only in how they send it.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

from corral.kernel import errors

API = "/api/v3"
Query = Mapping[str, Any]
Answer = TypeVar("Answer")
Method = TypeVar("Method", bound=Callable[..., Any])
_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)


class Call(NamedTuple, Generic[Answer]):
    """One request, typed by its answer: `body` is encoded already, `headers` come on top of the usual ones."""

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = {}


def call(method: str, path: str, query: Query | None = None, *, data: Any = None, **headers: str) -> Call[Any]:
    """Return a call of the native API; empty query values are left out, and `data` is sent as JSON."""
    given = {name: _text(value) for name, value in (query or {}).items() if value not in (None, "", False, [], ())}
    target = API + path + ("?" + urlencode(given, doseq=True) if given else "")
    body = None if data is None else json.dumps(data).encode()
    kept = {name.replace("_", "-"): value for name, value in headers.items() if value}
    if body is not None:
        kept["content-type"] = "application/json"
    return Call(method, target, body, kept)


def job_path(ref: str, *parts: object) -> str:
    """Return the path of a job, or of one of its parts."""
    return "/".join(["/jobs", quote(ref, safe="~"), *(quote(str(part), safe="") for part in parts)])


def written(made: Call[Answer], text: str | bytes) -> Call[Answer]:
    """Return the call with the text of a file as its body."""
    body = text.encode() if isinstance(text, str) else text
    return made._replace(body=body, headers={**made.headers, "content-type": media_type(body)})


def worded(method: Method, operation: Callable[..., Call[Any]]) -> Method:
    """Return `method` with the name, docstring and parameters of its operation."""
    functools.update_wrapper(method, operation)
    said = inspect.signature(operation)
    answer = str(said.return_annotation).removeprefix("Call[").removesuffix("]")
    shown = said.replace(parameters=[_SELF, *said.parameters.values()], return_annotation=answer)
    method.__signature__ = shown  # type: ignore[attr-defined]
    return method


def media_type(body: bytes) -> str:
    """Return the media type of a job file, by its first character."""
    return "application/json" if body.lstrip()[:1] in (b"{", b"[") else "application/yaml"


def raise_for(status: int, body: bytes, retry_after: str = "") -> None:
    """Raise the error that the server answered with; return if the status is below 400."""
    if status < 400:
        return
    try:
        shape = json.loads(body)
        code, message = str(shape["code"]), str(shape["message"])
    except (ValueError, KeyError, TypeError):
        shape, code, message = {}, "unknown-answer", f"The server answered {status} in a way that is not Corral's."
    details = {name: value for name, value in shape.items() if name not in ("code", "message")}
    if status == 503:
        wait = float(retry_after) if retry_after.isdecimal() else 1.0
        raise errors.Unavailable(code, message, retry_after=wait)
    raise _KINDS.get(status, errors.CorralError)(code, message, **details)


_KINDS: dict[int, type[errors.CorralError]] = {
    400: errors.InvalidInput,
    401: errors.Unauthenticated,
    403: errors.Forbidden,
    404: errors.NotFound,
    405: errors.InvalidInput,
    409: errors.Conflict,
    413: errors.TooLarge,
    415: errors.InvalidInput,
    416: errors.InvalidInput,
    422: errors.InvalidInput,
    429: errors.TooManyRequests,
}


def _text(value: Any) -> Any:
    return "true" if value is True else value
