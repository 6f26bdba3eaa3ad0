"""Mutual TLS by the server's key: fronts and controls of one server accept each other and nobody else."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

import pytest

from corral.service.mutual_tls import NAME, TlsFiles, write_tls_files

KEY = bytes(range(32))


def shake_hands(server: TlsFiles, client: ssl.SSLContext) -> bytes:
    """Shake hands as client and server and return the greeting; raises ssl.SSLError or OSError for a stranger."""
    ours, theirs = socket.socketpair()
    failed: list[BaseException] = []

    def serve() -> None:
        try:
            with server.server_context().wrap_socket(ours, server_side=True) as answering:
                answering.sendall(b"hello")
        except OSError as error:
            failed.append(error)
        finally:
            ours.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        theirs.settimeout(30)
        with client.wrap_socket(theirs, server_hostname=NAME) as asking:
            return asking.recv(5)
    finally:
        theirs.close()
        thread.join()


def test_who_has_the_same_key_is_trusted_by_both(tmp_path: Path) -> None:
    server, client = write_tls_files(KEY, tmp_path, "control"), write_tls_files(KEY, tmp_path, "front")
    assert shake_hands(server, client.client_context()) == b"hello"
    assert server.authority.read_bytes() == client.authority.read_bytes()


def test_another_key_is_trusted_by_neither(tmp_path: Path) -> None:
    server, stranger = write_tls_files(KEY, tmp_path, "control"), write_tls_files(bytes(32), tmp_path, "front")
    with pytest.raises(ssl.SSLError):
        shake_hands(server, stranger.client_context())
    believing = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    believing.load_verify_locations(server.authority)
    believing.load_cert_chain(stranger.certificate, stranger.key)
    with pytest.raises(OSError):  # an alert, or a connection that was closed first
        assert shake_hands(server, believing) == b"hello"


def test_nobody_comes_in_without_a_certificate(tmp_path: Path) -> None:
    server = write_tls_files(KEY, tmp_path, "control")
    anonymous = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anonymous.load_verify_locations(server.authority)
    with pytest.raises(OSError):
        assert shake_hands(server, anonymous) == b"hello"


def test_its_files_are_private_and_made_anew(tmp_path: Path) -> None:
    first = write_tls_files(KEY, tmp_path, "front").certificate.read_bytes()
    again = write_tls_files(KEY, tmp_path, "front")
    assert again.certificate.read_bytes() != first
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in again)
