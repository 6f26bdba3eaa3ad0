"""One server for each module; each test leaves it without a running job."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.endtoend.platform import Platform


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A server with the described devices of `examples/cluster.yaml`."""
    made = Platform(tmp_path_factory.mktemp("server"))
    made.up()
    yield made
    made.down()


@pytest.fixture
def platform(server: Platform) -> Iterator[Platform]:
    """The module's server, idle."""
    yield server
    server.clear()
