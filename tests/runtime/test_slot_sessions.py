"""A session in a slot reaches what listens there, ends with its client, and leaves no descriptor open."""

from __future__ import annotations

import base64
import errno
import http.client
import json
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from corral.runtime import slot, slot_calls, slot_session
from corral.runtime.slot_attempt import Attempt
from corral.runtime.slot_calls import SlotCalls
from corral.runtime.slot_session import SessionEnd, frame, serve_session
from tests.reserved import free_port
from tests.waiting import pause

END = frame(b"x", b"0")


class Server:
    """The server's side of one session."""

    def __init__(self) -> None:
        self.said: list[bytes] = []
        self._lines: queue.Queue[bytes | None] = queue.Queue()

    def say(self, **told: Any) -> None:
        """Send a line of input."""
        self._lines.put(json.dumps(told).encode())

    def until_read(self) -> None:
        """Wait until all lines were taken."""
        begun = time.monotonic()
        while not self._lines.empty():
            assert time.monotonic() - begun < 60, "nothing takes them"
            time.sleep(pause(begun))

    def send_output(self, _: str, frames: Iterator[bytes]) -> None:
        """Take frames; the session's end ends its input, too."""
        try:
            for each in frames:
                self.said.append(each)
        finally:
            self._lines.put(None)

    def input(self, _: str) -> Iterator[bytes]:
        """The lines until the end."""
        while (line := self._lines.get()) is not None:
            yield line


@contextmanager
def session(
    server: Server, folder: Path, host: str = "127.0.0.1", ending: SessionEnd | None = None, **order: Any
) -> Iterator[threading.Thread]:
    """A session while the block runs, after which it must have ended, with all its descriptors closed."""
    before = descriptors()
    attempt = SimpleNamespace(
        state=lambda: {"state": "running"}, environment={**os.environ, "CORRAL_HOST": host}, directory=str(folder)
    )
    words = (cast(SlotCalls, server), {"session": "s", **order}, cast(Attempt, attempt), ending)
    serving = threading.Thread(target=serve_session, args=words, daemon=True)
    serving.start()
    yield serving
    serving.join(60)
    assert not serving.is_alive()
    begun = time.monotonic()
    while descriptors() - before:  # those that the test itself has closed may be counted a moment longer
        assert time.monotonic() - begun < 60, descriptors() - before
        time.sleep(pause(begun))


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


@contextmanager
def listening(host: str) -> Iterator[socket.socket]:
    with socket.create_server((host, free_port())) as made:
        made.settimeout(60)
        yield made


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"])
def test_what_listens_on_loopback_or_at_the_tasks_own_address_is_reached(tmp_path: Path, host: str) -> None:
    server = Server()
    with listening(host) as service:
        with session(server, tmp_path, host, port=service.getsockname()[1]):
            caller, _ = service.accept()
            with caller:
                server.say(data=base64.b64encode(b"question").decode())
                assert caller.recv(100) == b"question"
                server.say(eof=True)
                assert caller.recv(100) == b"", "the end of the input is no byte of its own"
                caller.sendall(b"answer")
    assert server.said == [frame(b"o", b"answer"), END]


def test_a_connection_to_a_service_that_says_nothing_ends_with_its_client(tmp_path: Path) -> None:
    server = Server()
    with listening("127.0.0.1") as service, session(server, tmp_path, port=service.getsockname()[1]):
        caller, _ = service.accept()
        caller.settimeout(60)
        server.say(close=True)
        assert caller.recv(100) == b""
        caller.close()
    assert server.said == [END]


def test_a_port_at_which_nothing_listens_is_no_answer_of_a_service(tmp_path: Path) -> None:
    server = Server()
    with session(server, tmp_path, port=free_port()):
        pass
    assert server.said == [frame(b"r", b"%d" % errno.ECONNREFUSED)]


def test_an_own_address_that_cannot_be_looked_up_is_told_by_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, found = Server(), socket.getaddrinfo

    def looked_up(host: str, *given: Any) -> Any:
        if host == "nowhere":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return found(host, *given)

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    with session(server, tmp_path, "nowhere", port=free_port()):
        pass
    assert server.said == [frame(b"r", b"%d" % errno.EHOSTUNREACH)]


def test_a_server_that_falls_silent_ends_the_input_of_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_calls, "_SILENT_SECONDS", 0.05)
    with listening("127.0.0.1") as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        calls = SlotCalls({"url": url, "service": "s", "token": "t"}, "main-0", "container", "127.0.0.1")
        with pytest.raises(OSError):
            list(calls.input("s"))


@pytest.mark.parametrize("tty", [False, True])
def test_a_command_reads_its_input_and_leaves_nothing_open(tmp_path: Path, tty: bool) -> None:
    server = Server()
    script = "import sys; sys.exit(len(sys.stdin.read()))"
    with session(server, tmp_path, argv=[sys.executable, "-c", script], tty=tty):
        server.say(data=base64.b64encode(b"words\n").decode())
        server.say(eof=True)
    assert server.said[-1] == frame(b"x", b"6")


def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    server = Server()
    with session(server, tmp_path, argv=["nowhere"], tty=True):
        pass
    assert server.said == [frame(b"o", b"No such file or directory\n"), frame(b"x", b"125")]


def test_a_command_that_has_closed_its_input_goes_on(tmp_path: Path) -> None:
    server = Server()
    script = (
        "import os, time\nos.close(0)\nprint('closed', flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.05)\nprint('end')"
    )
    with session(server, tmp_path, argv=[sys.executable, "-c", script], tty=False):
        begun = time.monotonic()
        while not server.said:
            time.sleep(pause(begun))
        for _ in range(3):
            server.say(data=base64.b64encode(b"more").decode())
        server.until_read()
        (tmp_path / "go").touch()
    assert b"".join(each[5:] for each in server.said[:-1]) == b"closed\nend\n" and server.said[-1] == END


@pytest.mark.parametrize("tty", [False, True])
def test_a_command_that_takes_no_input_ends_with_its_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tty: bool
) -> None:
    monkeypatch.setattr(slot_session, "_LAST_INPUT_SECONDS", 0.05)
    server, ending = Server(), SessionEnd()
    with session(server, tmp_path, ending=ending, argv=["sleep", "1000"], tty=tty):
        for _ in range(40):
            server.say(data=base64.b64encode(bytes(65_536)).decode())
        server.say(close=True)
        ending.ask()
    assert server.said[-1] == frame(b"x", b"%d" % (128 + signal.SIGKILL))


def test_a_slot_ends_a_session_at_the_servers_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, asked = threading.Event(), threading.Event()

    def serve(calls: object, order: dict[str, Any], attempt: object, ending: SessionEnd) -> None:
        ending.begin(asked.set)
        begun.set()
        assert asked.wait(60)

    monkeypatch.setattr(slot, "serve_session", serve)
    monkeypatch.setattr(slot_session, "_LAST_INPUT_SECONDS", 0.0)
    one = slot.Slot(cast(SlotCalls, Server()), str(tmp_path), [], [])
    one._open_session({"session": "s", "attempt": "a", "argv": ["sh"]})
    assert begun.wait(60) and not asked.is_set()
    for _ in range(2):
        one._open_session({"session": "s", "attempt": "a", "close": True})
    assert asked.wait(60)


def test_a_slot_remembers_a_bounded_number_of_sessions_and_begins_none_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr(slot, "serve_session", lambda _, order, *rest: begun.put(order["session"]))
    monkeypatch.setattr(slot, "_MOST_SESSIONS", 2)
    one = slot.Slot(cast(SlotCalls, Server()), str(tmp_path), [], [])
    for name in ("a", "b", "c", "c", "b", "d"):
        one._open_session({"session": name, "attempt": "x", "argv": ["sh"]})
    assert sorted(begun.get(timeout=60) for _ in range(4)) == ["a", "b", "c", "d"]
    assert list(one._sessions) == ["c", "d"] and begun.empty()


def test_the_connection_of_a_sessions_output_is_probed_while_its_server_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    probed: list[int] = []
    connect = http.client.HTTPConnection.connect
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    with listening("127.0.0.1") as server:

        def answered() -> None:
            caller, _ = server.accept()
            with caller:
                for _ in range(2):
                    while not caller.recv(1000).endswith(b"x"):
                        pass
                    caller.sendall(answer)

        answering = threading.Thread(target=answered, daemon=True)
        answering.start()
        made: list[http.client.HTTPConnection] = []

        def connected(self: http.client.HTTPConnection) -> None:
            connect(self)
            made.append(self)

        monkeypatch.setattr(http.client.HTTPConnection, "connect", connected)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        calls = SlotCalls({"url": url, "service": "s", "token": "t"}, "main-0", "container", "127.0.0.1")

        def frames() -> Iterator[bytes]:
            for _ in range(2):
                yield b"x"
                probed.append(made[0].sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))

        calls.send_output("s", frames())
        answering.join(60)
    assert probed == [1, 1] and len(made) == 1
