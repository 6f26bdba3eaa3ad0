"""Streams that a caller holds open end with the caller's token or account, in every process that serves one."""

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
"""How long a token that another process revoked, or that expired, keeps a stream open."""

log = structlog.get_logger()


class OpenStreams:
    """The streams that are open, by the token that opened each."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._open: dict[str, set[asyncio.Timeout]] = {}
        self._task: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def held(self, actor: Actor) -> AsyncIterator[None]:
        """Hold a stream open inside.

        Raises Unauthenticated, in the middle of whatever is waited for, once the token or the account has ended.
        """
        limit = asyncio.timeout(None)
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
        """End the streams whose token is good no more, whoever ended it; an outage of the store ends none."""
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
                if limit.when() is None:
                    limit.reschedule(now)

    def _watch(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look_again(), name="open-streams")

    async def _look_again(self) -> None:
        while self._open:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def close(self) -> None:
        """End the watch; the streams end with their connections."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
