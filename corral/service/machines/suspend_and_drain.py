"""Suspend and resume jobs, cordon and drain nodes, and show the receipts and ledgers of preemptions."""

from __future__ import annotations

from typing import Any, Final

from corral.kernel.errors import Conflict, InvalidInput, NotFound
from corral.model.cordons import Cordon, CordonView, Drain, cordon_view
from corral.model.receipts import LedgerView, ReceiptView, ledger_view
from corral.model.records import Page
from corral.model.store_writes import IntentKind, JobRecord
from corral.model.views import JobDetail
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.jobs.jobs import Jobs

_WHY: Final = 500
_LONGEST_GRACE: Final = 86_400.0


class Yielding(Jobs):
    """Suspension, receipts, ledgers, cordons and drains."""

    async def suspend(self, actor: Actor, ref: str) -> JobDetail:
        """Stop the job with its checkpoint signal, and hold it until it is resumed.

        Raises Conflict `job-over`, `job-suspended`.
        """
        record, decision = await self.job_for(actor, ref, "job.suspend")
        self._refuse_ended(record)
        if record.run.suspended:
            raise Conflict("job-suspended", f"Job {record.name} is suspended already.")
        return await self._intend(actor, record, "job.suspend", IntentKind.SUSPEND, {}, decision)

    async def resume(self, actor: Actor, ref: str) -> JobDetail:
        """Resume a suspended job; it waits in its old place.

        Raises Conflict `job-over`.
        """
        record, decision = await self.job_for(actor, ref, "job.resume")
        self._refuse_ended(record)
        return await self._intend(actor, record, "job.resume", IntentKind.RESUME, {}, decision)

    def _refuse_ended(self, record: JobRecord) -> None:
        if not record.live:
            raise Conflict("job-over", f"Job {record.name} is over already ({record.phase}).")

    async def job_receipts(self, actor: Actor, ref: str, *, limit: int = 100, after: str = "") -> Page[ReceiptView]:
        """One page of a job's receipts, the latest first."""
        record, _ = await self.job_for(actor, ref, "job.read")
        return await self._receipts(limit, after, job=record.id)

    async def receipts(
        self, actor: Actor, *, queue: str = "", since: float | None = None, limit: int = 100, after: str = ""
    ) -> Page[ReceiptView]:
        """One page of the receipts that a queue gave or caused, or of all receipts, the latest first."""
        await self.check(actor, "job.list", Resource("job"))
        return await self._receipts(limit, after, queue=queue, since=since)

    async def _receipts(self, limit: int, after: str, **wanted: Any) -> Page[ReceiptView]:
        page = await self.store.receipts(limit=limit, after_cursor=after, **wanted)
        return Page(list(await self._receipt_views(page.items)), page.next)

    async def ledger(self, actor: Actor, queue: str) -> LedgerView:
        """What a queue has lent to and borrowed from others.

        Raises NotFound.
        """
        await self.check(actor, "queue.read", Resource("queue", queue))
        entries = await self.store.ledger(queue)
        known = {each.name for each in await self.store.queues()} | {"default"}
        if not entries and queue not in known:
            raise NotFound("queue-not-found", f"There is no queue {queue[:100]}; they are {', '.join(sorted(known))}.")
        return ledger_view(queue, entries, self.clock.now())

    async def cordon(self, actor: Actor, node: str, *, why: str = "") -> CordonView:
        """Close a node to new tasks; a drain of the node ends."""
        return await self._close(actor, "node.cordon", node, why, Drain.NONE, None)

    async def drain(
        self, actor: Actor, node: str, *, why: str = "", grace_seconds: float | None = None, after_jobs: bool = False
    ) -> CordonView:
        """Close a node to new tasks, and preempt those on it; with `after_jobs` let them end by themselves."""
        if grace_seconds is not None and not 0 <= grace_seconds <= _LONGEST_GRACE:
            raise InvalidInput("bad-grace", f"The grace is from 0 to {_LONGEST_GRACE:.0f} seconds.")
        how = Drain.AFTER_JOBS if after_jobs else Drain.NOW
        return await self._close(actor, "node.drain", node, why, how, grace_seconds)

    async def _close(
        self, actor: Actor, action: str, node: str, why: str, drain: Drain, grace: float | None
    ) -> CordonView:
        resource = Resource("node", node)
        decision = await self.check(actor, action, resource)
        if len(why) > _WHY:
            raise InvalidInput("why-too-long", f"The reason is longer than {_WHY} characters.")
        if await self.store.node(node) is None:
            raise _no_node(node)
        cordon = Cordon(node, actor.user, _one_line(why), self.clock.now(), drain, grace)
        line = self.line(actor, action, resource, decision, why=cordon.why, drain=str(drain))
        await self.store.put_cordon(cordon, audit=line)
        return cordon_view(cordon)

    async def uncordon(self, actor: Actor, node: str) -> None:
        """Open a node to new tasks again.

        Raises Conflict `node-not-cordoned`, NotFound.
        """
        resource = Resource("node", node)
        decision = await self.check(actor, "node.uncordon", resource)
        line = self.line(actor, "node.uncordon", resource, decision)
        if not await self.store.remove_cordon(node, actor=actor.user, at=self.clock.now(), audit=line):
            if await self.store.node(node) is None:
                raise _no_node(node)
            raise Conflict("node-not-cordoned", f"{node} is not cordoned.")


def _one_line(text: str) -> str:
    """The text on one line and without control characters, so that any terminal can show it."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _no_node(name: str) -> NotFound:
    return NotFound("node-not-found", f"There is no node {name[:100]}; `corral nodes` lists them.")
