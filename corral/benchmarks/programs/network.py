"""Latency and bandwidth of TCP between each pair of tasks, one pair after the other."""

from __future__ import annotations

import socket
import statistics
import time

from corral.benchmarks.programs.given import Given
from corral.benchmarks.programs.pairs import PIECE, exactly, in_turn, reach

_PINGS = 200


def measure(given: Given) -> dict[str, float]:
    """Return, on rank 0, latency in microseconds and GB/s of each pair, and the worst of them."""
    size = given.parameters["size_mib"] * 2**20
    return in_turn(given, lambda address: _way(address, size), lambda order, caller: _echo(order, caller, size))


def _way(address: str, size: int) -> tuple[float, float]:
    """Latency in microseconds, half of the median round trip, and GB/s towards `address`."""
    with reach(address) as there:
        there.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        there.sendall(b"echo\n")
        trips = []
        for _ in range(_PINGS):
            begun = time.perf_counter()
            there.sendall(b"p")
            exactly(there, 1)
            trips.append(time.perf_counter() - begun)
        piece, left = bytes(PIECE), size
        begun = time.perf_counter()
        while left > 0:
            there.sendall(piece[:left])
            left -= len(piece)
        exactly(there, 1)
        return 5e5 * statistics.median(trips), size / max(time.perf_counter() - begun, 1e-9) / 1e9


def _echo(order: str, caller: socket.socket, size: int) -> None:
    if order != "echo":
        return
    caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(_PINGS):
        caller.sendall(exactly(caller, 1))
    exactly(caller, size)
    caller.sendall(b"d")
