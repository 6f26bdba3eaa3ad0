"""An object store, and workers that check uploads, as in a server."""

from __future__ import annotations

import urllib.request
from collections.abc import AsyncIterator, Iterator

import pytest
from moto.server import ThreadedMotoServer

from corral.workers.pool import Workers


@pytest.fixture
async def workers() -> AsyncIterator[Workers]:
    """Workers that end with the test."""
    made = Workers()
    yield made
    await made.close()


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """A store with the bucket `data`."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    env = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    asked = urllib.request.Request(f"{env['AWS_ENDPOINT_URL']}/data", method="PUT")
    with urllib.request.urlopen(asked):
        pass
    yield env
    server.stop()
