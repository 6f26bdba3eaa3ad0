"""Listens at ports, or calls those of others; runs by Python 3 on a host, so it needs the standard library alone.

It reads one line of JSON. A listener has {"address", "ports"}, prints a line for each port and `ready`, and listens until
its standard input ends. A caller has {"calls": [[address, port], ...]}, and prints a line for each.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import selectors
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any

AT_ONCE = 200
SECONDS = 5.0
LONGEST = 300.0


def main() -> None:
    """Do what the line says."""
    task = json.loads(sys.stdin.readline())
    if "ports" in task:
        listen(task["address"], task["ports"])
    else:
        call([(address, port) for address, port in task["calls"]])


def family(address: str) -> int:
    """The family of an IP address."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def tell(*words: object) -> None:
    """Print a line at once."""
    print(*words, flush=True)


def listen(address: str, ports: Sequence[int]) -> None:
    """Listen until standard input ends; whoever calls is hung up on."""
    chosen = selectors.DefaultSelector()
    for port in ports:
        opened = socket.socket(family(address))
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind((address, port))
            opened.listen(128)
        except OSError as error:
            words = {errno.EADDRINUSE: "taken", errno.EACCES: "denied", errno.EADDRNOTAVAIL: "absent"}
            tell("port", port, words.get(error.errno or 0, "failed"))
            opened.close()
            continue
        opened.setblocking(False)
        chosen.register(opened, selectors.EVENT_READ)
        tell("port", port, "free")
    chosen.register(sys.stdin, selectors.EVENT_READ)
    tell("ready")
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        for key, _ in chosen.select(1.0):
            server: Any = key.fileobj
            if server is sys.stdin:
                if not os.read(sys.stdin.fileno(), 4096):
                    return
                continue
            with contextlib.suppress(OSError):  # who called has gone again
                server.accept()[0].close()


def call(targets: Sequence[tuple[str, int]]) -> None:
    """Connect to each target, some at once, and print what became of it."""
    waiting = list(enumerate(targets))[::-1]
    chosen = selectors.DefaultSelector()
    open_calls: dict[int, Any] = {}
    while waiting or open_calls:
        while waiting and len(open_calls) < AT_ONCE:
            number, (address, port) = waiting.pop()
            caller = socket.socket(family(address))
            caller.setblocking(False)
            code = caller.connect_ex((address, port))
            if code in (0, errno.EINPROGRESS):
                chosen.register(caller, selectors.EVENT_WRITE, number)
                open_calls[number] = (caller, time.monotonic() + SECONDS)
            else:
                tell("call", number, spoken(code))
                caller.close()
        for key, _ in chosen.select(0.2):
            connected: Any = key.fileobj
            result = spoken(connected.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
            finish(chosen, open_calls, key.data, result)
        for number in [each for each, (_, end) in open_calls.items() if time.monotonic() > end]:
            finish(chosen, open_calls, number, "silent")
    tell("done")


def spoken(code: int) -> str:
    """The word for an error of a connection."""
    words = {0: "open", errno.ECONNREFUSED: "refused", errno.ETIMEDOUT: "silent", errno.ECONNRESET: "open"}
    return words.get(code, "unreachable")


def finish(chosen: selectors.BaseSelector, open_calls: dict[int, Any], number: int, result: str) -> None:
    """Print the result of a call and forget it."""
    caller, _ = open_calls.pop(number)
    chosen.unregister(caller)
    caller.close()
    tell("call", number, result)


if __name__ == "__main__":
    main()
