"""The profiler servers of JAX and TensorFlow: ports that are something else, and traces that are read or refused."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from corral.profiles.trace_events import read_events
from corral.profiles.trace_report import report
from corral.runtime.profiler_server import NoProfilerServer, ask, number, profile_request, text
from corral.runtime.task_profiler_servers import listening
from corral.runtime.xplane import BadXSpace, chrome_trace, fields

MOST = 1 << 20


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """A port of this machine that answers one connection with some bytes and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL",
        b"\0\0\0\4\0\0\0\0\0",  # settings, and then the end
        b"\0\0\0\4\0\0\0\0\0" + b"\0\0\4\3\0\0\0\0\1\0\0\0\2",  # a stream that is reset
        b"\xff\xff\xff\4\0\0\0\0\0",  # a frame of 16 MiB
    ],
)
def test_a_port_that_is_no_profiler_server_is_told_apart(answer: bytes) -> None:
    with answering(answer) as port, pytest.raises((NoProfilerServer, OSError)):
        ask(port, profile_request("/nowhere", "s", 1.0), 60)


def test_a_call_that_has_ended_is_enough() -> None:
    ended = b"\0\0\0\4\0\0\0\0\0" + b"\0\0\0\1\5\0\0\0\1"
    with answering(ended) as port:
        ask(port, profile_request("/nowhere", "s", 1.0), 60)


def test_the_ports_on_which_a_process_listens_are_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert server.getsockname()[1] in listening(os.getpid())
        port = server.getsockname()[1]
    assert port not in listening(os.getpid())


def plane(name: str, events: dict[str, tuple[int, int]]) -> bytes:
    """A plane with one line, whose events begin and last some microseconds."""
    line = number(1, 2**63) + text(2, b"a thread") + number(3, 5_000_000)
    names = b""
    for at, (title, (begin, length)) in enumerate(events.items(), start=1):
        line += text(4, number(1, at) + number(2, begin * 10**6) + number(3, length * 10**6))
        names += text(4, number(1, at) + text(2, number(1, at) + text(2, title.encode())))
    return text(1, text(2, name.encode()) + text(3, line) + names)


def told(space: bytes) -> bytes:
    return b"".join(chrome_trace(space, MOST))


def test_operators_kernels_copies_and_python_are_told_apart() -> None:
    host = plane("/host:CPU", {"dot.1": (0, 10), "$train.py:3 step": (0, 90), "ThreadWait": (20, 50)})
    device = plane("/device:GPU:0", {"fusion": (10, 30), "MemcpyH2D": (50, 20)})
    ignored = plane("/host:metadata", {}) + plane("Task Environment", {"x": (0, 1)})
    events = {event.name: event for event in read_events([told(host + device + ignored).decode()])}
    assert {name: event.kind for name, event in events.items()} == {
        "dot.1": "cpu_op", "$train.py:3 step": "python_function", "ThreadWait": "idle", "fusion": "kernel",
        "MemcpyH2D": "gpu_memcpy",
    }  # fmt: skip
    assert (events["fusion"].begin, events["fusion"].length) == (5010.0, 30.0)
    found = report("worker-0", events.values())
    assert found.device and found.computing == pytest.approx(30e-6) and found.copies == pytest.approx(20e-6)


def test_a_trace_beyond_its_bound_is_cut_after_an_event() -> None:
    space = plane("/host:CPU", {f"op{at}": (at, 1) for at in range(100)})
    pieces = list(chrome_trace(space, 2000))
    assert pieces[-1] == b"" and sum(map(len, pieces)) <= 2000
    assert 2 < len(json.loads(b"".join(pieces))["traceEvents"]) < 100
    assert list(chrome_trace(space, MOST))[-1] != b""


@pytest.mark.parametrize("data", [b"\x80", b"\x0a\x05ab", b"\x0b", b"\xff" * 20, b"\x0a\xff\xff\xff\xff\x7f"])
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    with pytest.raises(BadXSpace):
        list(fields(data))
