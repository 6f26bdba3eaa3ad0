"""Calls to Hadoop's REST interfaces, with fail-over between the two daemons of a pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import httpx2
import msgspec

from corral.kernel.errors import Conflict, CorralError, Forbidden, InvalidInput, NotFound, Unavailable

CALL_SECONDS: Final = 20.0
MOST_ANSWER: Final = 64 * 1024 * 1024
"""Bytes of an answer that are read."""
_STANDBY: Final = ("StandbyException", "is in state standby", "This is standby RM")


class HadoopRest:
    """A client of the daemons of one service: the ResourceManagers, or the NameNodes."""

    def __init__(self, name: str, urls: Sequence[str], user: str) -> None:
        """`name` is the service's name in messages; `user` is the Hadoop user that calls."""
        self._name, self._urls, self._user = name, [url.rstrip("/") for url in urls], user
        self._first = 0
        limits = httpx2.Limits(max_connections=50)
        self._client = httpx2.AsyncClient(timeout=CALL_SECONDS, follow_redirects=False, limits=limits)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def ask(
        self, method: str, path: str, *, user: str = "", body: Any = None, data: bytes | None = None, **query: str
    ) -> Any:
        """Call the active daemon; returns its JSON, None for an empty answer.

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
        place = msgspec.json.decode((await self._active("PUT", path, user, None, None, create)).content)
        try:
            answer = await self._client.put(place["Location"], content=data)
        except httpx2.HTTPError as error:
            raise Unavailable("hadoop-unreachable", f"A DataNode does not answer: {error}.") from error
        _check(self._name, path, answer)

    async def _active(
        self, method: str, path: str, user: str, body: Any, data: bytes | None, query: dict[str, str]
    ) -> httpx2.Response:
        """The answer of the daemon that is active; the others are tried in turn."""
        content = msgspec.json.encode(body) if body is not None else data
        headers = {"Accept": "application/json"} | ({"Content-Type": "application/json"} if body is not None else {})
        trouble: CorralError | None = None
        for turn in range(len(self._urls)):
            which = (self._first + turn) % len(self._urls)
            url = f"{self._urls[which]}{path}"
            try:
                answer = await self._client.request(
                    method, url, params={"user.name": user or self._user, **query}, content=content, headers=headers
                )
            except (TimeoutError, httpx2.HTTPError) as error:
                why = str(error) or type(error).__name__
                message = f"The {self._name} at {self._urls[which]} does not answer: {why}."
                trouble = Unavailable("hadoop-unreachable", message)
                continue
            if answer.status_code in (307, 403, 503) and any(each in answer.text for each in _STANDBY):
                trouble = Unavailable("hadoop-standby", f"No {self._name} is active.")
                continue
            self._first = which
            _check(self._name, path, answer)
            return answer
        assert trouble is not None
        raise trouble


def _check(name: str, path: str, answer: httpx2.Response) -> None:
    """Raise the CorralError for a refusal."""
    if answer.status_code < 300:
        return
    said = _message(answer)
    kinds: dict[int, type[CorralError]] = {
        400: InvalidInput,
        401: Forbidden,
        403: Forbidden,
        404: NotFound,
        409: Conflict,
    }
    kind = kinds.get(answer.status_code, Unavailable)
    if "SafeModeException" in said or "is in safe mode" in said:
        raise Unavailable("hadoop-safe-mode", "The NameNode is in safe mode and takes no writes; wait, or end it.")
    raise kind("hadoop-refused", f"The {name} refuses {path}: {said}")


def _message(answer: httpx2.Response) -> str:
    """The first line of a refusal's own message, in at most 300 characters."""
    try:
        said = msgspec.json.decode(answer.content)
    except msgspec.DecodeError:
        return f"HTTP {answer.status_code}"
    if isinstance(said, dict):
        remote = said.get("RemoteException")
        found = remote.get("message") if isinstance(remote, dict) else said.get("diagnostics") or said.get("message")
        if isinstance(remote, dict) and remote.get("exception"):
            found = f"{remote['exception']}: {found}"
        if found:
            return str(found).splitlines()[0][:300]
    return f"HTTP {answer.status_code}"
