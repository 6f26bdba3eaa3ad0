"""Calls to Hadoop's REST interfaces, with fail-over between the two daemons of a pair."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import httpx2
import msgspec

from corral.kernel.errors import Conflict, CorralError, Forbidden, InvalidInput, NotFound, Unavailable
from corral.storage.kerberos.negotiate import Negotiator, words_of_page
from corral.storage.kerberos.tickets import Identity
from corral.storage.web_session import STANDBY

_log = logging.getLogger(__name__)
CALL_SECONDS: Final = 20.0
NOBODY: Final = Identity()
"""Nobody in particular: the tickets of the process's environment, if a daemon asks for some."""
MOST_ANSWER: Final = 64 * 1024 * 1024
"""Bytes of an answer that are read."""
_CALLS_AT_ONCE: Final = 50
"""Calls of the daemons of one service that are made at once."""
_WHOLE_SECONDS: Final = 60.0
"""Seconds for a whole call: a daemon that sends a byte now and then must not hold its caller."""
_CONNECT_SECONDS: Final = 5.0
"""Seconds for a connection to one of a pair: a host without power refuses none."""
_STANDBY: Final = (*STANDBY, b"This is standby RM", b"any active RM", b"no active RM")

_AWAY: Final = (502, 503, 504)
"""The status with which a daemon that ends or begins answers, or a proxy before it; without a message of Hadoop's own."""


class _Answer(NamedTuple):
    """An HTTP answer with its whole content."""

    status: int
    content: bytes
    challenge: str = ""
    """How it asks who calls (WWW-Authenticate)."""


class _Place(msgspec.Struct, frozen=True, rename={"location": "Location"}):
    """The DataNode that takes a file's bytes."""

    location: str


class HadoopRest:
    """A client of the daemons of one service: the ResourceManagers, or the NameNodes."""

    def __init__(self, name: str, urls: Sequence[str], user: str, identity: Identity = NOBODY) -> None:
        """`name` is the service's name in messages; `user` is the Hadoop user that calls, `identity` has its tickets."""
        self._name, self._urls, self._user = name, [url.rstrip("/") for url in urls], user
        self._first = 0
        self._kerberos = Negotiator(identity)
        limits = httpx2.Limits(max_connections=_CALLS_AT_ONCE)
        timeout = httpx2.Timeout(CALL_SECONDS, connect=_CONNECT_SECONDS if len(urls) > 1 else CALL_SECONDS)
        self._client = httpx2.AsyncClient(timeout=timeout, follow_redirects=False, limits=limits)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def ask(
        self, method: str, path: str, *, user: str = "", body: Any = None, data: bytes | None = None, **query: str
    ) -> Any:
        """Call the active daemon as `user` ("" is the caller itself); returns its JSON, None for an empty answer.

        Raises a CorralError: Unavailable when none answers.
        """
        answer = await self._active(method, path, user, body, data, query)
        if not answer.content:
            return None
        try:
            return msgspec.json.decode(answer.content)
        except msgspec.DecodeError:
            raise Unavailable("hadoop-answer", f"The {self._name}'s answer to {path} is not JSON.") from None

    async def put_file(self, path: str, data: bytes, *, user: str = "", **query: str) -> None:
        """Write a file by WebHDFS: the NameNode names the DataNode that takes the bytes. Raises like `ask`."""
        create = {"op": "CREATE", "noredirect": "true", **query}
        try:
            place = msgspec.json.decode(
                (await self._active("PUT", path, user, None, None, create)).content, type=_Place
            )
        except msgspec.DecodeError:
            raise Unavailable(
                "hadoop-answer", f"The {self._name} does not say where {path} is to be written."
            ) from None
        try:
            kind = {"Content-Type": "application/octet-stream"}  # HttpFS takes no bytes without it
            answer = await self._answer("PUT", place.location, content=data, headers=kind)
        except (TimeoutError, httpx2.HTTPError) as error:
            raise _silent(place.location, path, error) from error
        _check(self._name, path, answer)

    async def read_file(self, path: str, *, user: str = "") -> bytes:
        """Read a file by WebHDFS, from the DataNode that the NameNode names. Raises like `ask`."""
        place = await self.ask("GET", path, user=user, op="OPEN", noredirect="true")
        try:
            where = msgspec.convert(place, _Place).location
        except msgspec.ValidationError:
            raise Unavailable("hadoop-answer", f"The {self._name} does not say where {path} is to be read.") from None
        try:
            answer = await self._answer("GET", where)
        except (TimeoutError, httpx2.HTTPError) as error:
            raise _silent(where, path, error) from error
        _check(self._name, path, answer)
        return answer.content

    async def _active(
        self, method: str, path: str, user: str, body: Any, data: bytes | None, query: dict[str, str]
    ) -> _Answer:
        """The answer of the daemon that is active; the others are tried in turn."""
        content = msgspec.json.encode(body) if body is not None else data
        headers = {"Accept": "application/json"} | ({"Content-Type": "application/json"} if body is not None else {})
        terms = {"params": {**self._identity(user), **query}, "content": content, "headers": headers}
        silent, standby = list[str](), list[str]()
        for turn in range(len(self._urls)):
            which = (self._first + turn) % len(self._urls)
            answer = await self._one(which, method, path, terms)
            if isinstance(answer, str):
                silent.append(answer)
            elif _is_standby(answer):
                standby.append(f"The {self._name} at {self._urls[which]} is a standby.")
            else:
                # a standby names a DataNode for a new file as well
                if which != self._first and query.get("op") != "CREATE":
                    self._first = which
                    _log.info("the %s at %s is active", self._name, self._urls[which])
                _check(self._name, path, answer)
                return answer
        if not silent:
            raise Unavailable("hadoop-standby", f"No {self._name} is active.")
        raise Unavailable("hadoop-unreachable", " ".join((*silent, *standby)))

    async def states(self, path: str, **query: str) -> dict[str, str]:
        """By the URL of each daemon `active`, `standby`, or a sentence that says why it does not answer.

        `path` is something small that only the active one tells.
        """
        terms = {"params": {**self._identity(""), **query}, "headers": {"Accept": "application/json"}}
        found = {}
        for which, url in enumerate(self._urls):
            answer = await self._one(which, "GET", path, terms)
            found[url] = answer if isinstance(answer, str) else "standby" if _is_standby(answer) else "active"
        return found

    async def _one(self, which: int, method: str, path: str, terms: dict[str, Any]) -> _Answer | str:
        """The answer of one daemon, or the sentence that says why there is none."""
        try:
            answer = await self._known(method, f"{self._urls[which]}{path}", terms)
            if answer.status not in _AWAY or _message(answer) or _is_standby(answer):
                return answer
            why = f"HTTP {answer.status}"
        except (TimeoutError, httpx2.HTTPError) as error:
            why = _why(error)
        return f"The {self._name} at {self._urls[which]} does not answer: {why}."

    async def _known(self, method: str, url: str, terms: dict[str, Any]) -> _Answer:
        """Call one daemon, again with a ticket if it asks for Kerberos. Raises like `_answer`, Unavailable without one."""
        answer = await self._answer(method, url, **self._kerberos.terms(url, terms))
        if self._kerberos.is_asked(url, answer.status, answer.challenge):
            answer = await self._answer(method, url, **await self._kerberos.signed_soon(url, terms))
        return answer

    async def _answer(self, method: str, url: str, **terms: Any) -> _Answer:
        """Call one daemon.

        Raises Unavailable for an answer that is too large, TimeoutError or httpx2.HTTPError when there is none.
        """
        content = bytearray()
        async with asyncio.timeout(_WHOLE_SECONDS), self._client.stream(method, url, **terms) as answer:
            async for piece in answer.aiter_bytes():
                content += piece
                if len(content) > MOST_ANSWER:
                    message = f"An answer of the {self._name} has more than {MOST_ANSWER // 2**20} MiB."
                    raise Unavailable("hadoop-answer", message)
            return _Answer(answer.status_code, bytes(content), answer.headers.get("WWW-Authenticate", ""))

    def _identity(self, user: str) -> dict[str, str]:
        """The caller; and the user that it acts for as a proxy user, if that is another one."""
        return {"user.name": self._user} | ({"doas": user} if user and user != self._user else {})


def _silent(location: str, path: str, error: Exception) -> Unavailable:
    """The error for a DataNode that does not answer, such as one that waits for an active NameNode."""
    name = path.removeprefix("/webhdfs/v1")
    message = f"The DataNode at {urlsplit(location).netloc} does not answer for {name[-100:]}: {_why(error)}."
    return Unavailable("hadoop-unreachable", message)


def _why(error: Exception) -> str:
    """Why a daemon gave no answer, in words."""
    if isinstance(error, httpx2.ConnectTimeout):
        return "it takes no connection"
    if isinstance(error, httpx2.PoolTimeout):
        return f"{_CALLS_AT_ONCE} calls wait for its answer already"
    if isinstance(error, httpx2.TimeoutException):
        return f"it took the call and was silent for {CALL_SECONDS:.0f} s"
    if isinstance(error, TimeoutError):
        return f"its answer was not complete after {_WHOLE_SECONDS:.0f} s"
    return str(error) or type(error).__name__


def _is_standby(answer: _Answer) -> bool:
    return answer.status in (307, 403, 503) and any(each in answer.content for each in _STANDBY)


class _Refusal(NamedTuple):
    """A refusal of Hadoop's that Corral knows."""

    words: str
    kind: type[CorralError]
    code: str
    advice: str


_KNOWN: Final = (
    _Refusal("safe mode", Unavailable, "hadoop-safe-mode", "wait until it has left safe mode, or end it"),
    # of a DataNode, whose NameNode has just become one
    _Refusal("StandbyException", Unavailable, "hadoop-standby", "another one becomes active"),
    _Refusal("is not allowed to impersonate", Forbidden, "hadoop-proxy-user", "allow it by hadoop.proxyuser.USER.*"),
    _Refusal("QuotaExceeded", Conflict, "hadoop-quota", "raise the quota, or delete what is not needed"),
    _Refusal("could only be written to", Unavailable, "hadoop-no-space", "no DataNode takes a block: look for space"),
    _Refusal("unknown queue", InvalidInput, "hadoop-no-queue", "name a queue of YARN's by yarn_queue or yarn_queues"),
    _Refusal("non-leaf queue", InvalidInput, "hadoop-no-queue", "name a queue without queues below it"),
    _Refusal("is STOPPED", Unavailable, "hadoop-queue-stopped", "start the queue, or name another one"),
    _Refusal("cannot submit applications to queue", Forbidden, "hadoop-queue-closed", "allow the user in the queue"),
    _Refusal("does not have permission", Forbidden, "hadoop-queue-closed", "allow the user in the queue"),
    _Refusal("already has", Unavailable, "hadoop-queue-full", "the queue has its most applications: wait, or raise it"),
    _Refusal("resource type", InvalidInput, "hadoop-no-resource", "declare it in resource-types.xml"),
    _Refusal("Resource type", InvalidInput, "hadoop-no-resource", "declare it in resource-types.xml"),
    _Refusal("Permission denied", Forbidden, "hadoop-permission", "give the user that right in HDFS"),
    _Refusal("ParentNotDirectoryException", Conflict, "hadoop-path-taken", "a file is where a folder is needed"),
    _Refusal("FileAlreadyExistsException", Conflict, "hadoop-path-taken", "something else has this path; move it"),
    _Refusal("is already taken", Conflict, "hadoop-name-taken", "it is there already"),
    _Refusal("already exists", Conflict, "hadoop-name-taken", "it is there already"),
    _Refusal("doesn't exist", NotFound, "hadoop-not-there", "it is not there any more"),
)
"""By a part of Hadoop's own message, the first that matches."""


def _check(name: str, path: str, answer: _Answer) -> None:
    """Raise the CorralError for a refusal."""
    if answer.status < 300:
        return
    said = _message(answer) or words_of_page(answer.content)
    if answer.status == 404 and not said and path.startswith("/app/"):
        message = (
            f"The {name} does not serve services: set yarn.webapp.api-service.enable to true in its yarn-site.xml."
        )
        raise Unavailable("hadoop-no-service-api", message)
    for known in _KNOWN:
        if known.words in said:
            raise known.kind(known.code, f"The {name} refuses {path}: {said.rstrip('.')}; {known.advice}.")
    kinds: dict[int, type[CorralError]] = {
        400: InvalidInput,
        401: Forbidden,
        403: Forbidden,
        404: NotFound,
        409: Conflict,
    }
    kind = kinds.get(answer.status, Unavailable)
    raise kind("hadoop-refused", f"The {name} refuses {path}: {said or f'HTTP {answer.status}'}")


def _message(answer: _Answer) -> str:
    """The first line of a refusal's own message in at most 300 characters; "" when it has none."""
    try:
        said = msgspec.json.decode(answer.content)
    except msgspec.DecodeError:
        return ""
    if not isinstance(said, dict):
        return ""
    remote = said.get("RemoteException")
    found = remote.get("message") if isinstance(remote, dict) else said.get("diagnostics") or said.get("message")
    if isinstance(remote, dict) and remote.get("exception"):
        found = f"{remote['exception']}: {found}"
    return str(found).splitlines()[0][:300] if found else ""
