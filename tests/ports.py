"""Why: a test of who is given which port needs a range that nothing else on the machine has."""

from __future__ import annotations

import contextlib
import socket


def first_of_free(count: int) -> int:
    """The first of so many ports in a row that nothing on this machine has now, of those that local tasks are given."""
    for first in range(21_000, 30_000 - count, count):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("", port))
            return first
    raise AssertionError(f"this machine has no {count} free ports in a row")
