"""Ports and names reserved for one test process: two processes that ask at once never get the same one.

A reservation is an abstract Unix socket named after the port or the name. The kernel lets one process at a time bind it
and frees it when that process ends, so no cleanup is needed.
"""

from __future__ import annotations

import functools
import random
import socket
from collections.abc import Iterable
from typing import Final

PORTS: Final = range(10_000, 20_000)
"""Ports for tests: below those of the local engine's tasks (20000 and up) and of outgoing connections (32768 and up).

So a daemon that was stopped finds its port free when it is started again.
"""
_HELD: Final[list[socket.socket]] = []


def free_port() -> int:
    """A port without a listener that no other test process gets while this one lives."""
    return first_of_free(1)


def first_of_free(count: int) -> int:
    """The first of `count` such ports in a row. Raises RuntimeError when there are none."""
    starts = list(range(PORTS.start, PORTS.stop - count + 1, count))
    random.shuffle(starts)  # two processes that start at once would otherwise try the same ports in turn
    for first in starts:
        held = [_hold_port(port) for port in range(first, first + count)]
        found = [each for each in held if each is not None]
        if len(found) == count:
            _HELD.extend(found)
            return first
        for each in found:
            each.close()
    raise RuntimeError(f"no {count} ports in a row are left of {PORTS.start} to {PORTS.stop - 1}")


@functools.cache
def task_ports() -> dict[str, str]:
    """Settings that give the servers of this test process 1,000 task ports of its own.

    A task binds its ports some time after it got them; until then another server would see them as free.
    """
    ranges = [str(first) for first in range(20_000, 30_000, 1_000)]
    first = int(one_of("task-ports", random.sample(ranges, k=len(ranges))))
    return {"CORRAL_PORT_RANGE_START": str(first), "CORRAL_PORT_RANGE_END": str(first + 999)}


def one_of(kind: str, names: Iterable[str]) -> str:
    """The first of these names that no test process on this machine has reserved for `kind`. Raises RuntimeError."""
    for name in names:
        if (held := _hold(f"{kind}-{name}")) is not None:
            _HELD.append(held)
            return name
    raise RuntimeError(f"every {kind} that was proposed is taken by another test process")


def reservations() -> int:
    """How many ports and names this process holds."""
    return len(_HELD)


def _hold_port(port: int) -> socket.socket | None:
    held = _hold(f"port-{port}")
    if held is not None and not _is_free(port):
        held.close()
        return None
    return held


def _is_free(port: int) -> bool:
    """Whether it can be bound on every address, so that no process listens on it."""
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def _hold(name: str) -> socket.socket | None:
    held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        held.bind(f"\0corral-test-{name}")
    except OSError:
        held.close()
        return None
    return held
