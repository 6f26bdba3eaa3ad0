"""Limits on unauthenticated HTTP input before it is parsed: bytes, counts, time and connections."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from corral.api.connection_limits import ConnectionCounter, ConnectionLimits, Place
from corral.client import Client
from tests.api.harness import Server, serving

PATIENCE = 150.0
HEAD = b"GET /healthz HTTP/1.1\r\nhost: x\r\n"
UPLOAD = b"POST /api/v3/login HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
CHUNKED = UPLOAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n"
CALM = ConnectionLimits(header_seconds=60.0, idle_seconds=60.0, body_seconds=60.0, body_bytes=100, closing_seconds=1.0)
"""Times that no client here exceeds; each test shortens the one that it is about."""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a low connection limit."""

    def prepare(server: Server) -> None:
        server.bounds = CALM
        server.settings = {"connections": 16, "strangers_per_address": 4}

    with serving(tmp_path_factory.mktemp("small"), prepare) as running:
        yield running


@contextlib.contextmanager
def bounded(server: Server, **seconds: float) -> Iterator[None]:
    """Bound the connections that are made from now on by other times."""
    before = server.counter.bounds
    server.counter.bounds = before._replace(**seconds)  # type: ignore[arg-type]
    try:
        yield
    finally:
        server.counter.bounds = before


@contextlib.contextmanager
def connected(server: Server) -> Iterator[socket.socket]:
    """A connection to the server."""
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE) as made:
        yield made


def answer(connection: socket.socket) -> bytes:
    """All bytes until the server closes the connection."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            found += piece
    return found


def status(said: bytes) -> int:
    """The status of the first answer, 0 if there is none."""
    match = re.match(rb"HTTP/1.1 (\d+)", said)
    return int(match[1]) if match else 0


def flood(connection: socket.socket, begin: bytes, more: bytes, most: int = 64 * 1024 * 1024) -> int:
    """Send `more` repeatedly until the server closes the connection; returns the number of bytes sent."""
    sent = 0
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        connection.sendall(begin)
        while sent < most:
            connection.sendall(more)
            sent += len(more)
    return sent


def nobody_there(server: Server, but: int = 0) -> None:
    """Wait until only `but` connections are counted."""
    until = time.monotonic() + PATIENCE
    while server.counter.count > but:
        assert time.monotonic() < until, f"{server.counter.count} connections kept their places"
        time.sleep(0.01)


ENDLESS = {
    "one header": (HEAD + b"x: ", b"a" * 65536),
    "a header's name": (HEAD, b"a" * 65536),
    "many headers": (HEAD, b"a: b\r\n" * 1000),
    "an address": (b"GET /", b"a" * 65536),
    "a method": (b"", b"a" * 65536),
    "trailers": (CHUNKED + b"0\r\n", b"a: b\r\n" * 1000),
    "one trailer": (CHUNKED + b"0\r\nx: ", b"a" * 65536),
    "a chunk's extension": (CHUNKED + b"2;", b"a" * 65536),
    "requests in advance": (b"", (HEAD + b"\r\n") * 1000),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_never_ends_is_cut_off(server: Server, what: str) -> None:
    begin, more = ENDLESS[what]
    with connected(server) as connection:
        assert flood(connection, begin, more) < 32 * 1024 * 1024
        answer(connection)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (HEAD + b"x: " + b"a" * 60_000 + b"\r\nconnection: close\r\n\r\n", 200),
        (HEAD + b"x: " + b"a" * 66_000 + b"\r\n\r\n", 431),
        (HEAD + b"".join(b"x%d: y\r\n" % each for each in range(120)) + b"connection: close\r\n\r\n", 200),
        (HEAD + b"".join(b"x%d: y\r\n" % each for each in range(140)) + b"\r\n", 431),
        (b"GET /healthz?" + b"a" * 16_000 + b" HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", 200),
        (b"GET /healthz?" + b"a" * 17_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n", 414),
        (b"nonsense\r\n\r\n", 400),
    ],
)
def test_a_request_is_refused_where_its_bound_is(server: Server, request_: bytes, expected: int) -> None:
    with connected(server) as connection:
        connection.sendall(request_)
        said = answer(connection)
    assert status(said) == expected
    if expected != 200:
        assert re.search(rb'\{"code":"[a-z-]+","message":"[^"]+\."\}$', said)


def test_a_trailer_is_no_header(server: Server) -> None:
    token = server.token("alice").encode()
    request = b"GET /api/v3/me HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n0\r\n"
    with connected(server) as connection:
        connection.sendall(request + b"authorization: Bearer " + token + b"\r\n\r\n")
        assert status(answer(connection)) == 401


@pytest.mark.parametrize(
    ("sent", "expected", "bound"),
    [
        (b"", 0, "idle_seconds"),
        (b"\r\n", 0, "idle_seconds"),
        (HEAD, 408, "header_seconds"),
        (HEAD + b"x: y", 408, "header_seconds"),
        (UPLOAD + b"content-length: 50\r\n\r\n{", 408, "body_seconds"),
    ],
)
def test_half_a_request_is_not_waited_for(small: Server, sent: bytes, expected: int, bound: str) -> None:
    with bounded(small, **{bound: 1.0}), connected(small) as connection:
        connection.sendall(sent)
        assert status(answer(connection)) == expected


def test_a_connection_that_has_its_answer_is_not_kept_for_line_ends(small: Server) -> None:
    with bounded(small, idle_seconds=5.0), connected(small) as connection:
        connection.sendall(HEAD + b"\r\n")
        assert status(connection.recv(65536)) == 200
        with contextlib.suppress(ConnectionError):
            until = time.monotonic() + PATIENCE
            while time.monotonic() < until:
                connection.sendall(b"\r\n")
                connection.settimeout(0.1)
                with contextlib.suppress(TimeoutError):
                    if not connection.recv(100):
                        return


def test_a_large_body_over_a_slow_line_goes_on(small: Server) -> None:
    size, piece, bound, begun = 4000, 100, 10.0, time.monotonic()
    with bounded(small, body_seconds=bound), connected(small) as connection:
        connection.sendall(UPLOAD + b"connection: close\r\ncontent-length: %d\r\n\r\n" % size)
        for _ in range(size // piece):
            connection.sendall(b" " * piece)
            time.sleep(1.2 * bound * piece / size)  # a slow line
        assert time.monotonic() - begun > bound
        assert status(answer(connection)) == 400


def test_an_open_stream_is_not_idle(small: Server) -> None:
    token = small.token("alice").encode()
    with bounded(small, idle_seconds=5.0), connected(small) as connection:
        stream = b"GET /api/v3/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer " + token + b"\r\n\r\n"
        connection.sendall(stream)
        assert status(connection.recv(65536)) == 200
        with connected(small) as other:
            assert answer(other) == b""  # idle for as long as is allowed, and after the stream began
        connection.settimeout(0.01)
        with pytest.raises(TimeoutError):
            while connection.recv(65536):
                pass


def test_strangers_of_an_address_are_turned_away_and_users_are_not(small: Server) -> None:
    token = small.token("alice").encode()
    stream = b"GET /api/v3/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer " + token + b"\r\n\r\n"
    nobody_there(small)
    with contextlib.ExitStack() as open_:

        def signed_in() -> None:
            made = open_.enter_context(connected(small))
            made.sendall(stream)
            assert status(made.recv(65536)) == 200

        for _ in range(10):
            signed_in()
        with bounded(small, idle_seconds=10.0):
            strangers = [open_.enter_context(connected(small)) for _ in range(5)]
            assert status(answer(strangers[-1])) == 429
        for stranger in strangers[:-1]:
            assert answer(stranger) == b""  # they sent nothing and were closed to free places
        for _ in range(6):
            signed_in()
        assert status(answer(open_.enter_context(connected(small)))) == 503


def test_everybody_gives_their_place_back(small: Server) -> None:
    nobody_there(small)
    with Client(small.url, small.token("alice")) as alice:
        assert alice.me()
    nobody_there(small)


def test_a_named_proxy_may_have_as_many_connections_as_it_needs(tmp_path: Path) -> None:
    def behind(server: Server) -> None:
        server.settings = {"trusted_proxies": "127.0.0.1", "strangers_per_address": 2}

    with serving(tmp_path, behind) as server, contextlib.ExitStack() as open_:
        for made in [open_.enter_context(connected(server)) for _ in range(6)]:
            made.sendall(HEAD + b"\r\n")
            assert status(made.recv(65536)) == 200


def test_one_user_takes_a_part_of_the_connections_and_leaves_the_rest_to_others(tmp_path: Path) -> None:
    def few(server: Server) -> None:
        server.settings = {"connections": 16, "connections_per_user": 3}

    def call(server: Server, made: socket.socket, token: str) -> bytes:
        made.sendall(f"GET /api/v3/me HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n".encode())
        said = b""
        while not said.endswith(b"}"):
            said += made.recv(65536)
        return said

    with serving(tmp_path, few) as server, contextlib.ExitStack() as open_:
        alice, bob = server.token("alice"), server.token("bob")
        held = [open_.enter_context(connected(server)) for _ in range(3)]
        assert [status(call(server, made, alice)) for made in held] == [200] * 3
        with connected(server) as over:
            refused = call(server, over, alice)
            assert status(refused) == 429 and b"too-many-connections" in refused and b"connection: close" in refused
            assert answer(over) == b"", "and it is closed"
        with connected(server) as other:
            assert status(call(server, other, bob)) == 200
            assert status(call(server, other, alice)) == 429, "nobody's connection becomes that of a user with too many"
        assert status(call(server, held[0], alice)) == 200, "those that are open go on"
        held[1].close()
        held[2].close()
        nobody_there(server, but=1)
        with connected(server) as again:
            assert status(call(server, again, alice)) == 200


def test_behind_a_named_proxy_connections_are_nobodys(tmp_path: Path) -> None:
    def behind(server: Server) -> None:
        server.settings = {"trusted_proxies": "127.0.0.1", "connections_per_user": 1}

    with serving(tmp_path, behind) as server, contextlib.ExitStack() as open_:
        alice = server.token("alice")
        for made in [open_.enter_context(connected(server)) for _ in range(4)]:
            made.sendall(f"GET /api/v3/me HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {alice}\r\n\r\n".encode())
            assert status(made.recv(65536)) == 200


def test_a_caller_who_is_known_only_after_the_connection_ended_is_not_counted_for_ever() -> None:
    counter = ConnectionCounter(ConnectionLimits(connections_per_user=1))
    for _ in range(3):
        place = counter.enter("10.0.0.1")
        assert isinstance(place, Place)
        place.leave()
        place.known("user ann")
    place = counter.enter("10.0.0.1")
    assert isinstance(place, Place)
    place.known("user ann")
    assert counter.count == 1
