"""An object store that pods reach through their node's gateway and tests on loopback."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import boto3
from moto.server import ThreadedMotoServer

from tests.reserved import free_port
from tests.testbeds.kubernetes import relay
from tests.testbeds.kubernetes.daemons import Daemon
from tests.testbeds.kubernetes.kubelet import KubeletNode

BUCKET: Final = "data"


@contextlib.contextmanager
def relayed(node: KubeletNode, name: str, port: int, to: int, folder: Path) -> Iterator[str]:
    """The address at which pods reach this machine's loopback port `to`."""
    words = [sys.executable, relay.__file__, node.gateway, str(port), str(to)]
    passing = Daemon(f"relay-of-{name}", words, folder)
    passing.start(lambda: True)
    try:
        yield f"http://{node.gateway}:{port}"
    finally:
        passing.stop()


class ObjectStore:
    """A store with the bucket `data`; `url` is for pods."""

    def __init__(self, url: str, port: int) -> None:
        self.url = url
        keys = {"aws_access_key_id": "tests", "aws_secret_access_key": "tests", "region_name": "us-east-1"}
        self._client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", **keys)
        self._client.create_bucket(Bucket=BUCKET)

    def put(self, key: str, data: bytes) -> None:
        """Write an object."""
        self._client.put_object(Bucket=BUCKET, Key=key, Body=data)

    def get(self, key: str) -> bytes:
        """Read an object."""
        return bytes(self._client.get_object(Bucket=BUCKET, Key=key)["Body"].read())


@contextlib.contextmanager
def object_store(node: KubeletNode, folder: Path) -> Iterator[ObjectStore]:
    """A store while the block runs."""
    store = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    store.start()
    _, number = store.get_host_and_port()
    try:
        with relayed(node, "store", free_port(), number, folder) as url:
            yield ObjectStore(url, number)
    finally:
        store.stop()
