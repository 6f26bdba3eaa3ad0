"""Make calls to the API server, bounded in time, size and connections. Each ends in bytes or one clear error.

Requests use kubernetes-asyncio's session (TLS, proxies) with raw bytes. A call is repeated if it cannot have had an
effect (no connection was made; 429, which priority and fairness answer before any work), or if the caller marks it as
repeatable. The wait is Retry-After, or else a jittered backoff.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

import aiohttp

from corral.engines.kubernetes.api.access import Access
from corral.engines.kubernetes.api.backoff import Backoff
from corral.engines.kubernetes.api.connection_limits import ConnectionLimits as ConnectionLimits
from corral.engines.kubernetes.api.errors import Status, refusal
from corral.engines.kubernetes.api.resources import Call
from corral.engines.kubernetes.api.response import (
    Request,
    RetryableError,
    end_of_certificate,
    failure,
    read_all,
    read_chunks,
    unreachable,
)
from corral.kernel.errors import Unavailable

MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
_NEVER_CONNECTED: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_WRITING_SECONDS: Final = 3.0
"""Least seconds before a write is repeated: a busy server takes that long, and an earlier repeat adds load."""
_MIXED_UP: Final = "is used by transport"
"""Event loops' message for a new connection whose descriptor an open one has: a file was closed by the wrong owner."""
_REFUSAL_BYTES: Final = 2**20
_FRAME_BYTES: Final = 2**22


class Transport:
    """One cluster's API server. Safe for any number of concurrent calls."""

    def __init__(self, access: Access, limits: ConnectionLimits | None = None, *, seed: int | str = 0) -> None:
        self._access = access
        self._limits = limits or ConnectionLimits()
        self._seed = seed
        self._calls = 0
        self._mixed_up = asyncio.Event()
        self.certificate_ends: float | None = None
        """When the certificate ends that the API showed last, in seconds since 1970."""

    async def open(self) -> None:
        """Read the credentials. Raises InvalidInput when they cannot be used."""
        await self._access.open()

    async def close(self) -> None:
        """Close all connections."""
        await self._access.close()

    async def wait_for_failure(self) -> None:
        """Wait while connections can be made. Raises RuntimeError when only a new process can make any.

        That happens once a file descriptor was closed under a connection: every new connection gets its number, and the
        event loop refuses it (uvloop's issue 653).
        """
        await self._mixed_up.wait()
        raise RuntimeError("a new connection has the number of one that was not closed")

    async def ask(
        self,
        call: Call,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content: str = "application/json",
        deadline: float | None = None,
        repeatable: bool | None = None,
    ) -> bytes:
        """Return the API server's answer to one call within `deadline` seconds, including waits and repeats.

        `repeatable` means that repeating the call has no further effect. The default is true for reads, false for other
        verbs.
        Raises CorralError. For Unavailable, `details["sent"]` says whether the call may have had an effect.
        """
        seconds = self._limits.deadline_seconds if deadline is None else deadline
        repeatable = call.method == "GET" if repeatable is None else repeatable
        self._calls += 1
        backoff = Backoff(low=0.1, high=5.0, seed=self._seed, ids=(call.path, self._calls))
        ends = asyncio.get_running_loop().time() + seconds
        least = 0.0 if call.method == "GET" else _WRITING_SECONDS
        silence = max(least, seconds / 3) if repeatable else None
        request = Request(call, dict(params or {}), body, content, silence)
        sent = False
        try:
            async with asyncio.timeout(seconds):
                while True:
                    try:
                        return await self._once(request)
                    except RetryableError as again:
                        request.in_flight, sent = False, sent or again.sent
                        wait = backoff.next(again.after)
                        hopeless = asyncio.get_running_loop().time() + wait >= ends
                        if hopeless or (again.sent and not repeatable):
                            again.error.details["sent"] = sent
                            raise again.error from None
                        await asyncio.sleep(wait)
        except TimeoutError:
            sentence = f"The cluster did not {call} within {seconds:g} s."
            raise Unavailable("kubernetes-timeout", sentence, sent=sent or request.in_flight) from None

    @asynccontextmanager
    async def stream(
        self, call: Call, *, params: Mapping[str, str] | None = None, idle: float = 90.0
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open an endless answer and yield its chunks as they arrive.

        Raises CorralError, also from the iterator; IdleTimeout after `idle` seconds without a byte.
        """
        request = Request(call, dict(params or {}), None, "", idle)
        try:
            answer = await self._send(request, self._limits.streams)
            if answer.status != 200:
                async with answer:
                    found = failure(call, answer, await read_all(call, answer, _REFUSAL_BYTES))
                    raise found.error if isinstance(found, RetryableError) else found
        except (aiohttp.ClientError, OSError) as error:
            raise unreachable(call, error, idle) from None
        try:
            yield read_chunks(call, answer, idle)
        finally:
            answer.close()

    @asynccontextmanager
    async def websocket(
        self, call: Call, *, params: Sequence[tuple[str, str]], protocols: Sequence[str]
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """Open a WebSocket with one of the `protocols`. Raises CorralError."""
        try:
            async with asyncio.timeout(self._limits.deadline_seconds):
                socket = await self._upgraded(call, params, protocols)
        except aiohttp.WSServerHandshakeError as error:
            if error.status in {403, 404}:
                # A failed handshake does not show the body with the reason. A plain GET gets the same refusal with it.
                await self.ask(call, params=dict(params))
            raise refusal(call, Status(error.message, code=error.status)) from None
        except (aiohttp.ClientError, OSError) as error:
            raise unreachable(call, error, self._limits.deadline_seconds) from None
        try:
            yield socket
        finally:
            await socket.close()

    async def _once(self, request: Request) -> bytes:
        """Try the call once. Raises RetryableError when a retry may succeed."""
        call = request.call
        request.in_flight = True
        try:
            answer = await self._send(request, self._limits.connections)
            async with answer:
                body = await read_all(call, answer, self._limits.answer_bytes)
        except (aiohttp.ClientError, OSError) as error:
            never = isinstance(error, _NEVER_CONNECTED)
            raise RetryableError(unreachable(call, error, request.silence_seconds), sent=not never) from None
        if 200 <= answer.status < 300:
            return body
        raise failure(call, answer, body)

    async def _send(self, request: Request, connections: int) -> aiohttp.ClientResponse:
        """Send the request and return the open answer. After a 401 the credentials are renewed once."""
        generation = self._access.generation
        answer = await self._signed(request, connections)
        if answer.status != 401:
            return answer
        answer.close()
        await self._access.renew(generation)
        return await self._signed(request, connections)

    async def _upgraded(
        self, call: Call, params: Sequence[tuple[str, str]], protocols: Sequence[str], *, renewed: bool = False
    ) -> aiohttp.ClientWebSocketResponse:
        generation = self._access.generation
        session, options = self._access.session(self._limits.sessions)
        try:
            socket: aiohttp.ClientWebSocketResponse = await session.ws_connect(
                self._access.host + call.path,
                params=params,
                protocols=tuple(protocols),
                headers=await self._access.headers(),
                max_msg_size=_FRAME_BYTES,
                **options,
            )
        except aiohttp.WSServerHandshakeError as error:
            if error.status != 401 or renewed:
                raise
            await self._access.renew(generation)
            return await self._upgraded(call, params, protocols, renewed=True)
        return socket

    async def _signed(self, request: Request, connections: int) -> aiohttp.ClientResponse:
        session, options = self._access.session(connections)
        headers = await self._access.headers()
        if request.body is not None:
            headers["Content-Type"] = request.content
        try:
            answer = await session.request(
                request.call.method,
                self._access.host + request.call.path,
                params=request.params,
                data=request.body,
                headers=headers,
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=self._limits.connect_seconds, sock_read=request.silence_seconds
                ),
                allow_redirects=False,
                **options,
            )
        except RuntimeError as error:
            if _MIXED_UP not in str(error):
                raise
            self._mixed_up.set()
            sentence = f"The cluster was not asked to {request.call}: this process can make no connection any more."
            raise Unavailable("no-new-connection", sentence, sent=False) from error
        self.certificate_ends = end_of_certificate(answer) or self.certificate_ends
        return answer
