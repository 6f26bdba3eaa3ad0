"""Front's listening socket and HTTP server, its connections to control, and the portal's folder."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

import httpx2
import uvicorn
from starlette.types import ASGIApp
from websockets.asyncio.client import ClientConnection, connect, unix_connect

from corral.api.client_addresses import networks
from corral.api.connection_limits import ConnectionCounter, ConnectionLimits, Place
from corral.api.http_protocol import BoundedHttp, Configuration, sweep
from corral.api.services.job_ports import JobPorts
from corral.client.websocket_keepalive import PING_SECONDS, AsyncPatientConnection
from corral.kernel.errors import Conflict, CorralError, InvalidInput, NotFound, Unavailable
from corral.kernel.garbage import Slack
from corral.kernel.ids import AttemptId
from corral.model.store_writes import Holder
from corral.service.health import raise_descriptor_limit
from corral.service.http_ticks import every_second
from corral.service.jobs.account_limits import Allowance
from corral.service.mutual_tls import NAME, TlsFiles
from corral.service.tls_acceptor import Acceptor, Admission, acceptor_settings
from corral.settings import Settings
from corral.supervisor import LISTEN_FD, listen
from corral.workers.shared_file import SharedFile

_ASK_SECONDS: Final = 10.0
_CONNECT_SECONDS: Final = 2.0
"""Seconds to connect to the leader; a lost machine never answers, and another control leads soon."""
_KNOWN_SECONDS: Final = 1.0
"""Seconds for which the leader's address is cached."""
_AGENT_SECONDS: Final = httpx2.Timeout(None, connect=_CONNECT_SECONDS)
"""An agent's call is held until there is something to say; it ends when the agent leaves."""
_AGENTS: Final = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
"""One connection for each call that is held; front's own connections are bounded."""
_TLS_NAME: Final = {"sni_hostname": NAME}
_T = TypeVar("_T")
MAX_FRAME: Final = 1024 * 1024
_WEB_SOCKET: Final[dict[str, Any]] = {
    "max_size": MAX_FRAME,
    "compression": None,
    "proxy": None,
    "ping_interval": PING_SECONDS,
    "create_connection": AsyncPatientConnection,
}
"""How front connects to control's WebSockets."""
_TRIM_TICKS: Final = 150
_OTHER_DESCRIPTORS: Final = 200
"""File descriptors for uses other than connections: the store, logs being read, control's socket."""


def configuration(application: ASGIApp, settings: Settings, bounds: ConnectionLimits | None = None) -> Configuration:
    """Build uvicorn's configuration; the settings override fields of `bounds`.

    Raises InvalidInput if a setting is not usable.
    """
    proxies = networks(each.strip() for each in settings.trusted_proxies.split(",") if each.strip())
    bounds = (bounds or ConnectionLimits())._replace(
        connections=max(16, min(settings.connections, raise_descriptor_limit() - _OTHER_DESCRIPTORS)),
        strangers_per_address=settings.strangers_per_address,
        connections_per_user=settings.connections_per_user,
        reading_seconds=settings.reading_seconds,
    )
    return Configuration(
        application,
        ConnectionCounter(bounds, proxies),
        log_config=None,
        access_log=False,
        server_header=False,
        ssl_certfile=str(settings.tls_certificate) if settings.tls_certificate else None,
        ssl_keyfile=str(settings.tls_key) if settings.tls_key else None,
        timeout_graceful_shutdown=2,
        proxy_headers=bool(proxies),  # by default, uvicorn trusts the loopback address and $FORWARDED_ALLOW_IPS
        forwarded_allow_ips=[str(each) for each in proxies],
    )


def allowance_of(settings: Settings, folder_bytes: int) -> Allowance:
    """The limits of every account; `folder_bytes` is the engine's own, of a task's working folder."""
    return Allowance(
        tasks=settings.tasks_per_user,
        code_bytes=settings.code_bytes_per_user,
        log_bytes=settings.log_limit_bytes,
        cache_bytes=settings.cache_bytes_per_user,
        bundle_bytes=settings.cache_limit_bytes,
        compile_cache=settings.compile_cache,
        profile_bytes=settings.profile_bytes_per_user,
        profile_days=settings.profile_days,
        folder_bytes=folder_bytes,
    )


class Server(uvicorn.Server):
    """uvicorn on a given socket; it signals when it serves, and leaves signals to the process."""

    def __init__(self, config: Configuration, ports: JobPorts | None = None) -> None:
        """`ports`: at which the services of jobs are served, if they are."""
        super().__init__(config)
        self._ports = ports
        self.ready = asyncio.Event()
        self._leave = asyncio.Event()
        self._connections = config.counter
        self._slack = Slack()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to serve.

        Raises InvalidInput if the server's own port is among those of jobs.
        """
        own = [each.getsockname() for each in sockets or ()]
        if self._ports and own:
            self._ports.attach(functools.partial(self._listen, own[0][0]), (each[1] for each in own))
        await super().startup([] if self.config.ssl else sockets)
        if self.config.ssl:
            self.servers += [self._acceptor(each) for each in sockets or ()]  # type: ignore[misc]
        self.ready.set()

    def _acceptor(self, listener: socket.socket) -> Acceptor:
        seconds = self._connections.bounds.header_seconds
        return Acceptor(listener, acceptor_settings(self, self._connections.let_in, _hand_on, seconds))

    def _listen(self, host: str, port: int) -> Callable[[], None]:
        """Serve at one more port of the same address; the result ends that, but no connection.

        Raises Conflict if the port is taken.
        """
        listener = listen(host, port)
        acceptor = self._acceptor(listener)

        def end() -> None:
            acceptor.close()
            listener.close()

        return end

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop serving, at the ports of jobs too."""
        if self._ports is not None:
            self._ports.close()
        await super().shutdown(sockets)

    async def main_loop(self) -> None:
        """Look after the connections until told to leave."""
        await every_second(self.on_tick, self._leave)

    async def on_tick(self, counter: int) -> bool:
        """End connections that exceed their time; returns whether to stop. `counter` counts tenths of a second."""
        now = asyncio.get_running_loop().time()
        sweep(self.server_state, now)
        self._connections.tell(now)
        if counter % _TRIM_TICKS == 0:
            self._slack.look()
        return await super().on_tick(counter)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers."""
        yield

    async def serve_on(self, listener: socket.socket) -> None:
        """Serve until cancelled, then finish the answers in progress."""
        serving = asyncio.create_task(self.serve(sockets=[listener]))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            self.should_exit = True
            self._leave.set()
            await serving
            raise


def _hand_on(protocol: asyncio.Protocol, place: Admission) -> None:
    assert isinstance(protocol, BoundedHttp) and isinstance(place, Place)
    protocol.take(place)


class ControlSocket:
    """A client for the control next to this front, by its Unix socket."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # A Unix socket has no TLS: without `verify` each transport would load all authorities, which takes 60 ms.
        asking = httpx2.AsyncHTTPTransport(uds=str(path), verify=False)
        agents = httpx2.AsyncHTTPTransport(uds=str(path), verify=False, limits=_AGENTS)
        self._client = httpx2.AsyncClient(transport=asking, base_url="http://control", timeout=_ASK_SECONDS)
        self._agents = httpx2.AsyncClient(transport=agents, timeout=_AGENT_SECONDS)

    async def request(self, path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        """Send a GET (or, with a body, a POST) to control; its JSON answer.

        Raises Unavailable if no control answers, CorralError if it refuses.
        """
        try:
            return await _ask(self._client, path, body, **_within(seconds))
        except httpx2.HTTPError:
            raise _nobody() from None

    async def relay(self, method: str, path: str, body: bytes, token: str) -> httpx2.Response:
        """Pass a call of an engine's agent to control; its answer, to be read as it comes and then closed.

        Raises Unavailable if no control answers.
        """
        try:
            return await _passed_on(self._agents, method, f"http://control{path}", body, token)
        except httpx2.HTTPError:
            raise _nobody() from None

    async def pull(self, path: str) -> tuple[Mapping[str, str], bytes]:
        """Send a GET to control; the headers and the body of its answer.

        Raises Unavailable if no control answers, CorralError if it refuses.
        """
        try:
            return await _pull(self._client, path)
        except httpx2.HTTPError:
            raise _nobody() from None

    async def collect(self, path: str) -> SharedFile:
        """Send a GET to control; a file with the body of its answer, which may be long.

        Raises Unavailable if no control answers, CorralError if it refuses.
        """
        try:
            return await _collect(self._client, path)
        except httpx2.HTTPError:
            raise _nobody() from None

    async def connect(self, path: str) -> ClientConnection:
        """Open a WebSocket to control at `path`.

        Raises the exceptions of `websockets`, and OSError.
        """
        return await unix_connect(str(self._path), f"ws://control{path}", **_WEB_SOCKET)

    async def is_here(self, attempt: AttemptId, port: int) -> bool:
        """Whether the port of a task is one of this machine's loopback.

        Raises Unavailable if no control answers, CorralError if the task does not run or was not given the port.
        """
        return bool(await self.request(f"/here/{quote(attempt, safe='.')}?port={port}"))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()
        await self._agents.aclose()


class LeaderClient:
    """A client for the leading one of several controls, at the address in the leadership row."""

    def __init__(self, leader: Callable[[], Awaitable[Holder | None]], tls_files: TlsFiles) -> None:
        self._leader = leader
        self._context: ssl.SSLContext = tls_files.client_context()
        self._client = httpx2.AsyncClient(
            verify=self._context, timeout=httpx2.Timeout(_ASK_SECONDS, connect=_CONNECT_SECONDS), trust_env=False
        )
        self._agents = httpx2.AsyncClient(verify=self._context, timeout=_AGENT_SECONDS, limits=_AGENTS, trust_env=False)
        self._address = ""
        self._known_until = 0.0

    async def request(self, path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        """Send a GET (or, with a body, a POST) to the leader; its JSON answer.

        It is sent again if another control leads. Raises Unavailable if no leader answers, CorralError if it refuses.
        """
        return await self._reach(
            lambda address: _ask(self._client, f"{address}{path}", body, extensions=_TLS_NAME, **_within(seconds))
        )

    async def pull(self, path: str) -> tuple[Mapping[str, str], bytes]:
        """Send a GET to the leader; the headers and the body of its answer.

        It is sent again if another control leads. Raises Unavailable if no leader answers, CorralError if it refuses.
        """
        return await self._reach(lambda address: _pull(self._client, f"{address}{path}", extensions=_TLS_NAME))

    async def collect(self, path: str) -> SharedFile:
        """Send a GET to the leader; a file with the body of its answer, which may be long.

        It is sent again if another control leads. Raises Unavailable if no leader answers, CorralError if it refuses.
        """
        return await self._reach(lambda address: _collect(self._client, f"{address}{path}", extensions=_TLS_NAME))

    async def relay(self, method: str, path: str, body: bytes, token: str) -> httpx2.Response:
        """Pass a call of an engine's agent to the leader; its answer, to be read as it comes and then closed.

        It is sent again if another control leads: agents repeat calls themselves. Raises Unavailable if none answers.
        """

        async def call(address: str) -> httpx2.Response:
            url = f"{address}{path}"
            return await _passed_on(self._agents, method, url, body, token, extensions=_TLS_NAME)

        return await self._reach(call)

    async def connect(self, path: str) -> ClientConnection:
        """Open a WebSocket to the leader at `path`.

        Raises Unavailable, and the exceptions of `websockets`.
        """
        return await connect(
            f"wss://{await self._where(afresh=True)}{path}",
            ssl=self._context,
            server_hostname=NAME,
            open_timeout=_ASK_SECONDS,
            **_WEB_SOCKET,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()
        await self._agents.aclose()

    async def is_here(self, attempt: AttemptId, port: int) -> bool:
        """Return False: the leader, and so the task, may be on another machine."""
        return False

    async def _reach(self, call: Callable[[str], Awaitable[_T]]) -> _T:
        asked = await self._where()
        try:
            return await call(f"https://{asked}")
        except httpx2.HTTPError:
            now = await self._where(afresh=True)
            if now == asked:
                raise _nobody() from None
        try:
            return await call(f"https://{now}")
        except httpx2.HTTPError:
            raise _nobody() from None

    async def _where(self, *, afresh: bool = False) -> str:
        if afresh or time.monotonic() >= self._known_until:
            holder = await self._leader()
            self._address = holder.address if holder else ""
            self._known_until = time.monotonic() + _KNOWN_SECONDS
        if not self._address or self._address.startswith("/"):
            raise _nobody()
        return self._address


def _within(seconds: float | None) -> dict[str, Any]:
    """The option of a call that may take so many seconds; None is as long as usual."""
    return {} if seconds is None else {"timeout": httpx2.Timeout(seconds, connect=_CONNECT_SECONDS)}


async def _ask(client: httpx2.AsyncClient, url: str, body: Any, **more: Any) -> Any:
    answer = await (client.get(url, **more) if body is None else client.post(url, json=body, **more))
    said = answer.json()
    if answer.status_code == 503:
        raise Unavailable(said["code"], said["message"], retry_after=2)
    if answer.status_code == 409:
        raise Conflict(said["code"], said["message"])
    if answer.status_code >= 400:
        raise CorralError(said["code"], said["message"])
    return said


async def _pull(client: httpx2.AsyncClient, url: str, **more: Any) -> tuple[Mapping[str, str], bytes]:
    answer = await client.get(url, **more)
    _check(answer)
    return answer.headers, answer.content


async def _collect(client: httpx2.AsyncClient, url: str, **more: Any) -> SharedFile:
    file = SharedFile()
    async with client.stream("GET", url, **more) as answer:
        if answer.status_code >= 400:
            await answer.aread()
            _check(answer)
        async for piece in answer.aiter_bytes():
            file.write(piece)
    return file


def _check(answer: httpx2.Response) -> None:
    """Raise the error of an answer that refuses."""
    if answer.status_code >= 400:
        said, kinds = answer.json(), {each.status: each for each in (InvalidInput, NotFound, Unavailable)}
        raise kinds.get(answer.status_code, CorralError)(said["code"], said["message"])


async def _passed_on(
    client: httpx2.AsyncClient, method: str, url: str, body: bytes, token: str, **more: Any
) -> httpx2.Response:
    headers = {"authorization": f"Bearer {token}"}
    return await client.send(client.build_request(method, url, content=body, headers=headers, **more), stream=True)


def _nobody() -> Unavailable:
    return Unavailable("no-control", "The scheduler does not answer; try again in a moment.", retry_after=2)


def listener_of(settings: Settings) -> socket.socket:
    """The supervisor's socket if there is one, or else a new one."""
    handle = os.environ.pop(LISTEN_FD, "")
    return socket.socket(fileno=int(handle)) if handle else listen(settings.host, settings.port)
