"""Download a large file from the server, and retry until it is complete."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import BinaryIO, Final

from corral.runtime.peers import Api, TimedOut

_CHUNK: Final = 1 << 20
_PATIENCE: Final = 600.0
"""Seconds for retries: a server's restart, or its move to another machine, must not cost a job."""


class NotKept(Exception):
    """The data cannot be written here (disk full or broken), so a retry is useless."""


def fetch(
    api: Api,
    path: str,
    to: BinaryIO,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Download `path` from the server into `to`; returns the SHA-256 in hexadecimal.

    Raises Refused and NotKept at once, TimedOut if the server gave no complete answer in ten minutes.
    """
    deadline, pause = clock() + _PATIENCE, 0.5
    while True:
        _keep(to, None)
        digest = hashlib.sha256()
        try:
            for chunk in api.read(path, _CHUNK):
                digest.update(chunk)
                _keep(to, chunk)
            return digest.hexdigest()
        except OSError as error:
            if clock() + pause > deadline:
                raise TimedOut(f"the server's answer was not complete ({error})") from error
        sleep(pause)
        pause = min(pause * 2, 10.0)


def _keep(to: BinaryIO, chunk: bytes | None) -> None:
    """Write a chunk and flush it; None empties the file."""
    try:
        if chunk is None:
            to.seek(0)
            to.truncate()
        else:
            to.write(chunk)
            to.flush()
    except OSError as error:
        raise NotKept(f"it cannot be written to this task's disk ({error.strerror or error})") from error
