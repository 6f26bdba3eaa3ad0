"""Servers for the tests of faults: a shared one for bad input, and one per test that breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.house import House


@pytest.fixture(scope="session")
def shared_house() -> Iterator[House]:
    """A server that no test breaks."""
    house = House()
    house.up()
    yield house
    house.close()


@pytest.fixture
def build() -> Iterator[Callable[..., House]]:
    """Makes houses for one test, on a new data folder or a given one; not started yet."""
    made: list[House] = []

    def new(data: Path | None = None, *options: str, **named: dict[str, str]) -> House:
        made.append(House(data, *options, **named))
        return made[-1]

    yield new
    for house in made:
        house.close()
