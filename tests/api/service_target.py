"""A service of a job for tests: it answers each path in a way of its own, and most of them badly."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import ServerConnection, serve, unix_serve
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

PIECE = b"x" * 65_536
PIECES = 1600
"""Pieces of the large body: 100 MB."""
LARGE = 3 * 1024 * 1024
"""Bytes of a large message of a WebSocket."""
COOKIES = (
    "plain=1; Path=/app; HttpOnly",
    "corral_session=stolen; Path=/",
    "corral_service=stolen",
    "__Host-corral_session=stolen; Path=/; Secure",
    "Corral_Session=stolen",
    "=corral_session=stolen",
    "wide=2; Domain=localhost; SameSite=Lax",
)
HEADERS = (
    "Clear-Site-Data: *",
    "Service-Worker-Allowed: /",
    "Access-Control-Allow-Origin: *",
    "Alt-Svc: h2=':1'",
    "Keep-Alive: 5",
)


class Target:
    """The service; it counts what it sends and keeps what it is sent."""

    def __init__(self) -> None:
        self.port = 0
        self.socket_port = 0
        self.sent = 0
        self.heads: list[str] = []
        self.connections = 0
        self.ended = asyncio.Event()
        """Set when a request that never ends was cut."""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            self.heads.append(head)
            path = head.split(" ", 2)[1].partition("?")[0]
            act: Callable[..., Awaitable[None]] = getattr(self, "do_" + path.strip("/").replace("/", "_"), self.do_echo)
            await act(head, reader, writer)
        writer.close()

    async def do_echo(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send the request's head back."""
        writer.write(_whole(json.dumps(head.split("\r\n")).encode(), "Content-Type: application/json"))
        await writer.drain()

    async def do_kept(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer all requests of a connection with its number, until one asks for `/leave`, which gets no answer."""
        self.connections += 1
        number = self.connections
        while " /leave " not in head:
            _, has_body, rest = head.lower().partition("content-length: ")
            if has_body:
                await reader.readexactly(int(rest.partition("\r\n")[0]))
            writer.write(_whole(str(number).encode()))
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            self.heads.append(head)

    async def do_leave(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer on a connection of its own."""
        await self.do_kept("", reader, writer)

    async def do_large(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send 100 MB in chunks, as fast as they are taken."""
        self.sent = 0
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(PIECES):
            writer.write(b"%x\r\n%b\r\n" % (len(PIECE), PIECE))
            await writer.drain()
            self.sent += len(PIECE)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def do_take(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Count the bytes of a chunked body."""
        count = 0
        while size := int(await reader.readline(), 16):
            count += len(await reader.readexactly(size))
            await reader.readline()
        await reader.readline()
        writer.write(_whole(str(count).encode()))
        await writer.drain()

    async def do_endless(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Begin headers, and never end them."""
        writer.write(b"HTTP/1.1 200 OK\r\nX-Begun: 1\r\n")
        await writer.drain()
        await reader.read()
        self.ended.set()

    async def do_gigabyte(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send headers of 1 GB, or what is taken of them."""
        self.sent = 0
        writer.write(b"HTTP/1.1 200 OK\r\n")
        for number in range(16_384):
            writer.write(b"X-Header-%d: " % number + PIECE + b"\r\n")
            await writer.drain()
            self.sent += len(PIECE)

    async def do_many(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send more short headers than there may be."""
        writer.write(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"Content-Length: 0\r\n\r\n")
        await writer.drain()

    async def do_nonsense(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Speak another protocol."""
        writer.write(b"\x16\x03\x01 not HTTP at all \x00\r\n\r\n")
        await writer.drain()

    async def do_control(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Put a control character into a header."""
        writer.write(_whole(b"", "X-Odd: a\x01b"))
        await writer.drain()

    async def do_switch(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Change the protocol without being asked."""
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: upgrade\r\n\r\n")
        await writer.drain()

    async def do_cut(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Promise more bytes than come."""
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort")
        await writer.drain()

    async def do_cookies(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Set cookies for others, and headers that act beyond the page."""
        writer.write(_whole(b"ok", *(f"Set-Cookie: {each}" for each in COOKIES), *HEADERS))
        await writer.drain()

    async def do_redirect(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Lead to the address that the query names."""
        asked = parse_qs(urlsplit(head.split(" ", 2)[1]).query)["to"][0].replace("PORT", str(self.port))
        writer.write(f"HTTP/1.1 302 Found\r\nLocation: {asked}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()


def _whole(body: bytes, *headers: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def _begin(socket: ServerConnection) -> None:
    """Send a large part of a message, and not its end."""
    more = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield b"y" * LARGE
        await more.wait()
        yield b""

    sending = asyncio.create_task(socket.send(pieces()))
    await socket.wait_closed()
    more.set()
    await asyncio.gather(sending, return_exceptions=True)


async def _counted(socket: ServerConnection) -> int:
    """Count the bytes that come until a text."""
    size = 0
    async for message in socket:
        if isinstance(message, str):
            break
        size += len(message)
    return size


async def _echo(socket: ServerConnection) -> None:
    """A WebSocket that tells its subprotocol and its request, and then sends back what comes."""
    assert socket.request is not None
    headers = {name.lower(): value for name, value in socket.request.headers.raw_items()}
    await socket.send(json.dumps([socket.subprotocol, socket.request.path, headers]))
    with contextlib.suppress(ConnectionClosed):
        async for message in socket:
            if message == "close":
                await socket.close(4321)
            elif message == "large":
                await socket.send("z" * LARGE)
            elif message == "begun":
                await _begin(socket)
            elif message == "count":
                await socket.send(str(await _counted(socket)))
            else:
                await socket.send(message)


async def _forward(socket: ServerConnection) -> None:
    """Control's side of a forward: connect to a port of this machine."""
    assert socket.request is not None
    port = int(parse_qs(urlsplit(socket.request.path).query)["port"][0])
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        await socket.send(json.dumps({"error": {"code": "port-closed", "message": "Nothing answers."}}))
        return

    async def inwards() -> None:
        with contextlib.suppress(ConnectionClosed, ConnectionError):
            async for frame in socket:
                assert isinstance(frame, bytes) and len(frame) <= len(PIECE)
                writer.write(frame)
                await writer.drain()
        writer.close()

    sending = asyncio.create_task(inwards())
    with contextlib.suppress(ConnectionClosed, ConnectionError):
        while data := await reader.read(65_536):
            await socket.send(data)
        await socket.send(json.dumps({"exit": 0}))
    await socket.close()
    await sending


@contextlib.asynccontextmanager
async def running(control: Path) -> AsyncIterator[Target]:
    """A target behind a stand-in for control at a Unix socket."""
    target = Target()
    listening = await asyncio.start_server(target.answer, "127.0.0.1", 0, limit=1024 * 1024)
    target.port = listening.sockets[0].getsockname()[1]
    async with (
        unix_serve(_forward, str(control)),
        serve(_echo, "127.0.0.1", 0, subprotocols=[Subprotocol("chat")], max_size=None) as sockets,
    ):
        target.socket_port = next(iter(sockets.sockets)).getsockname()[1]
        yield target
    listening.close()
