"""The authenticated connection between two agents of a job.

Both sides draw a nonce; the session key is HMAC-SHA256(secret, both nonces). Every later line is `MAC JSON`; the MAC
covers direction, line number and text, so no line can be forged, repeated or left out. Nothing is encrypted, since no
secret is ever sent: a command runs with the environment of its task.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
from typing import Any

MAX_LINE = 1 << 20
"""The most bytes of one line; a longer one ends the connection."""
HANDSHAKE_SECONDS = 10.0


class BrokenChannel(Exception):
    """The connection ended, or the peer does not know the secret."""


class Channel:
    """A connection between two agents of one job, after mutual authentication."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: bytes, sends: str, hears: str
    ) -> None:
        self._reader, self._writer, self._key = reader, writer, key
        self._sends, self._hears = sends, hears
        self._sent = self._heard = 0

    async def send(self, message: dict[str, Any]) -> None:
        """Write one message. Raises BrokenChannel."""
        text = json.dumps(message, separators=(",", ":"))
        line = f"{self._mac(self._sends, self._sent, text)} {text}\n"
        self._sent += 1
        try:
            self._writer.write(line.encode())
            await self._writer.drain()
        except OSError as error:
            raise BrokenChannel(str(error)) from error

    async def receive(self) -> dict[str, Any]:
        """Read the next message. Raises BrokenChannel if the connection ended or the message is not authentic."""
        mac, _, text = (await _line(self._reader)).partition(" ")
        if not hmac.compare_digest(mac.encode(), self._mac(self._hears, self._heard, text).encode()):
            raise BrokenChannel("a line with a wrong signature came")
        self._heard += 1
        return _object(text)

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()

    def _mac(self, direction: str, number: int, text: str) -> str:
        return hmac.new(self._key, f"{direction} {number} {text}".encode(), hashlib.sha256).hexdigest()


async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, secret: str) -> Channel:
    """Do the leading side of the handshake. Raises BrokenChannel if the peer does not know the secret."""
    return await _handshake(reader, writer, secret, "leader", "member")


async def connect(host: str, port: int, secret: str) -> Channel:
    """Connect and do the joining side of the handshake. Raises BrokenChannel if no authentic peer answers."""
    try:
        reader, writer = await asyncio.open_connection(host, port, limit=MAX_LINE)
    except OSError as error:
        raise BrokenChannel(str(error)) from error
    return await _handshake(reader, writer, secret, "member", "leader")


async def _handshake(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, secret: str, me: str, peer: str
) -> Channel:
    mine = secrets.token_hex(16)
    try:
        writer.write(f"{mine}\n".encode())
        theirs = (await asyncio.wait_for(_line(reader), HANDSHAKE_SECONDS))[:64]
        nonces = f"{mine} {theirs}" if me == "leader" else f"{theirs} {mine}"
        key = hmac.new(secret.encode(), nonces.encode(), hashlib.sha256).digest()
        channel = Channel(reader, writer, key, sends=me, hears=peer)
        await channel.send({"hello": me})
        await asyncio.wait_for(channel.receive(), HANDSHAKE_SECONDS)
    except (TimeoutError, BrokenChannel, OSError) as error:
        writer.close()
        raise BrokenChannel(str(error) or "no answer in time") from error
    return channel


async def _line(reader: asyncio.StreamReader) -> str:
    try:
        line = await reader.readuntil(b"\n")
        return line[:-1].decode()
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, UnicodeDecodeError, OSError) as error:
        raise BrokenChannel("the connection ended") from error


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise BrokenChannel("a line that is not JSON came") from error
    if not isinstance(value, dict):
        raise BrokenChannel("a line that is not an object came")
    return value
