"""Pairs of tasks take turns: rank 0 tells each task in turn to measure its way to every later one.

So no two measurements share a link.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from typing import Final

from corral.benchmarks.programs.given import Given

PIECE: Final = 2**18
"""Bytes that are sent or received at a time."""
PATIENCE: Final = 120.0
"""Seconds for which a peer may be away."""
_PATIENCE_AT_THE_END: Final = 5.0
"""Seconds for which it may be away when all is done: one that is gone need not be waited for."""

Way = Callable[[str], tuple[float, float]]
"""Measure towards an address: latency in microseconds, and GB/s."""
Answer = Callable[[str, socket.socket], None]
"""Answer an order of another task on its connection."""


def in_turn(given: Given, way: Way, answer: Answer, before: Callable[[], None] | None = None) -> dict[str, float]:
    """Return, on rank 0, latency and rate of each pair of tasks and the worst of them; one process of each takes part.

    `before` runs on rank 0 first. What it raises ends the benchmark on all tasks. Raises OSError for a peer that does
    not answer. A task waits for its turn without a limit of its own: in a large gang that comes late, and the job's
    limit ends it too.
    """
    if given.local_rank:
        return {}
    host, _, port = given.addresses[given.rank // (given.size // len(given.addresses))].rpartition(":")
    with socket.create_server((host, int(port)), backlog=len(given.addresses)) as door:
        if not given.first:
            _follow(given, door, way, answer)
            return {}
        try:
            if before is not None:
                before()
            return figures_of(_lead(given, way))
        finally:
            for address in given.addresses[1:]:
                with contextlib.suppress(OSError):  # a peer that is gone is told of by its pair
                    ask(address, "end", _PATIENCE_AT_THE_END)


def figures_of(pairs: dict[tuple[int, int], tuple[float, float]]) -> dict[str, float]:
    """Return the figures of measured pairs."""
    figures = {f"pair_{one}_{two}_lat": latency for (one, two), (latency, _) in pairs.items()}
    figures |= {f"pair_{one}_{two}_bw": rate for (one, two), (_, rate) in pairs.items()}
    if pairs:
        figures["max_pair_lat"] = max(latency for latency, _ in pairs.values())
        figures["min_pair_bw"] = min(rate for _, rate in pairs.values())
    return figures


def _lead(given: Given, way: Way) -> dict[tuple[int, int], tuple[float, float]]:
    pairs: dict[tuple[int, int], tuple[float, float]] = {}
    for rank in range(len(given.addresses)):
        for other in range(rank + 1, len(given.addresses)):
            if rank == 0:
                pairs[rank, other] = way(given.addresses[other])
            else:
                latency, rate = ask(given.addresses[rank], f"measure {other}").split()
                pairs[rank, other] = float(latency), float(rate)
    return pairs


def _follow(given: Given, door: socket.socket, way: Way, answer: Answer) -> None:
    """Answer until rank 0 says that all is done."""
    while True:
        caller, _ = door.accept()
        with caller:
            caller.settimeout(PATIENCE)
            order = line(caller)
            if order == "end":
                caller.sendall(b"ended\n")
                return
            if order.startswith("measure "):
                latency, rate = way(given.addresses[int(order.partition(" ")[2])])
                caller.sendall(f"{latency} {rate}\n".encode())
            else:
                answer(order, caller)


def ask(address: str, order: str, patience: float = PATIENCE) -> str:
    """Send an order to a task, and return its answer."""
    with reach(address, patience) as told:
        told.sendall(f"{order}\n".encode())
        return line(told)


def reach(address: str, patience: float = PATIENCE) -> socket.socket:
    """Connect to a task, which may not listen yet; it may be away for so many seconds then and later."""
    host, _, port = address.rpartition(":")
    until = time.monotonic() + patience
    while True:
        try:
            made = socket.create_connection((host, int(port)), timeout=patience)
            made.settimeout(patience)
            return made
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def line(from_peer: socket.socket) -> str:
    """Read a line of at most 200 bytes."""
    text = b""
    while not text.endswith(b"\n"):
        text += exactly(from_peer, 1)
        if len(text) > 200:
            raise OSError("a peer sent a line without an end")
    return text.decode().strip()


def exactly(from_peer: socket.socket, size: int) -> bytes:
    """Read so many bytes, and return the last piece of them."""
    last, left = b"", size
    while left:
        last = from_peer.recv(min(left, PIECE))
        if not last:
            raise OSError("a peer closed the connection")
        left -= len(last)
    return last
