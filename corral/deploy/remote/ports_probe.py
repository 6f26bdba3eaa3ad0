"""Listens at ports, or calls those of others; runs by Python 3 on a host, so it needs the standard library alone, and of
that only what Debian's python3-minimal has, which lacks json.

It reads one line of Python. A listener has {"address", "ports", "udp"}, prints a line for each port and `ready`, and
listens until its standard input ends; it sends packets of this probe back. A caller has {"calls": [[address, port], ...],
"packets": [[address, port], ...], "size"}, and prints a line for each: packets are as long as that size at most, and are
never cut into pieces.
"""

from __future__ import annotations

import ast
import contextlib
import errno
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
MARK = b"corral-deploy-check "
MOST = 65_535
SMALL = 100
PATIENCE = 20.0
"""Seconds for all packets: the other host's Python answers them, and not its kernel."""
AGAIN = 1.0
"""Seconds after which a packet is sent again: UDP may lose one."""


def main() -> None:
    """Do what the line says."""
    task = ast.literal_eval(sys.stdin.readline())
    if "ports" in task:
        listen(task["address"], task["ports"], task.get("udp", ()))
    else:
        call([(address, port) for address, port in task["calls"]])
        send([(address, port) for address, port in task.get("packets", ())], task.get("size", 0))
        tell("done")


def family(address: str) -> int:
    """The family of an IP address."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def tell(*words: object) -> None:
    """Print a line at once."""
    print(*words, flush=True)


def listen(address: str, ports: Sequence[int], udp: Sequence[int]) -> None:
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
    for port in udp:
        echo = socket.socket(family(address), socket.SOCK_DGRAM)
        try:
            echo.bind((address, port))
        except OSError:
            tell("udp", port, "taken")
            echo.close()
            continue
        whole(echo, address)
        echo.setblocking(False)
        chosen.register(echo, selectors.EVENT_READ, "echo")
        tell("udp", port, "free")
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
                if key.data == "echo":
                    packet, caller = server.recvfrom(MOST)
                    if packet.startswith(MARK):
                        server.sendto(packet, caller)
                else:
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


def send(targets: Sequence[tuple[str, int]], size: int) -> None:
    """Send a small and a large packet to each target until both came back, and print which did."""
    callers: dict[int, Any] = {}
    lacking: dict[int, set[int]] = {}
    chosen = selectors.DefaultSelector()
    for number, (address, port) in enumerate(targets):
        caller = socket.socket(family(address), socket.SOCK_DGRAM)
        whole(caller, address)
        caller.setblocking(False)
        caller.connect_ex((address, port))  # without a way there is no answer either
        chosen.register(caller, selectors.EVENT_READ, number)
        # What IP and UDP add to a packet.
        callers[number], lacking[number] = caller, {SMALL, max(SMALL + 1, size - (48 if ":" in address else 28))}
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and any(lacking.values()):
        for number, sizes in lacking.items():
            for length in sizes:
                with contextlib.suppress(OSError):  # it is too large for the way, or refused for now
                    callers[number].send(MARK.ljust(length, b"."))
        pause = time.monotonic() + AGAIN
        while time.monotonic() < pause and any(lacking.values()):
            for key, _ in chosen.select(pause - time.monotonic()):
                with contextlib.suppress(OSError):  # it was refused
                    lacking[key.data].discard(len(callers[key.data].recv(MOST)))
    for number, caller in callers.items():
        left = lacking[number]
        tell("packet", number, "open" if not left else "silent" if SMALL in left else "small")
        caller.close()


def whole(opened: socket.socket, address: str) -> None:
    """Let packets of a socket never be cut into pieces: IP_MTU_DISCOVER or its like of IPv6, IP_PMTUDISC_PROBE."""
    level, option = (socket.IPPROTO_IPV6, 23) if ":" in address else (socket.IPPROTO_IP, 10)
    opened.setsockopt(level, option, 3)


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
