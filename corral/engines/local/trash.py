"""Empty the trash folder in a thread, since a task may leave a million files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final

from corral.engines.local.attempt_folder import empty

_SWEEP_SECONDS: Final = 0.5
"""Seconds to wait for further discarded folders before emptying."""


class Sweeper:
    """Empties a folder. `spawn` starts a task that ends with the engine."""

    def __init__(self, folder: str, spawn: Callable[[Coroutine[None, None, None]], None]) -> None:
        self._folder = folder
        self._spawn = spawn
        self._waiting = False

    def sweep(self) -> None:
        """Empty the folder soon, with everything discarded until then."""
        if not self._waiting:
            self._waiting = True
            self._spawn(self._empty())

    async def _empty(self) -> None:
        await asyncio.sleep(_SWEEP_SECONDS)
        self._waiting = False
        await asyncio.to_thread(empty, self._folder)
