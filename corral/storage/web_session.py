"""A session of HTTP with the NameNodes of one HDFS: it follows a fail-over, and answers one that asks for Kerberos."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from corral.storage.kerberos.negotiate import Negotiator, words_of_page
from corral.storage.kerberos.tickets import Identity
from corral.storage.kerberos.token_file import token_for

if TYPE_CHECKING:
    import requests

SILENCE: Final = (10.0, 120.0)
"""Seconds to wait for a connection, and then for each answer."""
STANDBY: Final = (b"StandbyException", b"is in state standby")
"""What the answer of a NameNode that is not active has."""
_FAIL_OVER_SECONDS: Final = 120.0
"""Seconds for which an active NameNode of a pair is looked for."""
_PAUSES: Final = (0.5, 5.0)
"""Seconds between two looks at first, and at most."""


def session(name_nodes: Sequence[str]) -> requests.Session:
    """A session that takes a call of the first of these HOST:PORT to whichever is active.

    Over TLS it trusts the authorities in the file `SSL_CERT_FILE`, else the usual ones.
    """
    import requests

    kerberos = Negotiator(Identity(), token_for)

    class Session(requests.Session):
        _active = name_nodes[0]

        def request(self, method: Any, url: Any, **given: Any) -> requests.Response:  # type: ignore[override]
            scheme, _, rest = url.partition("://")
            if len(name_nodes) == 1 or rest.partition("/")[0] != name_nodes[0]:
                return self._one(method, url, given)
            deadline, pause = time.monotonic() + _FAIL_OVER_SECONDS, _PAUSES[0]
            while True:
                is_late = time.monotonic() > deadline
                found = self._any(method, scheme, rest.removeprefix(name_nodes[0]), given)
                if isinstance(found, requests.Response) and (is_late or not _is_standby(found)):
                    return found
                if is_late and isinstance(found, Exception):
                    raise found
                time.sleep(pause)
                pause = min(2 * pause, _PAUSES[1])

        def _any(self, method: str, scheme: str, rest: str, given: Any) -> requests.Response | Exception:
            """The answer of the active NameNode; if none is, the last one's answer or error."""
            first = name_nodes.index(self._active)
            found: requests.Response | Exception | None = None
            for each in (*name_nodes[first:], *name_nodes[:first]):
                try:
                    found = self._one(method, f"{scheme}://{each}{rest}", given)
                except requests.ConnectionError as error:
                    if not _may_repeat(error, given):
                        raise
                    found = error
                    continue
                if not _is_standby(found):
                    self._active = each
                    break
            assert found is not None
            return found

        def _one(self, method: Any, url: Any, given: Any) -> requests.Response:
            trusted = os.environ.get("SSL_CERT_FILE") or None  # given with the call, or REQUESTS_CA_BUNDLE would win
            terms = kerberos.terms(url, {"timeout": SILENCE, "verify": trusted, **given})
            answer = super().request(method, url, **terms)
            challenge = answer.headers.get("WWW-Authenticate", "")
            if not answer.history and kerberos.is_asked(url, answer.status_code, challenge):
                answer = super().request(method, url, **kerberos.signed(url, terms))
                if answer.status_code in (401, 403) and (why := words_of_page(answer.content)):
                    raise PermissionError(f"the NameNode refuses the Kerberos ticket: {why}")
            return answer

    return Session()


def _is_standby(answer: requests.Response) -> bool:
    return answer.status_code in (403, 503) and any(each in answer.content for each in STANDBY)


def _may_repeat(error: Exception, given: Mapping[str, Any]) -> bool:
    """Whether a call without an answer may be made again: a rename may be done, and no certificate gets better."""
    import requests
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

    if isinstance(error, requests.exceptions.SSLError):
        return False
    reason = getattr(error.args[0], "reason", None) if error.args else None
    was_sent = not isinstance(reason, ConnectTimeoutError | NewConnectionError)
    return not was_sent or (given.get("params") or {}).get("op") != "RENAME"
