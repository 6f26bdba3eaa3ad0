"""Why: what an engine does by itself is tested without a cluster, on something that answers as an empty one does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from corral.engines.kubernetes.api.resources import Call


class EmptyCluster:
    """A cluster with nothing in it, where nothing happens; it stands where the transport would."""

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
