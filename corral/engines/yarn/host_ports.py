"""Number the ports that tasks get on each host of YARN, so that no two tasks of Corral's have the same one.

YARN itself counts no ports. The engine offers each task a few numbers more than it asked for. Its slot takes those that
no other program uses, and reports them; the rest is free again.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Final

from corral.kernel.errors import Unavailable
from corral.kernel.ids import AttemptId
from corral.model.launch import PortRequest

_SPARE: Final = 8
"""Ports that are offered to a task beyond those that it asked for, because other programs may use some."""


class HostPorts:
    """The ports of each host that attempts hold or were offered."""

    def __init__(self, first: int, last: int) -> None:
        """`first` and `last` bound the numbers that are offered."""
        self._first, self._count = first, last - first + 1
        self._next: dict[str, int] = {}
        """By host, where the search for the next port begins; first at random, in case of a second server there."""
        self._held: dict[str, dict[int, AttemptId]] = {}
        self._hosts: dict[AttemptId, str] = {}

    def __len__(self) -> int:
        """The ports of one host."""
        return self._count

    def offer(self, attempt: AttemptId, host: str, requests: Sequence[PortRequest]) -> tuple[tuple[int, ...], ...]:
        """The numbers offered for each request: exactly those that it names, else its count and some spare ones.

        Raises Unavailable, with nothing held, when too few are free or a named one is taken.
        """
        offers: list[tuple[int, ...]] = []
        try:
            for each in requests:
                named = tuple(range(each.start, each.start + each.count)) if each.start else ()
                numbers = self._named(host, named) if named else self._free(host, each.count)
                self.hold(attempt, host, numbers)
                offers.append(numbers)
        except Unavailable:
            self.release(attempt)
            raise
        return tuple(offers)

    def hold(self, attempt: AttemptId, host: str, numbers: Iterable[int]) -> None:
        """Record ports of an attempt, besides those that it has."""
        for number in numbers:
            self._held.setdefault(host, {}).setdefault(number, attempt)
            self._hosts[attempt] = host

    def settle(self, attempt: AttemptId, host: str, numbers: Iterable[int]) -> None:
        """Record that an attempt took these ports; all others that it was offered are free again."""
        self.release(attempt)
        self.hold(attempt, host, numbers)

    def release(self, attempt: AttemptId) -> None:
        """Free the ports of an attempt."""
        host = self._hosts.pop(attempt, None)
        if host is None:
            return
        left = {number: owner for number, owner in self._held.get(host, {}).items() if owner != attempt}
        if left:
            self._held[host] = left
        else:
            self._held.pop(host, None)

    def _named(self, host: str, numbers: tuple[int, ...]) -> tuple[int, ...]:
        held = self._held.get(host, {})
        for number in numbers:
            if number in held:
                message = f"Port {number} of {host}, which the task asks for, is held by {held[number]}."
                raise Unavailable("port-taken", message, retry_after=5)
        return numbers

    def _free(self, host: str, count: int) -> tuple[int, ...]:
        held = self._held.get(host, {})
        found: list[int] = []
        start = self._next.setdefault(host, random.randrange(self._count))
        for step in range(self._count):
            at = (start + step) % self._count
            if self._first + at not in held:
                found.append(self._first + at)
                if len(found) == count + _SPARE:
                    self._next[host] = (at + 1) % self._count
                    break
        if len(found) < count:
            message = f"{host} has {len(found)} free ports and the task asks for {count}; widen yarn_ports."
            raise Unavailable("no-free-port", message, retry_after=5)
        return tuple(found)
