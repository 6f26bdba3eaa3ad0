"""Why: an archive of hundreds of MiB comes over a connection that may break; it is asked for again until it is whole."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import BinaryIO, Final

from corral.runtime.peers import Api, TimedOut

_CHUNK: Final = 1 << 20
_PATIENCE: Final = 600.0
"""Seconds: a server's restart, or its move to another machine, must not cost a job."""


class NotKept(Exception):
    """What came cannot be written here: the disk is full, or broken; asking again changes nothing."""


def fetch(
    api: Api,
    path: str,
    to: BinaryIO,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Write what the server has at `path` into `to`; the SHA-256 of it, in hexadecimal.

    Raises Refused and NotKept at once, TimedOut when the server gave no whole answer in ten minutes.
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
                raise TimedOut(f"the server gave no whole answer ({error})") from error
        sleep(pause)
        pause = min(pause * 2, 10.0)


def _keep(to: BinaryIO, chunk: bytes | None) -> None:
    """Write more of it, all the way to the file; None: begin anew."""
    try:
        if chunk is None:
            to.seek(0)
            to.truncate()
        else:
            to.write(chunk)
            to.flush()
    except OSError as error:
        raise NotKept(f"it cannot be written to this task's disk ({error.strerror or error})") from error
