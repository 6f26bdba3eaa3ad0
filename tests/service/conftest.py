"""Fixtures of the service tests: a real store (SQLite), a clock that tests move, and a stand-in for control."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from corral.kernel.clock import VirtualClock
from corral.kernel.errors import Unavailable
from corral.model.accounts import User
from corral.model.inventory import Device, Node
from corral.model.store_writes import Holder
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.control_client import NoControl
from corral.service.service import Service
from corral.storage.code_archives import BlobStore
from corral.storage.log_files import LogStore
from corral.storage.log_sources import LogSources
from corral.store import Store, open_store
from corral.workers.pool import Limits, Workers
from tests.databases import sqlite_store
from tests.passwords import cheap_passwords

if TYPE_CHECKING:
    from corral.compat.openpai.service.tenant import OpenPai

START = 1_700_000_000.0
ANN = Actor("ann", token_id="t-ann")
BOB = Actor("bob", token_id="t-bob")
ROOT = Actor("root", "admin", token_id="t-root")
KEY = b"k" * 32


class FakeControl(NoControl):
    """A stand-in for control: answers by path, or is unavailable."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}

    async def request(self, path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        if path not in self.answers:
            raise Unavailable("no-control", "nobody there")
        return self.answers[path]


@pytest.fixture(scope="package", autouse=True)
def _cheap_passwords() -> Iterator[None]:
    with cheap_passwords():
        yield


@pytest.fixture(autouse=True)
def calls_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the calls of workers in this process; a module whose subject is the processes has its own fixture.

    A process that loads what a call needs takes 0.3 s.
    """

    async def call(self: Workers, function: Callable[..., Any], arguments: tuple[Any, ...], limits: Limits) -> Any:
        return await asyncio.to_thread(_called, pickle.dumps((function, arguments, limits)))

    monkeypatch.setattr(Workers, "_call", call)


def _called(content: bytes) -> Any:
    function, arguments, _ = pickle.loads(content)
    return pickle.loads(pickle.dumps(function(*arguments)))


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(START)


@pytest.fixture
async def store(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[Store]:
    opened = await open_store(sqlite_store(tmp_path), clock=clock)
    yield opened
    await opened.close()


@pytest.fixture
def fake_control() -> FakeControl:
    return FakeControl()


@pytest.fixture
def logs(tmp_path: Path) -> LogStore:
    logs = LogStore(tmp_path / "logs")
    logs.open()
    return logs


@pytest.fixture
async def service(
    store: Store, clock: VirtualClock, fake_control: FakeControl, logs: LogStore, tmp_path: Path
) -> AsyncIterator[Service]:
    blobs = BlobStore(tmp_path / "code")
    blobs.open()
    made = Service(Context(store, key=KEY, clock=clock, control=fake_control, blobs=blobs, logs=LogSources(logs)))
    people = (("ann", "user"), ("bob", "user"), ("root", "admin"))
    await asyncio.gather(*(store.add_user(User(name, role, created_at=START)) for name, role in people))
    yield made
    await made.close()


@pytest.fixture
def openpai(service: Service) -> OpenPai:
    """OpenPAI's operations, registered with the service of the test."""
    from corral.compat.openpai.service.tenant import OpenPai

    return OpenPai(service)


@pytest.fixture
async def epoch(store: Store) -> int:
    lease = await store.lead(Holder("here", "boot", 1, "1"))
    assert lease is not None
    return lease.epoch


@pytest.fixture
async def machines(store: Store, epoch: int) -> list[Node]:
    """Two nodes in two racks, each with two devices on two switches."""
    nodes = [
        Node(
            f"local/n{number}",
            cells=(("rack", f"r{number}"),),
            devices=tuple(
                Device(index, f"n{number}:{index}", model="A100", cells=(("pcie-switch", str(index)),))
                for index in (0, 1)
            ),
            cpu_millis=8000,
            memory_bytes=16 * 1024**3,
        )
        for number in (1, 2)
    ]
    await store.put_nodes(epoch, "local", nodes, START)
    return nodes


def job_text(name: str = "digits", *, devices: int = 0, replicas: int = 1, more: str = "") -> str:
    """A job file in its short form."""
    return (
        f"name: {name}\nroles:\n  worker:\n    replicas: {replicas}\n"
        f"    resources: {{cpu: 1, devices: {devices}}}\n    command: echo hello\n{more}"
    )
