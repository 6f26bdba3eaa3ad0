"""Allocate distinct ports of one machine to tasks, by default outside the kernel's range for client sockets."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from corral.kernel.errors import InvalidInput, Unavailable
from corral.model.launch import PortRequest

DEFAULT_RANGE = (20_000, 29_999)
"""The default port range, below Linux's default ephemeral range (32768–60999)."""


class PortLedger:
    """The ports that live attempts hold: an in-memory index of the attempts' launch files."""

    def __init__(self, first: int = DEFAULT_RANGE[0], last: int = DEFAULT_RANGE[1]) -> None:
        if not 1024 <= first <= last <= 65_535:
            raise InvalidInput(
                "bad-port-range", f"Ports {first}-{last} are no range within 1024-65535; set another one."
            )
        self._first, self._last = first, last
        self._next = random.randint(first, last)
        """A random start: a second server on this machine would see a port as free that a task has not bound yet."""
        self._held: set[int] = set()

    def __len__(self) -> int:
        """Return the number of ports in the range."""
        return self._last - self._first + 1

    def take(self, requests: Sequence[PortRequest]) -> dict[str, tuple[int, ...]]:
        """Allocate ports for all requests. Each is bound once to check that nothing else on the machine uses it.

        Raises Unavailable, with nothing allocated, when the range has too few free ports or a requested one is taken.
        """
        taken: dict[str, tuple[int, ...]] = {}
        try:
            for request in requests:
                for at in range(request.count):
                    port = self._this(request.start + at) if request.start else self._one()
                    taken[request.name] = (*taken.get(request.name, ()), port)
        except Unavailable:
            self.release(taken)
            raise
        return taken

    def hold(self, ports: Mapping[str, Iterable[int]]) -> None:
        """Record the ports of an adopted attempt."""
        for numbers in ports.values():
            self._held.update(numbers)

    def release(self, ports: Mapping[str, Iterable[int]]) -> None:
        """Free the ports of an ended attempt."""
        for numbers in ports.values():
            self._held.difference_update(numbers)

    def _one(self) -> int:
        for _ in range(self._last - self._first + 1):
            port = self._next
            self._next = port + 1 if port < self._last else self._first
            if port not in self._held and _free(port):
                self._held.add(port)
                return port
        raise Unavailable(
            "no-free-port",
            f"No port of {self._first}-{self._last} is free; widen the engine's port range.",
            retry_after=5,
        )

    def _this(self, port: int) -> int:
        """Allocate the port of this number, in the range or not."""
        if port in self._held or not _free(port):
            raise Unavailable(
                "port-taken", f"Port {port}, which the task asks for, is in use on this machine.", retry_after=5
            )
        self._held.add(port)
        return port


def ephemeral_range() -> tuple[int, int]:
    """Return the range of ports for client sockets. A task's port in it may be lost to such a socket."""
    low, high = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    return int(low), int(high)


def _free(port: int) -> bool:
    """Return whether the port can be bound on all addresses, so that nothing uses it on any."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
