"""Receipts for preempted jobs, and the ledger of devices lent between queues.

Times are seconds since 1970 in control, RFC 3339 in the API. Devices times seconds are *device-seconds*.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from corral.kernel.ids import JobId, TaskKey
from corral.kernel.units import DEVICE, devices
from corral.model.records import Record, one_of, rfc3339, rfc3339_or_none


class Receipt(msgspec.Struct, frozen=True):
    """One preemption of a job, or of some of its tasks; `number` counts them from 1."""

    job: JobId
    number: int
    name: str
    user: str
    queue: str
    job_attempt: int
    rule: str
    """`corral.model.plan.Rule`."""
    message: str
    at: float
    devices: int | float
    """The number of devices given up; fractions of devices count as fractions."""
    tasks: tuple[TaskKey, ...] = ()
    """The tasks of an elastic gang that left it; empty: the whole gang ended."""
    by_job: str = ""
    by_queue: str = ""
    by_user: str = ""
    cost_device_seconds: float = 0.0
    """Upper bound of the lost work: per task, since its start or its last checkpoint, whichever is later."""
    back_at: float | None = None
    """The expected return, estimated at the preemption; None: not known."""
    returned_at: float | None = None
    """When it ran again at its former size."""
    over: bool = False
    """Whether the job ended without coming back."""

    @property
    def id(self) -> str:
        """A unique id: the job's id and the number."""
        return f"{self.job}.{self.number}"


class LedgerEntry(msgspec.Struct, frozen=True):
    """Devices that one queue has lent to another since `since`; at `at` it was lending `device_millis` thousandths."""

    lender: str
    borrower: str
    device_seconds: float
    device_millis: int
    since: float
    at: float

    def until(self, now: float) -> float:
        """The device-seconds until `now`, if nothing has changed since `at`."""
        return self.device_seconds + self.device_millis / DEVICE * max(0.0, now - self.at)


class ReceiptView(Record, frozen=True):
    """One receipt; `state` is `away`, `returned` or `ended`, `awaySeconds` the time without its devices."""

    id: str
    job: str
    name: str
    user: str
    queue: str
    attempt: int
    rule: str
    message: str
    at: str
    state: Annotated[str, one_of("away", "returned", "ended")]
    devices: int | float
    tasks: tuple[str, ...] = ()
    by_job: str = ""
    by_queue: str = ""
    by_user: str = ""
    cost_device_seconds: float = 0.0
    back_at: str | None = None
    returned_at: str | None = None
    away_seconds: float | None = None
    """None if the job ended without coming back."""


class LedgerLine(Record, frozen=True):
    """Device-seconds lent to, or borrowed from, one other queue, and the devices lent or borrowed now."""

    queue: str
    device_seconds: float
    devices: int | float
    since: str


class LedgerView(Record, frozen=True):
    """Lending and borrowing of one queue, by the other queue."""

    queue: str
    at: str
    lent_device_seconds: float = 0.0
    borrowed_device_seconds: float = 0.0
    lent: tuple[LedgerLine, ...] = ()
    borrowed: tuple[LedgerLine, ...] = ()


def receipt_view(receipt: Receipt, now: float) -> ReceiptView:
    """Convert a receipt to the API's form."""
    away = None if receipt.over else (receipt.returned_at or now) - receipt.at
    return ReceiptView(
        id=receipt.id,
        job=receipt.job,
        name=receipt.name,
        user=receipt.user,
        queue=receipt.queue,
        attempt=receipt.job_attempt,
        rule=receipt.rule,
        message=receipt.message,
        at=rfc3339(receipt.at),
        state="returned" if receipt.returned_at is not None else "ended" if receipt.over else "away",
        devices=receipt.devices,
        tasks=tuple(str(task) for task in receipt.tasks),
        by_job=receipt.by_job,
        by_queue=receipt.by_queue,
        by_user=receipt.by_user,
        cost_device_seconds=round(receipt.cost_device_seconds, 3),
        back_at=rfc3339_or_none(receipt.back_at),
        returned_at=rfc3339_or_none(receipt.returned_at),
        away_seconds=None if away is None else round(max(0.0, away), 3),
    )


def ledger_view(queue: str, entries: list[LedgerEntry], now: float) -> LedgerView:
    """The ledger of one queue, from all entries that name it."""
    lent = tuple(_line(each.borrower, each, now) for each in entries if each.lender == queue)
    borrowed = tuple(_line(each.lender, each, now) for each in entries if each.borrower == queue)
    return LedgerView(
        queue,
        rfc3339(now),
        round(sum(line.device_seconds for line in lent), 3),
        round(sum(line.device_seconds for line in borrowed), 3),
        lent,
        borrowed,
    )


def _line(queue: str, entry: LedgerEntry, now: float) -> LedgerLine:
    return LedgerLine(queue, round(entry.until(now), 3), devices(entry.device_millis), rfc3339(entry.since))
