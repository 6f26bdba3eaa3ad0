"""Why: only one control may decide; it holds one row of the store for three seconds at a time, or it stops."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable

import structlog

from corral.kernel.errors import Unavailable
from corral.model.writes import Holder, Lease
from corral.runtime.process import Identity, identity_of
from corral.store import LeadershipLost, Store

log = structlog.get_logger()

LEASE_SECONDS = 3.0
_RENEW_SECONDS = 1.0
_ASK_SECONDS = 0.25


def steady() -> float:
    """Seconds that go on while the machine is suspended, when the store's go on, too; where there is no such clock
    (it is Linux's), those that at least nobody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def holder(address: str = "") -> Holder:
    """This process, as the leadership row names it."""
    me = identity_of(os.getpid())
    return Holder(socket.gethostname(), me.boot_id, me.pid, str(me.start_time), address)


def provably_gone(other: Holder) -> bool:
    """Whether the holder was a process of this host that does not run any more."""
    if other.host != socket.gethostname():
        return False
    try:
        identity = Identity(other.boot_id, other.pid, int(other.start_time))
    except ValueError:
        return False
    return not identity.is_alive()


class Leadership:
    """The lease of this control: asked for, renewed once a second, released at a clean end."""

    def __init__(self, store: Store, address: str = "", steady: Callable[[], float] = steady) -> None:
        """`steady` tells seconds that nobody sets, a suspended machine's included."""
        self._store, self._steady = store, steady
        self._holder = holder(address)
        self._until = 0.0
        self.lease: Lease | None = None
        self.decided = asyncio.Event()
        """Set once it is known whether this control leads or stands by while another one does."""

    @property
    def epoch(self) -> int:
        """The epoch that every write is guarded by.

        Raises LeadershipLost when there is no lease.
        """
        if self.lease is None:
            raise LeadershipLost
        return self.lease.epoch

    def left(self) -> float:
        """Seconds that this control may still act without being told that it leads; a machine's sleep counts."""
        return max(0.0, self._until - self._steady()) if self.lease is not None else 0.0

    async def acquire(self) -> Lease:
        """Wait until this control leads."""
        while True:
            begun = self._steady()
            try:
                self.lease = await self._store.lead(self._holder, ttl=LEASE_SECONDS, takeover=provably_gone)
            except Unavailable as error:
                log.warning("store does not answer", code=error.code, message=error.message)
            else:
                if self.lease is None and not self.decided.is_set():
                    log.info("another control leads; waiting for its lease to end")
                self.decided.set()
            if self.lease is not None:
                self._until = begun + LEASE_SECONDS
                log.info("leading", epoch=self.lease.epoch)
                return self.lease
            await asyncio.sleep(_ASK_SECONDS)

    async def keep(self) -> None:
        """Renew until cancelled.

        Raises LeadershipLost when another control has begun an epoch.
        """
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            try:
                await self.renew()
            except LeadershipLost:
                raise
            except Unavailable as error:
                log.warning("lease could not be renewed", code=error.code, message=error.message)

    async def renew(self) -> Lease:
        """Begin the lease's time anew; it tells the cursor as stored.

        Raises LeadershipLost when another control has begun an epoch, Unavailable when the store does not answer.
        """
        if self.lease is None:
            raise LeadershipLost
        begun = self._steady()
        try:
            self.lease = await self._store.renew(self.lease)
        except LeadershipLost:
            self.lease = None
            raise
        self._until = begun + LEASE_SECONDS
        return self.lease

    async def release(self) -> None:
        """Let the next control lead at once."""
        if self.lease is not None:
            lease, self.lease = self.lease, None
            await self._store.release(lease)
