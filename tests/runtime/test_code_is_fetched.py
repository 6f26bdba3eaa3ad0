"""A code archive is downloaded until it is complete; an error of the local disk is reported at once."""

from __future__ import annotations

import errno
import hashlib
import io
import os
from collections.abc import Iterator

import pytest

from corral.runtime.fetching import NotKept, fetch
from corral.runtime.peers import TimedOut

WHOLE = b"the first half, the second half"


class Breaking:
    """A server whose answer breaks off a given number of times."""

    def __init__(self, breaks: int) -> None:
        self.breaks, self.asked = breaks, 0

    def read(self, path: str, chunk: int) -> Iterator[bytes]:
        self.asked += 1
        yield WHOLE[:15]
        if self.asked <= self.breaks:
            raise ConnectionResetError("broken off")
        yield WHOLE[15:]


class Full(io.BytesIO):
    """A disk without room for a second piece."""

    def write(self, data: object) -> int:
        if self.tell():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data)  # type: ignore[arg-type]


class Slept:
    """A clock that only sleeping advances."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_what_breaks_off_is_asked_for_again_until_it_is_whole() -> None:
    server, to, time = Breaking(3), io.BytesIO(), Slept()
    assert fetch(server, "/code", to, clock=time, sleep=time.sleep) == hashlib.sha256(WHOLE).hexdigest()  # type: ignore[arg-type]
    assert (to.getvalue(), server.asked) == (WHOLE, 4)


def test_a_server_that_never_gives_it_whole_is_left_after_ten_minutes() -> None:
    time = Slept()
    with pytest.raises(TimedOut, match="not complete"):
        fetch(Breaking(10_000), "/code", io.BytesIO(), clock=time, sleep=time.sleep)  # type: ignore[arg-type]
    assert 580 < time.now <= 600


def test_a_full_disk_is_said_at_once_and_is_not_the_servers_fault() -> None:
    server, time = Breaking(0), Slept()
    with pytest.raises(NotKept, match="No space left on device"):
        fetch(server, "/code", Full(), clock=time, sleep=time.sleep)  # type: ignore[arg-type]
    assert (server.asked, time.now) == (1, 0.0)
