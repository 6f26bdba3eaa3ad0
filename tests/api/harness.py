"""A real API server on loopback over a real store, without control or an engine."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import FastAPI

from corral.api import create_app
from corral.api.connection_limits import ConnectionCounter, ConnectionLimits
from corral.api.slots import Agent
from corral.api.tenants import routes_of
from corral.client import Client
from corral.front import ControlSocket, configuration
from corral.front import Server as Front
from corral.kernel.clock import VirtualClock
from corral.service.context import Context
from corral.service.service import Service
from corral.service.tenant_settings import no_options
from corral.service.tenants import compose_tenants
from corral.settings import Settings
from corral.storage.code_archives import BlobStore
from corral.storage.log_files import LogStore
from corral.storage.log_sources import LogSources
from corral.store import Store, open_store
from tests.databases import sqlite_store

if TYPE_CHECKING:
    from corral.compat.openpai.service.tenant import OpenPai

START = 1_800_000_000.0
CODE_LIMIT = 4 * 1024 * 1024
Result = TypeVar("Result")


class Server:
    """One running front; `call` runs its coroutines from the test's thread."""

    def __init__(self, folder: Path, *, openpai_fs_uri: str = "", agents: Mapping[str, Agent] | None = None) -> None:
        self.folder = folder
        self.agents = agents
        self.control = ControlSocket(folder / "control.sock")
        self.clock = VirtualClock(START)
        self.logs = LogStore(folder / "logs")
        self.blobs = BlobStore(folder / "code")
        self.loop: asyncio.AbstractEventLoop
        self.store: Store
        self.service: Service
        self.openpai: OpenPai
        self.openpai_fs_uri = openpai_fs_uri
        self.app: FastAPI
        self.url = ""
        self.settings: dict[str, Any] = {}
        """Settings that `prepare` may change."""
        self.bounds = ConnectionLimits()
        self.counter: ConnectionCounter

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the server's loop and wait for its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout=150)

    def token(self, user: str, *, role: str = "user") -> str:
        """A token of the account, which is made if it is new."""
        return self.call(self._token(user, role))

    async def _token(self, user: str, role: str) -> str:
        admin = await self.service.sessions.first_link("root")
        if user == "root":
            return (await self.service.sessions.sign_in_link(admin.link)).token
        signed = await self.service.sessions.sign_in_link(admin.link)
        actor = await self.service.authentication.authenticate(signed.token)
        if await self.store.user(user) is None:
            await self.service.accounts.create(actor, user, role=role)
        link = await self.service.sessions.login_link(actor, user)
        return (await self.service.sessions.sign_in_link(link.link)).token

    def client(self, user: str = "alice", *, role: str = "user") -> Client:
        """A client signed in as `user`."""
        return Client(self.url, self.token(user, role=role))

    async def open(self) -> None:
        """Open the store and make the application."""
        self.loop = asyncio.get_running_loop()
        for store in (self.logs, self.blobs):
            store.open()
        url = sqlite_store(self.folder)
        self.store = await open_store(url, clock=self.clock, run_folder=self.folder / "run", role="front")
        context = Context(
            self.store,
            key=secrets.token_bytes(32),
            clock=self.clock,
            blobs=self.blobs,
            logs=LogSources(self.logs),
            code_limit=CODE_LIMIT,
        )
        self.service = Service(context)
        options = {"openpai": {"fs_uri": self.openpai_fs_uri}}
        parts = compose_tenants(self.service, lambda name: options.get(name, {}))
        if "openpai" in parts:
            self.openpai = parts["openpai"]
        self.app = create_app(
            self.service,
            tenants=routes_of(parts, no_options),
            clock=self.clock,
            portal_folder=self.folder / "portal",
            connect=self.control.connect,
            code_limit=CODE_LIMIT,
            agents=self.agents,
            relay=self.control,
        )

    async def close(self) -> None:
        """Close the store."""
        await self.service.close()
        await self.control.close()
        await self.store.close()


@contextmanager
def serving(
    folder: Path,
    prepare: Callable[[Server], None] = lambda server: None,
    new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None,
    *,
    openpai_fs_uri: str = "",
    agents: Mapping[str, Agent] | None = None,
) -> Iterator[Server]:
    """A server in a thread of its own, on a free port; `prepare` may change it before it starts."""
    server = Server(folder, openpai_fs_uri=openpai_fs_uri, agents=agents)
    ready, failures = threading.Event(), []
    stopping: list[Callable[[], None]] = []

    async def serve(listener: socket.socket) -> None:
        await server.open()
        prepare(server)
        settings = Settings(data_folder=folder, **server.settings)
        config = configuration(server.app, settings, server.bounds)
        server.counter = config.counter
        running = Front(config, server.app.state.job_ports)

        def stop() -> None:
            running.should_exit = True

        async def announce() -> None:
            await running.ready.wait()
            ready.set()

        stopping.append(stop)
        announcing = asyncio.create_task(announce())
        await running.serve([listener])
        announcing.cancel()
        await server.close()

    def thread() -> None:
        try:
            # The protocol is named because asyncio turns Nagle's algorithm off only then; it costs 40 ms an answer.
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
                listener.bind(("127.0.0.1", 0))
                server.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
                with asyncio.Runner(loop_factory=new_loop) as runner:
                    runner.run(serve(listener))
        except BaseException as error:
            failures.append(error)
        finally:
            ready.set()

    running = threading.Thread(target=thread)
    running.start()
    ready.wait()
    try:
        if failures:
            raise failures[0]
        yield server
    finally:
        for stop in stopping:
            stop()
        running.join()
    if failures:
        raise failures[0]
