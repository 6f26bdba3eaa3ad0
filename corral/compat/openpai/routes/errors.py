"""Translate errors into OpenPAI's error shape `{code, message}`, with OpenPAI's error names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from corral.api.json_responses import Json
from corral.compat.openpai.service.errors import (
    OpenPaiRefusal,
    administrators_only,
    applications_not_allowed,
    bad_parameters,
    bad_token,
    guest,
)
from corral.kernel.errors import CorralError, Unavailable

_PLACES: Final = ("/api/v1", "/api/v2", "/api/internal", "/rest-server")
_URL_SHOWN: Final = 2000
_APPLICATION_RULE: Final = "application-token"
_ADMINISTRATORS_RULE: Final = "administrators-only"


def is_openpai(path: str) -> bool:
    """Return whether a path belongs to OpenPAI's API, so that its errors have OpenPAI's shape."""
    return any(path == place or path.startswith(f"{place}/") for place in _PLACES)


def refusal(error: CorralError) -> Json:
    """Return the response for an error, in OpenPAI's shape."""
    said = in_openpais_words(error)
    headers: dict[str, str] = {}
    if isinstance(error, Unavailable):
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
    elif said.status == 429:
        headers["Retry-After"] = str(error.details.get("retryAfter", 60))
    elif said.status == 413:
        headers["Connection"] = "close"
    return _answer(said, headers)


def no_api(connection: HTTPConnection) -> Json:
    """Return the response for an unknown path or method."""
    url = connection.scope["path"]
    query = connection.scope["query_string"].decode("latin-1")
    shown = (f"{url}?{query}" if query else url)[:_URL_SHOWN]
    return _answer(OpenPaiRefusal("NoApiError", f"API {shown} is not found."))


def fault(correlation: str) -> Json:
    """Return the response to an unexpected exception, with the id of its entry in the server's log."""
    return _answer(OpenPaiRefusal("UnknownError", f"The server failed to answer; look for {correlation} in its log."))


def on_http_exception(connection: HTTPConnection, error: HTTPException) -> Json:
    """Return the response for an error of the web framework."""
    if error.status_code in (404, 405):
        return no_api(connection)
    name = _BY_STATUS.get(error.status_code, "UnknownError")
    return _answer(OpenPaiRefusal(name, str(error.detail), status=error.status_code))


def invalid_parameter(where: str, what: str) -> Json:
    """Return the response for a malformed parameter of the path or query."""
    return _answer(bad_parameters(f"The parameter {where} cannot be used: {what}."))


def in_openpais_words(error: CorralError) -> OpenPaiRefusal:
    """Return an error of the service under its OpenPAI name."""
    if isinstance(error, OpenPaiRefusal):
        return error
    rule = error.details.get("rule")
    if rule == _APPLICATION_RULE:
        return applications_not_allowed()
    if rule == _ADMINISTRATORS_RULE:
        return administrators_only()
    known = _BY_CODE.get(error.code)
    if known is not None:
        return known(error)
    return OpenPaiRefusal(_BY_STATUS.get(error.status, "UnknownError"), error.message, status=error.status)


def _as(name: str, message: str = "", *, status: int | None = None) -> Callable[[CorralError], OpenPaiRefusal]:
    def said(error: CorralError) -> OpenPaiRefusal:
        return OpenPaiRefusal(name, message or error.message, status=status)

    return said


def _answer(said: OpenPaiRefusal, headers: dict[str, str] | None = None) -> Json:
    body: dict[str, Any] = {"code": said.code, "message": said.message}
    return Json(body, status_code=said.status, headers=headers)


_BY_CODE: Final[dict[str, Callable[[CorralError], OpenPaiRefusal]]] = {
    "not-signed-in": lambda _: guest(),
    "bad-authorization": lambda _: bad_token(),
    "bad-token": lambda _: bad_token(),
    "token-expired": lambda _: bad_token(),
    "token-revoked": lambda _: bad_token(),
    "account-disabled": lambda _: bad_token(),
    "wrong-password": _as("IncorrectPasswordError", "Password is incorrect."),
    "invalid-document": _as("InvalidProtocolError"),
    "user-not-found": _as("NoUserError"),
    "no-oidc": _as("NoApiError"),
    "bad-user-name": lambda error: bad_parameters(error.message),
    "bad-password": lambda error: bad_parameters(error.message),
    "user-has-jobs": _as("ConflictUserError"),
    "single-user": _as("ConflictUserError"),
    "user-exists": _as("ConflictUserError"),
    "last-admin": _as("RemoveAdminError"),
    "job-not-found": _as("NoJobError"),
    "name-taken": _as("ConflictJobError"),
    "unknown-queue": _as("NoVirtualClusterError", status=404),
    "queue-not-found": _as("NoVirtualClusterError"),
    "queue-closed": _as("ConflictVcError"),
    "storage-not-found": _as("NoStorageError"),
    "task-not-found": _as("NoTaskError"),
    "impossible-request": _as("NoEnoughQuotaError"),
    "no-enough-quota": _as("NoEnoughQuotaError"),
}
_BY_STATUS: Final = {
    400: "InvalidParametersError",
    401: "UnauthorizedUserError",
    403: "ForbiddenUserError",
    404: "NoApiError",
    409: "ConflictJobError",
    413: "InvalidParametersError",
    422: "InvalidParametersError",
    429: "TooManyRequestsError",
}
