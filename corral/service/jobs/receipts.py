"""The receipts and ledgers of preemptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from corral.kernel.errors import NotFound
from corral.model import messages as wording
from corral.model.receipts import LedgerView, Receipt, ReceiptView, ledger_view, receipt_view
from corral.model.records import (
    Page,
)
from corral.model.store_writes import JobRecord
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context


class Receipts:
    """Receipts and ledgers."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock

    async def page(
        self, actor: Actor, *, queue: str = "", since: float | None = None, limit: int = 100, after: str = ""
    ) -> Page[ReceiptView]:
        """One page of the receipts that a queue gave or caused, or of all receipts, the latest first."""
        await self._context.check(actor, "job.list", Resource("job"))
        return await self._page(limit, after, queue=queue, since=since)

    async def of_job(self, actor: Actor, ref: str, *, limit: int = 100, after: str = "") -> Page[ReceiptView]:
        """One page of a job's receipts, the latest first."""
        record, _ = await self._context.job_for(actor, ref, "job.read")
        return await self._page(limit, after, job=record.id)

    async def ledger(self, actor: Actor, queue: str) -> LedgerView:
        """What a queue has lent to and borrowed from others.

        Raises NotFound.
        """
        await self._context.check(actor, "queue.read", Resource("queue", queue))
        entries = await self._store.ledger(queue)
        known = {each.name for each in await self._store.queues()} | {"default"}
        if not entries and queue not in known:
            raise NotFound("queue-not-found", f"There is no queue {queue[:100]}; they are {', '.join(sorted(known))}.")
        return ledger_view(queue, entries, self._clock.now())

    async def latest(self, record: JobRecord, limit: int) -> tuple[ReceiptView, ...]:
        """The latest receipts of a job."""
        found = await self._store.receipts(job=record.id, limit=limit)
        return await self._views(found.items)

    async def _page(self, limit: int, after: str, **wanted: Any) -> Page[ReceiptView]:
        page = await self._store.receipts(limit=limit, after_cursor=after, **wanted)
        return Page(list(await self._views(page.items)), page.next)

    async def _views(self, receipts: Sequence[Receipt]) -> tuple[ReceiptView, ...]:
        """Receipts as people read them; ids of jobs in stored messages are replaced by names."""
        ids = wording.jobs_named(*(receipt.message for receipt in receipts))
        names, now = await self._store.names_of_jobs(ids) if ids else {}, self._clock.now()
        shown = (receipt_view(receipt, now) for receipt in receipts)
        return tuple(msgspec.structs.replace(each, message=wording.by_name(each.message, names.get)) for each in shown)
