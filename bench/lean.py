"""A minimal HTTP client, so that a benchmark on two processors does not measure its own client."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit


class LeanClient:
    """One kept-alive connection with one request at a time; it costs a tenth of a full client."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._head = f"Host: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n"
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def __aenter__(self) -> LeanClient:
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def get(self, path: str) -> Any:
        """The JSON answer; raises RuntimeError for anything but a 2xx."""
        return await self._ask(f"GET {path} HTTP/1.1\r\n{self._head}\r\n".encode())

    async def post(self, path: str, body: Any) -> Any:
        """The JSON answer to a JSON body; raises RuntimeError for anything but a 2xx."""
        data = json.dumps(body).encode()
        lines = f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        return await self._ask(f"POST {path} HTTP/1.1\r\n{self._head}{lines}".encode() + data)

    async def _ask(self, request: bytes) -> Any:
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        at = head.find(b"content-length: ")
        if at < 0:
            raise RuntimeError(f"an answer without a length: {head!r}")
        length = int(head[at + 16 : head.index(b"\r\n", at)])
        body = await self._reader.readexactly(length)
        if not head.startswith(b"http/1.1 2"):
            raise RuntimeError(f"{request.splitlines()[0]!r} was answered {head.splitlines()[0]!r}: {body[:300]!r}")
        return json.loads(body)
