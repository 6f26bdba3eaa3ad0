"""Latency and bandwidth of TCP between each pair of tasks, one pair after the other."""

from __future__ import annotations

import socket
import statistics
import time

from corral.benchmarks.programs.given import Given

_PIECE = 2**18
_PINGS = 200
_PATIENCE = 120.0
"""Seconds for which a peer may be away."""


def measure(given: Given) -> dict[str, float]:
    """Return, on rank 0, latency in microseconds and GB/s of each pair, and the worst of them.

    Pairs take turns: rank 0 tells each task in turn to measure its way to every later one. So no two measurements share
    a link. Raises OSError for a peer that does not answer.
    """
    if given.local_rank:
        return {}  # one process of each task is enough
    size = given.parameters["size_mib"] * 2**20
    host, _, port = given.addresses[given.rank // (given.size // len(given.addresses))].rpartition(":")
    with socket.create_server((host, int(port)), backlog=len(given.addresses)) as door:
        door.settimeout(_PATIENCE)
        if given.first:
            return _lead(given, size)
        _follow(given, door, size)
    return {}


def _lead(given: Given, size: int) -> dict[str, float]:
    pairs: dict[tuple[int, int], tuple[float, float]] = {}
    for rank in range(len(given.addresses)):
        for other in range(rank + 1, len(given.addresses)):
            if rank == 0:
                pairs[rank, other] = _way(given.addresses[other], size)
            else:
                with _reach(given.addresses[rank]) as told:
                    told.sendall(f"measure {other}\n".encode())
                    latency, rate = _line(told).split()
                    pairs[rank, other] = float(latency), float(rate)
    for address in given.addresses[1:]:
        with _reach(address) as told:
            told.sendall(b"end\n")
    figures = {f"pair_{one}_{two}_lat": latency for (one, two), (latency, _) in pairs.items()}
    figures |= {f"pair_{one}_{two}_bw": rate for (one, two), (_, rate) in pairs.items()}
    if pairs:
        figures["max_pair_lat"] = max(latency for latency, _ in pairs.values())
        figures["min_pair_bw"] = min(rate for _, rate in pairs.values())
    return figures


def _follow(given: Given, door: socket.socket, size: int) -> None:
    """Answer until rank 0 says that all is done."""
    while True:
        caller, _ = door.accept()
        with caller:
            caller.settimeout(_PATIENCE)
            order = _line(caller)
            if order == "end":
                return
            if order.startswith("measure "):
                latency, rate = _way(given.addresses[int(order.partition(" ")[2])], size)
                caller.sendall(f"{latency} {rate}\n".encode())
            elif order == "echo":
                _echo(caller, size)


def _way(address: str, size: int) -> tuple[float, float]:
    """Latency in microseconds, half of the median round trip, and GB/s towards `address`."""
    with _reach(address) as there:
        there.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        there.sendall(b"echo\n")
        trips = []
        for _ in range(_PINGS):
            begun = time.perf_counter()
            there.sendall(b"p")
            _exactly(there, 1)
            trips.append(time.perf_counter() - begun)
        piece, left = bytes(_PIECE), size
        begun = time.perf_counter()
        while left > 0:
            there.sendall(piece[:left])
            left -= len(piece)
        _exactly(there, 1)
        return 5e5 * statistics.median(trips), size / max(time.perf_counter() - begun, 1e-9) / 1e9


def _echo(caller: socket.socket, size: int) -> None:
    caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(_PINGS):
        caller.sendall(_exactly(caller, 1))
    _exactly(caller, size)
    caller.sendall(b"d")


def _reach(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            made = socket.create_connection((host, int(port)), timeout=_PATIENCE)
            made.settimeout(_PATIENCE)
            return made
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def _line(from_peer: socket.socket) -> str:
    text = b""
    while not text.endswith(b"\n"):
        text += _exactly(from_peer, 1)
        if len(text) > 200:
            raise OSError("a peer sent a line without an end")
    return text.decode().strip()


def _exactly(from_peer: socket.socket, size: int) -> bytes:
    last, left = b"", size
    while left:
        last = from_peer.recv(min(left, _PIECE))
        if not last:
            raise OSError("a peer closed the connection")
        left -= len(last)
    return last
