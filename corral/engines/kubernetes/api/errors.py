"""Translate an API server's refusals to CorralErrors, with one clear sentence each.

Source of the reasons: apimachinery's `metav1.StatusReason`. Some refusals are distinguished by their messages:

* the RBAC authorizer: "User … cannot VERB resource …"
* the quota admission plug-in: "exceeded quota: NAME"
* admission webhooks: "admission webhook "NAME" denied the request: …", with any code
* unavailable webhooks: "failed calling webhook "NAME": …"
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from corral.engines.kubernetes.api.resources import Call
from corral.kernel.errors import (
    Conflict,
    CorralError,
    Forbidden,
    InvalidInput,
    NotFound,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)

UNDECLARED: Final = "field not declared in schema"
WEBHOOK: Final = "kubernetes-webhook"
"""A required admission webhook does not answer: nothing was changed, and an immediate retry would not help."""
MOST_MESSAGE: Final = 1_000
"""Characters of the server's own message that are passed on."""


class Cause(msgspec.Struct, frozen=True):
    """One of several reasons."""

    reason: str = ""
    message: str = ""


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    """The object, causes and retry wait of a refusal."""

    name: str = ""
    kind: str = ""
    causes: tuple[Cause, ...] | None = None
    retry_after_seconds: float = 0.0


class Status(msgspec.Struct, frozen=True):
    """`v1` Status: the API server's answer when it refuses a call."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


class Expired(Conflict):
    """The resource version or continue token is too old, or newer than the server: list again."""


class IdleTimeout(Unavailable):
    """A connection was silent for longer than allowed."""


_DECODER: Final = msgspec.json.Decoder(Status)
_USER: Final = re.compile(r'User "([^"]{1,300})" cannot ')
_DENIED: Final = re.compile(r'admission webhook "[^"]{1,300}" denied the request')
_NOT_CALLED: Final = re.compile(r'failed calling webhook "([^"]{1,300})"')
_TOO_NEW: Final = "Too large resource version"


def read_status(code: int, body: bytes) -> Status:
    """Decode the Status in `body`. If there is none (a proxy answered), build one from the text."""
    try:
        found = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Status(message=" ".join(body[:200].decode(errors="replace").split()), code=code)
    return msgspec.structs.replace(found, code=found.code or code)


def refusal(call: Call, status: Status, *, retry_after: float = 1.0) -> CorralError:
    """Return the CorralError for the API server's answer to `call`."""
    said = _said(status)
    details: dict[str, object] = {"reason": status.reason, "call": str(call)}
    if expired(status):
        return Expired(
            "kubernetes-expired", f"The cluster no longer knows the state from which to {call}{said}", **details
        )
    if status.code == 500 and UNDECLARED in status.message:  # of an apply; repeating it does not help
        return InvalidInput("kubernetes-undeclared", f"The cluster's definition is too old to {call}{said}", **details)
    if _DENIED.match(status.message) and status.code < 500 and status.code != 429:
        return _not_admitted(call, said, details)
    if status.code == 500 and (webhook := _NOT_CALLED.search(status.message)):
        sentence = f'The admission webhook "{webhook[1]}" of the cluster could not be asked whether to {call}{said}'
        return Unavailable(WEBHOOK, sentence, retry_after=retry_after, **details)
    if status.code == 403:
        return _forbidden(call, status, said, details)
    if status.code == 409:
        code = "kubernetes-exists" if status.reason == "AlreadyExists" else "kubernetes-conflict"
        return Conflict(code, f"The cluster could not {call}{said}", **details)
    if status.code == 429:
        sentence = f"The cluster is too busy to {call}; try again in {retry_after:g} s{said}"
        return TooManyRequests("kubernetes-busy", sentence, retry_after=retry_after, **details)
    if status.code in _PLAIN:
        kind, code, sentence = _PLAIN[status.code]
        return kind(code, f"{sentence.format(call=call)}{said}", **details)
    if 400 <= status.code < 500:
        return InvalidInput(
            "kubernetes-refused", f"The cluster refused to {call} (HTTP {status.code}){said}", **details
        )
    return Unavailable(
        "kubernetes-failed",
        f"The cluster failed to {call} (HTTP {status.code}){said}",
        retry_after=retry_after,
        **details,
    )


def expired(status: Status) -> bool:
    """Return whether a new list is needed (410, or a version newer than the server's)."""
    if status.code == 410 or status.reason in {"Expired", "Gone"}:
        return True
    causes = (status.details and status.details.causes) or ()
    return any(cause.reason == "ResourceVersionTooLarge" for cause in causes) or _TOO_NEW in status.message


_PLAIN: Final[dict[int, tuple[type[CorralError], str, str]]] = {
    400: (InvalidInput, "kubernetes-refused", "The cluster refused to {call}"),
    401: (
        Unauthenticated,
        "kubernetes-unauthenticated",
        "The cluster does not accept Corral's credentials to {call}; renew the token or certificate of its kubeconfig",
    ),
    404: (NotFound, "kubernetes-not-found", "The cluster could not {call}: it has no such thing"),
    413: (TooLarge, "kubernetes-too-large", "The request to {call} is larger than the cluster accepts"),
    422: (InvalidInput, "kubernetes-refused", "The cluster refused to {call}"),
}


def _forbidden(call: Call, status: Status, said: str, details: dict[str, object]) -> Forbidden:
    """Classify a 403: permissions (only they name the user), quota, or admission."""
    if user := _USER.search(status.message):
        grant = f"allow its account ({user[1]}) the verb {call.verb} on {call.resource.title}"
        return Forbidden("kubernetes-forbidden", f"Corral may not {call.what}: {grant}.", **details)
    if "exceeded quota" in status.message:
        return Forbidden("kubernetes-quota", f"A resource quota of the cluster forbids to {call}{said}", **details)
    return _not_admitted(call, said, details)


def _not_admitted(call: Call, said: str, details: dict[str, object]) -> Forbidden:
    return Forbidden("kubernetes-admission", f"An admission rule of the cluster forbids to {call}{said}", **details)


def _said(status: Status) -> str:
    """Return the server's own words as the end of a sentence."""
    words = " ".join(status.message.split())[:MOST_MESSAGE]
    return f": {words.rstrip('.')}." if words else "."
