"""Streams to services are kept for their visitor, for a short time, and as long as nothing comes by them."""

from __future__ import annotations

import asyncio

import pytest

from corral.api.services import kept_tunnels
from corral.api.services.kept_tunnels import KeptTunnels, Whose
from corral.api.services.tunnel import Tunnel
from corral.kernel.ids import AttemptId

ALICE = Whose("alice's", AttemptId("a.0.main.0.0"), 8080)


class Stream:
    """A stream to a task that says what it is told to say."""

    def __init__(self) -> None:
        self.said: asyncio.Queue[bytes] = asyncio.Queue()
        self.aborted = asyncio.Event()

    async def send(self, data: bytes) -> None:
        raise AssertionError(data)

    async def end(self) -> None:
        raise AssertionError

    async def receive(self) -> bytes:
        return await self.said.get()

    async def close(self) -> None:
        raise AssertionError

    def abort(self) -> None:
        self.aborted.set()


def kept(tunnels: KeptTunnels, whose: Whose = ALICE) -> tuple[Stream, Tunnel]:
    """A stream that is kept."""
    stream = Stream()
    tunnel = Tunnel(stream)
    tunnels.keep(whose, tunnel)
    return stream, tunnel


async def test_a_stream_is_taken_once_and_only_for_the_visitor_and_port_that_it_was_kept_for() -> None:
    tunnels = KeptTunnels()
    _, tunnel = kept(tunnels)
    for other in (ALICE._replace(token="bob's"), ALICE._replace(port=8081), ALICE._replace(attempt=AttemptId("b"))):
        assert tunnels.take(other) is None
    assert tunnels.take(ALICE) is tunnel
    assert tunnels.take(ALICE) is None and len(tunnels) == 0


async def test_what_a_task_says_after_a_stream_was_taken_is_the_answer() -> None:
    tunnels = KeptTunnels()
    stream, tunnel = kept(tunnels)
    taken = tunnels.take(ALICE)
    await asyncio.sleep(0)
    stream.said.put_nowait(b"first")
    stream.said.put_nowait(b"second")
    assert taken is tunnel
    assert [await taken.receive(), await taken.receive()] == [b"first", b"second"]
    assert not stream.aborted.is_set()


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\n"])
async def test_a_stream_by_which_anything_comes_while_it_rests_is_cut_and_never_taken(
    said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_tunnels, "_SECONDS", 600.0)
    tunnels = KeptTunnels()
    stream, _ = kept(tunnels)
    stream.said.put_nowait(said)
    async with asyncio.timeout(60):
        await stream.aborted.wait()
    assert tunnels.take(ALICE) is None and len(tunnels) == 0


async def test_a_stream_that_has_just_spoken_is_not_taken_either() -> None:
    tunnels = KeptTunnels()
    stream, tunnel = kept(tunnels)
    stream.said.put_nowait(b"early")
    while tunnel.is_quiet:
        await asyncio.sleep(0)
    assert tunnels.take(ALICE) is None and stream.aborted.is_set()


async def test_a_stream_is_cut_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_tunnels, "_SECONDS", 0.01)
    tunnels = KeptTunnels()
    stream, _ = kept(tunnels)
    async with asyncio.timeout(60):
        await stream.aborted.wait()
    assert tunnels.take(ALICE) is None


async def test_of_one_visitor_and_of_all_only_so_many_are_kept() -> None:
    tunnels = KeptTunnels()
    of_alice = [kept(tunnels)[0] for _ in range(kept_tunnels._MOST_EACH + 2)]
    assert [each.aborted.is_set() for each in of_alice[:3]] == [True, True, False]
    for number in range(kept_tunnels._MOST):
        kept(tunnels, ALICE._replace(port=number))
    assert len(tunnels) == kept_tunnels._MOST and all(each.aborted.is_set() for each in of_alice)
    tunnels.close()
    assert len(tunnels) == 0
