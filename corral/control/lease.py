"""Keep this control's leadership lease, which lasts three seconds; without it control stops."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable

import structlog

from corral.kernel.errors import Conflict, CorralError, Unavailable
from corral.model.store_writes import Holder, Lease
from corral.runtime.process import Identity, identity_of
from corral.store import LeadershipLost, Store
from corral.store.leadership import Renewal

log = structlog.get_logger()

LEASE_SECONDS = 3.0
_RENEW_SECONDS = 1.0
_ASK_SECONDS = 0.25
_TURN_SECONDS = 0.5
"""Seconds between two signs of life of the event loop."""
_HUNG_SECONDS = 20.0
"""Seconds without a turn of the event loop after which the lease is not renewed, so that another control leads."""
_JOIN_SECONDS = 5.0


def steady() -> float:
    """Seconds of a clock that nobody sets and that goes on while the machine is suspended.

    Where there is no such clock (only Linux has it), the monotonic clock.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def holder(address: str = "") -> Holder:
    """This process, as the leadership row names it."""
    me = identity_of(os.getpid())
    return Holder(socket.gethostname(), me.boot_id, me.pid, str(me.start_time), address)


def provably_gone(other: Holder) -> bool:
    """Whether the holder was a process of this host that no longer runs."""
    if other.host != socket.gethostname():
        return False
    try:
        identity = Identity(other.boot_id, other.pid, int(other.start_time))
    except ValueError:
        return False
    return not identity.is_alive()


class Leadership:
    """The lease of this control: acquired, renewed once a second by a thread, released at a clean end."""

    def __init__(
        self,
        store: Store,
        address: str = "",
        steady: Callable[[], float] = steady,
        settle: Callable[[Holder], Awaitable[None]] | None = None,
    ) -> None:
        """`steady` is a clock that nobody sets and that counts suspension. The store's calls end with the lease.

        `settle` raises Conflict for a process that must not lead; it is called at the start, and again with the lease.
        """
        self._store, self._steady, self._settle = store, steady, settle
        store.limits.lease_left = self.left
        store.limits.extended = self._extended
        self._holder = holder(address)
        self._until = 0.0
        self._turned = 0.0
        self.lease: Lease | None = None
        self.decided = asyncio.Event()
        """Set once it is known whether this control leads or stands by."""

    @property
    def epoch(self) -> int:
        """The epoch that guards every write.

        Raises LeadershipLost when there is no lease.
        """
        if self.lease is None:
            raise LeadershipLost
        return self.lease.epoch

    def left(self) -> float:
        """Seconds that this control may still act without a renewal; time in suspension counts.

        While its own transaction holds SQLite's lock, no other process can take the lead, so the full lease is
        returned.
        """
        if self.lease is None:
            return 0.0
        return LEASE_SECONDS if self._store.limits.held_seconds else max(0.0, self._until - self._steady())

    def _extended(self, ago: float) -> None:
        """Note that a long transaction renewed the lease `ago` seconds ago."""
        self._until = max(self._until, self._steady() - ago + LEASE_SECONDS)

    async def acquire(self) -> Lease:
        """Wait until this control leads.

        Raises Conflict when it must not.
        """
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
            if self.lease is not None and await self._settled():
                self._until = begun + LEASE_SECONDS
                log.info("leading", epoch=self.lease.epoch)
                return self.lease
            await asyncio.sleep(_ASK_SECONDS)

    async def settle(self) -> None:
        """Check whether this control may lead.

        Raises Conflict when it may not, Unavailable when the store does not answer.
        """
        if self._settle is not None:
            await self._settle(self._holder)

    async def _settled(self) -> bool:
        """Check again with the lease; returns whether this control may act, and drops the lease otherwise.

        Raises Conflict when it must never lead.
        """
        try:
            await self.settle()
        except Unavailable as error:
            log.warning("store does not answer", code=error.code, message=error.message)
        except Conflict:
            await self.release()
            raise
        else:
            return True
        self.lease = None
        return False

    async def keep(self) -> None:
        """Renew until cancelled, in a thread with its own connection, so that a busy loop delays no renewal.

        Raises LeadershipLost when another control has begun an epoch.
        """
        ending, lost = threading.Event(), threading.Event()
        self._turned = self._steady()
        renewal = self._store.renewal()
        thread = threading.Thread(target=self._renew_until, args=(renewal, ending, lost), name="lease", daemon=True)
        thread.start()
        try:
            while not lost.is_set():
                await asyncio.sleep(_TURN_SECONDS)
                self._turned = self._steady()
                renewal.cut()
        finally:
            ending.set()
            await asyncio.to_thread(thread.join, _JOIN_SECONDS)
        raise LeadershipLost

    def _renew_until(self, renewal: Renewal, ending: threading.Event, lost: threading.Event) -> None:
        """The thread: renew once a second while the event loop turns; sets `lost` when another control leads."""
        try:
            while not ending.wait(_RENEW_SECONDS):
                if self._steady() - self._turned > _HUNG_SECONDS:
                    log.warning("this control hangs; its lease is not renewed")
                    continue
                try:
                    self._renew_with(renewal)
                except LeadershipLost:
                    return
                except CorralError as error:
                    log.warning("lease could not be renewed", code=error.code, message=error.message)
        finally:
            lost.set()
            renewal.close()

    def _renew_with(self, renewal: Renewal) -> None:
        lease, begun = self.lease, self._steady()
        if lease is None:
            raise LeadershipLost
        try:
            renewal.renew(lease)
        except LeadershipLost:
            self.lease = None
            raise
        self._until = max(self._until, begun + LEASE_SECONDS)

    async def renew(self) -> Lease:
        """Renew the lease; the returned lease has the stored cursor.

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
        """Give up the lease, so that the next control can lead at once."""
        if self.lease is not None:
            lease, self.lease = self.lease, None
            await self._store.release(lease)
