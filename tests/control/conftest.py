"""Fixtures of the tests of control."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from corral.model.accounts import User
from tests.control.bridged import Bridged
from tests.control.harness import House, PaperEngine


@pytest_asyncio.fixture
async def bridged(tmp_path: Path) -> AsyncIterator[Bridged]:
    house = House(tmp_path, PaperEngine(nodes=2, devices=4))
    await house.open()
    await house.store.add_user(User("ada"))
    made = Bridged(house)
    await made.begin()
    yield made
    await made.abandon()
    await house.close()


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A control, not yet started, over a fake engine with one node."""
    made = House(tmp_path, PaperEngine(nodes=1))
    await made.open()
    yield made
    await made.close()
