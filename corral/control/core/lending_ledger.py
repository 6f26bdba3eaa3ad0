"""Sum up the device-seconds that queues lend each other, across restarts.

Between two changes a sum grows linearly: an entry has the number of devices lent and since when. So it is written only
on changes, and with a heartbeat that bounds the loss when the process is killed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from corral.control.core.pending_writes import PendingWrites
from corral.model.receipts import LedgerEntry

Loans = Mapping[tuple[str, str], int]
"""Thousandths of devices lent now, by lender and borrower; the lender "" is capacity that no queue owns."""
HEARTBEAT_SECONDS: Final = 5.0
"""Seconds between heartbeats. Of a loan that ended while no control ran, at most this much is missing."""


class Ledger:
    """The running sums; `pending` receives changed entries."""

    def __init__(self, found: Sequence[LedgerEntry] = ()) -> None:
        self._entries = {(entry.lender, entry.borrower): entry for entry in found}
        self._resumed = not found
        self._beat = 0.0

    def fork(self) -> Ledger:
        """An independent copy."""
        twin = Ledger()
        twin._entries, twin._resumed, twin._beat = dict(self._entries), self._resumed, self._beat
        return twin

    def fold(self, pending: PendingWrites, loans: Loans, now: float) -> None:
        """Apply the current loans.

        The first call after a start does not know when a missing loan ended, so it counts until the last heartbeat.
        """
        changed = [
            pair
            for pair in sorted({*self._entries, *loans})
            if loans.get(pair, 0) != self._lent(pair) or not self._resumed
        ]
        for pair in changed:
            entry = self._entries.get(pair) or LedgerEntry(*pair, 0.0, 0, now, now)
            lent = entry.device_millis if self._resumed else min(entry.device_millis, loans.get(pair, 0))
            total = msgspec.structs.replace(entry, device_millis=lent).until(now)
            now_lent = loans.get(pair, 0)
            self._put(pending, msgspec.structs.replace(entry, device_seconds=total, device_millis=now_lent, at=now))
        self._resumed = True
        self._keep(pending, now)

    def _keep(self, pending: PendingWrites, now: float) -> None:
        """Write the sums up to now, once per heartbeat."""
        if now - self._beat < HEARTBEAT_SECONDS:
            return
        self._beat = now
        for entry in list(self._entries.values()):
            if entry.device_millis and entry.at < now:
                self._put(pending, msgspec.structs.replace(entry, device_seconds=entry.until(now), at=now))

    @property
    def running(self) -> bool:
        """Whether anything is lent now."""
        return bool(self._entries) and any(entry.device_millis for entry in self._entries.values())

    def _lent(self, pair: tuple[str, str]) -> int:
        entry = self._entries.get(pair)
        return entry.device_millis if entry else 0

    def _put(self, pending: PendingWrites, entry: LedgerEntry) -> None:
        self._entries[entry.lender, entry.borrower] = entry
        pending.ledger[entry.lender, entry.borrower] = entry
