"""Why: the sync and the async client make the same calls; what a call is stands here once, without any input or output.

Each function returns a `Call`; a client sends it and gives back its decoded answer. The two clients differ only in how.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from corral.kernel import errors

API = "/api/v3"
Query = Mapping[str, Any]


class Call(NamedTuple):
    """One request: `body` is bytes already, `headers` are those beyond the usual."""

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = {}


def call(method: str, path: str, query: Query | None = None, *, data: Any = None, **headers: str) -> Call:
    """A call of the native API; empty query values are left out, `data` is sent as JSON."""
    given = {name: _text(value) for name, value in (query or {}).items() if value not in (None, "", False, [], ())}
    target = API + path + ("?" + urlencode(given, doseq=True) if given else "")
    body = None if data is None else json.dumps(data).encode()
    kept = {name.replace("_", "-"): value for name, value in headers.items() if value}
    if body is not None:
        kept["content-type"] = "application/json"
    return Call(method, target, body, kept)


def job_path(ref: str, *parts: object) -> str:
    """The path of a job, or of something of it."""
    return "/".join(["/jobs", quote(ref, safe="~"), *(quote(str(part), safe="") for part in parts)])


def submit(
    text: str | bytes,
    *,
    parameters: Mapping[str, str] | None = None,
    idempotency_key: str = "",
    wait_for_capacity: bool = False,
    dry_run: bool = False,
    no_image: bool = False,
    code: str = "",
) -> Call:
    """Submit a job file."""
    query = {
        "set": [f"{name}={value}" for name, value in (parameters or {}).items()],
        "waitForCapacity": wait_for_capacity,
        "dryRun": dry_run,
        "noImage": no_image,
        "code": code,
    }
    made = call("POST", "/jobs", query, idempotency_key=idempotency_key)
    body = text.encode() if isinstance(text, str) else text
    return made._replace(body=body, headers={**made.headers, "content-type": media_type(body)})


def validate(text: str | bytes, *, parameters: Mapping[str, str] | None = None) -> Call:
    """Ask what is wrong with a job file."""
    body = text.encode() if isinstance(text, str) else text
    pairs = [f"{name}={value}" for name, value in (parameters or {}).items()]
    made = call("POST", "/validate", {"set": pairs})
    return made._replace(body=body, headers={"content-type": media_type(body)})


def list_jobs(
    *,
    state: Sequence[str] = (),
    user: Sequence[str] = (),
    queue: Sequence[str] = (),
    q: str = "",
    tag: str = "",
    job_type: str = "",
    order: str = "",
    limit: int = 50,
    after: str = "",
) -> Call:
    """A page of jobs."""
    query = {"state": list(state), "user": list(user), "queue": list(queue), "q": q, "tag": tag, "type": job_type}
    return call("GET", "/jobs", {**query, "order": order, "limit": limit, "after": after})


def history(*, user: str = "", limit: int = 50, after: str = "") -> Call:
    """A page of the lines that removed jobs have left."""
    return call("GET", "/history", {"user": user, "limit": limit, "after": after})


def document_path(kind: str, name: str, *parts: str) -> str:
    """The path of a configuration document, or of something of it."""
    return "/".join(["/documents", quote(kind, safe=""), quote(name, safe=""), *parts])


def put_documents(
    path: str, text: str | bytes, *, method: str = "POST", query: Query | None = None, guard: int | None = None
) -> Call:
    """Send documents; `guard` is the revision that must be the current one, 0 when there must be none."""
    made = call(method, path, query, **guarded(guard))
    body = text.encode() if isinstance(text, str) else text
    return made._replace(body=body, headers={**made.headers, "content-type": media_type(body)})


def guarded(guard: int | None) -> dict[str, str]:
    """The header that says which revision must be the current one."""
    if guard is None:
        return {}
    return {"if_match": f'"{guard}"'} if guard else {"if_none_match": "*"}


def changing(note: str, dry_run: bool, preempt: bool) -> Query:
    """The query of a change of documents."""
    return {"note": note, "dryRun": dry_run, "preempt": preempt}


def log_path(
    ref: str, role: str = "", index: int = 0, *, follow: bool = False, tail: int | None = None, **query: Any
) -> str:
    """The address of a task's log, or of the merged log of the job without a role."""
    parts = ("tasks", role, index, "logs") if role else ("logs",)
    shown = {"follow": follow, **query}
    if tail is not None:
        shown["tail"] = str(tail)
    return call("GET", job_path(ref, *parts), shown).path


def media_type(body: bytes) -> str:
    """What a job file's first character says it is."""
    return "application/json" if body.lstrip()[:1] in (b"{", b"[") else "application/yaml"


def raise_for(status: int, body: bytes, retry_after: str = "") -> None:
    """Turn a refusal back into the error that the server raised."""
    if status < 400:
        return
    try:
        shape = json.loads(body)
        code, message = str(shape["code"]), str(shape["message"])
    except (ValueError, KeyError, TypeError):
        shape, code, message = {}, "unknown-answer", f"The server answered {status} in a way that is not Corral's."
    details = {name: value for name, value in shape.items() if name not in ("code", "message")}
    if status == 503:
        wait = float(retry_after) if retry_after.isdigit() else 1.0
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
