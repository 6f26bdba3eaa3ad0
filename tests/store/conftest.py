"""Why: every test of the store runs on SQLite and on PostgreSQL; the second needs a server, started once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from corral.store import Store, open_store
from tests.store.makers import Ticking
from tests.testbeds.postgresql import PostgresServer, binaries


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    if binaries() is None:
        pytest.skip("PostgreSQL is not installed: tests/testbeds/apt.sh postgresql")
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'corral.db'}"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.create("store")


@pytest.fixture
def clock() -> Ticking:
    return Ticking()


@pytest.fixture
async def store(store_url: str, clock: Ticking) -> AsyncIterator[Store]:
    opened = await open_store(store_url, clock=clock)
    yield opened
    await opened.close()


@pytest.fixture
async def open_more(store_url: str, clock: Ticking) -> AsyncIterator[Callable[[], object]]:
    """Opens further stores on the same database, as other processes do."""
    opened: list[Store] = []

    async def more() -> Store:
        opened.append(await open_store(store_url, clock=clock))
        return opened[-1]

    yield more
    for each in opened:
        await each.close()
