"""Fixtures that run every test of the store on SQLite and on PostgreSQL, whose server is started once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from corral.store import Store, open_store
from tests.databases import sqlite_store
from tests.store.makers import Ticking
from tests.testbeds.postgresql import PostgresServer


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest) -> PostgresServer | None:
    """The server of the database that a test runs on; None for SQLite."""
    return request.getfixturevalue("postgres") if request.param == "postgresql" else None


@pytest.fixture
def store_url(database: PostgresServer | None, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty store, its tables made."""
    if database is None:
        yield sqlite_store(tmp_path)
        return
    url = database.create_store()
    yield url
    database.drop(url)


@pytest.fixture
def empty_url(database: PostgresServer | None, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database; SQLite's file does not exist yet."""
    if database is None:
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    url = database.create()
    yield url
    database.drop(url)


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
