"""Why: what one queue lends another is a promise kept over time, so it is added up as it happens and survives restarts.

Between two changes the sum grows evenly: an entry says how many devices are lent since when, and needs no writing while
nothing changes, but for a heartbeat that bounds what a killed process can forget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from corral.control.core.draft import Draft
from corral.model.receipts import LedgerEntry

Loans = Mapping[tuple[str, str], int]
"""Thousandths of devices lent now, by lender and borrower; a lender "" is what no queue owns."""
HEARTBEAT_SECONDS: Final = 5.0
"""How much of a loan that ended while no control ran may be missing from the ledger."""


class Ledger:
    """The running sums; `draft` takes what has to be stored."""

    def __init__(self, found: Sequence[LedgerEntry] = ()) -> None:
        self._entries = {(entry.lender, entry.borrower): entry for entry in found}
        self._resumed = not found
        self._beat = 0.0

    def fork(self) -> Ledger:
        """An independent copy."""
        twin = Ledger()
        twin._entries, twin._resumed, twin._beat = dict(self._entries), self._resumed, self._beat
        return twin

    def fold(self, draft: Draft, loans: Loans, now: float) -> None:
        """These are the loans from now on.

        The first call after a start does not know when a loan that is gone ended: it counts until the last heartbeat.
        """
        changed = [
            pair for pair in {*self._entries, *loans} if loans.get(pair, 0) != self._lent(pair) or not self._resumed
        ]
        for pair in changed:
            entry = self._entries.get(pair) or LedgerEntry(*pair, 0.0, 0, now, now)
            lent = entry.device_millis if self._resumed else min(entry.device_millis, loans.get(pair, 0))
            total = msgspec.structs.replace(entry, device_millis=lent).until(now)
            now_lent = loans.get(pair, 0)
            self._put(draft, msgspec.structs.replace(entry, device_seconds=total, device_millis=now_lent, at=now))
        self._resumed = True
        self._keep(draft, now)

    def _keep(self, draft: Draft, now: float) -> None:
        """Write down how far the sums are known."""
        if now - self._beat < HEARTBEAT_SECONDS:
            return
        self._beat = now
        for entry in list(self._entries.values()):
            if entry.device_millis and entry.at < now:
                self._put(draft, msgspec.structs.replace(entry, device_seconds=entry.until(now), at=now))

    @property
    def running(self) -> bool:
        """Whether anything is lent now."""
        return any(entry.device_millis for entry in self._entries.values())

    def _lent(self, pair: tuple[str, str]) -> int:
        entry = self._entries.get(pair)
        return entry.device_millis if entry else 0

    def _put(self, draft: Draft, entry: LedgerEntry) -> None:
        self._entries[entry.lender, entry.borrower] = entry
        draft.ledger[entry.lender, entry.borrower] = entry
