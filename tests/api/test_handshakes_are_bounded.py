"""With TLS, connection limits and timeouts apply from the first byte, not only after the handshake."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import trustme
import uvloop

from tests.api.harness import Server, serving
from tests.api.test_the_http_door_is_bounded import CALM, PATIENCE, answer, connected, nobody_there, status

REQUEST = b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
AUTHORITY = trustme.CA()
STRANGERS = 4
HANDSHAKE_SECONDS = 6.0
"""Those who never shake hands are waited for as long; the others must be ready before, on a slow machine as well."""


@pytest.fixture(scope="module", params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def server(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server with a certificate, a short time for handshakes and a low connection limit."""
    folder: Path = tmp_path_factory.mktemp("tls")
    issued = AUTHORITY.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(str(folder / "key"))
    issued.cert_chain_pems[0].write_to_path(str(folder / "certificate"))

    def prepare(server: Server) -> None:
        server.bounds = CALM._replace(header_seconds=HANDSHAKE_SECONDS)
        files = {"tls_certificate": folder / "certificate", "tls_key": folder / "key"}
        server.settings = {"connections": 16, "strangers_per_address": STRANGERS, **files}

    with serving(folder, prepare, new_loop=request.param) as running:
        yield running


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    AUTHORITY.configure_trust(context)
    return context


@contextlib.contextmanager
def secured(server: Server) -> Iterator[ssl.SSLSocket]:
    with connected(server) as plain, trusting().wrap_socket(plain, server_hostname="127.0.0.1") as made:
        yield made


def counted(server: Server, places: int) -> None:
    """Wait until `places` connections are counted."""
    until = time.monotonic() + PATIENCE
    while server.counter.count < places:
        assert time.monotonic() < until, f"{server.counter.count} connections have places"
        time.sleep(0.01)


def test_a_call_over_tls_is_answered_and_gives_its_place_back(server: Server) -> None:
    nobody_there(server)
    with secured(server) as connection:
        connection.sendall(REQUEST)
        assert status(answer(connection)) == 200
    nobody_there(server)


def test_calls_of_several_clients_at_once_are_all_answered(server: Server) -> None:
    nobody_there(server)
    context = trusting()

    def call(_: int) -> int:
        with connected(server) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
            connection.sendall(REQUEST)
            return status(answer(connection))

    with ThreadPoolExecutor(STRANGERS // 2) as clients:  # a closed connection may still be counted
        assert set(clients.map(call, range(200))) == {200}


def test_a_request_that_comes_with_the_end_of_the_handshake_is_answered(server: Server) -> None:
    """Many clients send the last handshake message and the first request in one packet."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = trusting().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with connected(server) as connection:
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                connection.sendall(outgoing.read())
                incoming.write(connection.recv(65536))
        tls.write(REQUEST)
        connection.sendall(outgoing.read())
        said = b""
        with contextlib.suppress(ssl.SSLZeroReturnError):
            while b"\r\n\r\n" not in said:
                incoming.write(connection.recv(65536))
                with contextlib.suppress(ssl.SSLWantReadError):
                    said += tls.read()
    assert status(said) == 200
    nobody_there(server)


def test_connections_that_never_shake_hands_count_as_strangers_and_end(server: Server) -> None:
    nobody_there(server)
    with contextlib.ExitStack() as open_:
        silent = [open_.enter_context(connected(server)) for _ in range(STRANGERS)]
        counted(server, STRANGERS)
        one_too_many = open_.enter_context(connected(server))
        assert answer(one_too_many) == b""
        assert server.counter.count <= STRANGERS
        for each in silent:
            assert answer(each) == b""
    nobody_there(server)


@pytest.mark.parametrize("words", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"a" * 70_000, b"\x00"])
def test_what_is_no_handshake_ends_the_connection(server: Server, words: bytes) -> None:
    with connected(server) as connection:
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            connection.sendall(words)
        answer(connection)
    nobody_there(server)


def test_a_client_who_leaves_in_the_middle_gives_its_place_back(server: Server) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = trusting().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    with connected(server) as connection:
        connection.sendall(outgoing.read()[:50])
    nobody_there(server)
    with connected(server) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset instead of an end
    nobody_there(server)


def test_a_server_ends_though_handshakes_are_under_way(tmp_path: Path) -> None:
    issued = AUTHORITY.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(str(tmp_path / "key"))
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "certificate"))

    def prepare(server: Server) -> None:
        server.bounds = CALM._replace(header_seconds=PATIENCE)
        server.settings = {"tls_certificate": tmp_path / "certificate", "tls_key": tmp_path / "key"}

    with serving(tmp_path, prepare) as running, connected(running) as silent:
        counted(running, 1)
        ended = silent.dup()
    with ended:
        assert answer(ended) == b""
