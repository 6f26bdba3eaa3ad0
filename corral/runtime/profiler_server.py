"""Ask the profiler server that JAX or TensorFlow opened in a process: one gRPC call. Needs Python 3.8 alone.

`jax.profiler.start_server(port)` and `tf.profiler.experimental.server.start(port)` answer `ProfilerService.Profile` of
XLA's profiler_service.proto, which writes what it recorded as an XSpace into a folder. No client of gRPC need be installed:
of HTTP/2 a single call takes a few frames.
"""

from __future__ import annotations

import socket
import struct

_CALL = b"/tensorflow.ProfilerService/Profile"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_END, _END_HEADERS, _ACK = 1, 4, 1
_MOST_FRAME = 16 * 1024
"""Bytes of a frame: a peer may send no longer ones unless it is told so."""
_MOST_FRAMES = 20_000
_CONNECT_SECONDS = 5.0


class NoProfilerServer(Exception):
    """Nothing that speaks gRPC answered at a port, or it refused."""


def number(field: int, value: int) -> bytes:
    """A field of a protocol buffer that holds a number."""
    return _varint(field << 3) + _varint(value)


def text(field: int, value: bytes) -> bytes:
    """A field that holds bytes, a text or a message."""
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    made = b""
    while value > 127:
        made += bytes((value & 127 | 128,))
        value >>= 7
    return made + bytes((value,))


def profile_request(folder: str, session: str, seconds: float) -> bytes:
    """The message `ProfileRequest`: record host and device for some seconds and write it to FOLDER/SESSION."""
    options = number(5, 1) + number(2, 2) + number(3, 1) + number(4, 0) + number(9, round(seconds * 1000))
    return (
        number(1, round(seconds * 1000)) + text(4, options) + text(5, folder.encode()) + text(6, session.encode())
        + text(7, b"task")
    )  # fmt: skip


def ask(port: int, message: bytes, seconds: float) -> None:
    """Have the server at a port of this machine carry out a `Profile` call. Raises NoProfilerServer, OSError."""
    with socket.create_connection(("127.0.0.1", port), _CONNECT_SECONDS) as connection:
        connection.settimeout(_CONNECT_SECONDS)
        body = struct.pack(">BI", 0, len(message)) + message
        head = _frame(_HEADERS, _END_HEADERS, 1, _headers(port))
        connection.sendall(_PREFACE + _frame(_SETTINGS, 0, 0, b"") + head + _frame(_DATA, _END, 1, body))
        _first_frame(connection)
        connection.settimeout(seconds)
        _until_answered(connection)


def _headers(port: int) -> bytes:
    """Headers in HPACK, each as a literal that enters no table."""
    pairs = (
        (b":method", b"POST"), (b":scheme", b"http"), (b":path", _CALL), (b":authority", b"127.0.0.1:%d" % port),
        (b"content-type", b"application/grpc"), (b"te", b"trailers"),
    )  # fmt: skip
    return b"".join(b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value for name, value in pairs)


def _frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return struct.pack(">I", len(content))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + content


def _first_frame(connection: socket.socket) -> None:
    """A server of HTTP/2 begins with its settings; anything else is another server."""
    kind, flags, _, _ = _read_frame(connection)
    if kind != _SETTINGS or flags & _ACK:
        raise NoProfilerServer
    connection.sendall(_frame(_SETTINGS, _ACK, 0, b""))


def _until_answered(connection: socket.socket) -> None:
    """Read frames until the call has ended. Its status is not looked at: what counts is the file that it wrote."""
    for _ in range(_MOST_FRAMES):
        kind, flags, stream, content = _read_frame(connection)
        if kind == _SETTINGS and not flags & _ACK:
            connection.sendall(_frame(_SETTINGS, _ACK, 0, b""))
        elif kind == _PING and not flags & _ACK:
            connection.sendall(_frame(_PING, _ACK, 0, content))
        elif kind == _DATA and content:
            more = struct.pack(">I", len(content))
            connection.sendall(_frame(_WINDOW, 0, 0, more) + _frame(_WINDOW, 0, 1, more))
        if kind in (_RESET, _GOAWAY):
            raise NoProfilerServer
        if kind in (_DATA, _HEADERS) and stream == 1 and flags & _END:
            return
    raise NoProfilerServer


def _read_frame(connection: socket.socket) -> tuple[int, int, int, bytes]:
    head = _read(connection, 9)
    length = int.from_bytes(head[:3], "big")
    if length > _MOST_FRAME:
        raise NoProfilerServer
    return head[3], head[4], int.from_bytes(head[5:], "big") & 0x7FFFFFFF, _read(connection, length)


def _read(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = connection.recv(size - len(found))
        if not piece:
            raise NoProfilerServer
        found += piece
    return found
