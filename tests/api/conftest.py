"""Fixtures of the API tests: one server per module; each test uses names of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from corral.client import Client
from tests.api.harness import Server, serving
from tests.passwords import cheap_passwords


@pytest.fixture(scope="package", autouse=True)
def _cheap_passwords() -> Iterator[None]:
    with cheap_passwords():
        yield


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running front over an empty store."""
    with serving(tmp_path_factory.mktemp("front")) as running:
        yield running


@pytest.fixture
def alice(server: Server) -> Iterator[Client]:
    """A client signed in as an ordinary user."""
    with server.client("alice") as client:
        yield client


@pytest.fixture
def root(server: Server) -> Iterator[Client]:
    """A client signed in as the administrator."""
    with server.client("root") as client:
        yield client
