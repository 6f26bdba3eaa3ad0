"""End open streams when the token or account that opened them ends, in every process that serves one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

import structlog

from corral.kernel.clock import Clock
from corral.kernel.errors import CorralError, Unauthenticated
from corral.service.actor import Actor
from corral.store import Store

LOOK_SECONDS: Final = 2.0
"""Most seconds that a stream stays open after its token expired or another process revoked it."""

log = structlog.get_logger()


class OpenStreams:
    """The open streams, by the token that opened each."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._open: dict[str, set[asyncio.Timeout]] = {}
        self._task: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def held(self, actor: Actor, seconds: float | None = None) -> AsyncIterator[None]:
        """Hold a stream open inside a `with` block.

        Raises Unauthenticated, at whatever the block awaits, once the token or the account has ended, or after `seconds`.
        """
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                self._open.setdefault(actor.token_id, set()).add(limit)
                self._watch()
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            message = "The sign-in or the account that opened this has ended; sign in again with `corral login`."
            raise Unauthenticated("signed-out", message) from None
        finally:
            of_token = self._open.get(actor.token_id, set())
            of_token.discard(limit)
            if not of_token:
                self._open.pop(actor.token_id, None)

    async def look(self) -> None:
        """End the streams whose token is no longer valid; while the store fails, none is ended."""
        asked = tuple(self._open)
        if not asked:
            return
        try:
            good = await self._store.good_tokens(asked, self._clock.now())
        except CorralError as error:
            log.warning("open streams not checked", code=error.code)
            return
        now = asyncio.get_running_loop().time()
        for token in set(asked) - good:
            for limit in self._open.get(token, ()):
                if (when := limit.when()) is None or when > now:
                    limit.reschedule(now)

    def _watch(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look_again(), name="open-streams")

    async def _look_again(self) -> None:
        while self._open:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def close(self) -> None:
        """Stop the watch; the streams end with their connections."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
