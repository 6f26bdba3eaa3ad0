"""A fake empty cluster, for tests of an engine without a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from corral.engines.kubernetes.api.resources import Call


class EmptyCluster:
    """A cluster without objects or events, in place of the transport."""

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def stays_sound(self) -> None:
        await asyncio.Event().wait()

    async def ask(self, call: Call, *, body: bytes | None = None, **_: Any) -> bytes:
        return b'{"metadata": {"resourceVersion": "1"}, "items": []}'

    @asynccontextmanager
    async def stream(self, call: Call, *, idle: float, **_: Any) -> AsyncIterator[AsyncIterator[bytes]]:
        async def nothing() -> AsyncIterator[bytes]:
            await asyncio.sleep(1e6)
            yield b""

        yield nothing()
