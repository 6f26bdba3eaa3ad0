"""Read from the store what a core is built from, and what the requests of users are folded with."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from corral.control.core import Core, IntentsRead, Recovered
from corral.control.core.configuration import Configured
from corral.control.core.intents import named_jobs, needed_jobs
from corral.control.core.store import CoreStore
from corral.kernel.ids import JobId
from corral.model.facts import GUARANTEE_LOST
from corral.model.store_writes import LiveJob
from corral.scheduler import GuaranteeLost

ENDED_JOBS: Final = 2000
"""How many ended jobs tell a policy what service jobs attain: as many as its distribution weighs before it halves them."""


async def read_recovered(store: CoreStore, configured: Configured, cursor: int) -> Recovered:
    """All but the machines; raises Unavailable when the store does not answer."""
    receipts, ledger = await store.open_receipts(), await store.ledger()
    usage, user_usage = await store.usage(), await store.user_usage()
    ended_service = await store.ended_service(ENDED_JOBS)
    cordons, jobs = await store.cordons(), await store.load_live()
    needed = await store.load_jobs(needed_jobs(jobs, ()))
    return Recovered(
        configured=configured,
        cursor=cursor,
        jobs=jobs,
        needed={each.id: each for each in needed},
        groups=await _groups(store, [*jobs, *needed]),
        cordons=cordons,
        receipts=receipts,
        ledger=ledger,
        usage=usage,
        user_usage=user_usage,
        ended_service=ended_service,
    )


async def read_intents(store: CoreStore, core: Core, limit: int) -> IntentsRead:
    """The next requests for `core`, with every job that folding them needs and that it has not in memory."""
    intents = await store.intents(core.intents.cursor, limit)
    if not intents:
        return IntentsRead(())
    named = await store.load_jobs(named_jobs(intents, core.world.jobs))
    needed = await store.load_jobs(needed_jobs(named, core.world.jobs))
    jobs = [*named, *needed]
    return IntentsRead(intents, {each.id: each for each in jobs}, await _groups(store, jobs))


async def read_losses(store: CoreStore, jobs: Iterable[JobId]) -> list[GuaranteeLost]:
    """When, and to whom, these jobs lost their guarantee, as far as events tell."""
    losses = []
    for job in jobs:
        told = await store.events_of(job, kinds=(GUARANTEE_LOST,))
        if told:
            at = datetime.fromisoformat(told[0].at).timestamp()
            losses.append(GuaranteeLost(job, str(told[0].data.get("preemptor", "")), at))
    return losses


async def _groups(store: CoreStore, jobs: Iterable[LiveJob]) -> dict[str, tuple[str, ...]]:
    """The groups of the users of jobs, for the limits by group."""
    groups = {}
    for name in {job.user for job in jobs}:
        user = await store.user(name)
        groups[name] = user.groups if user is not None else ()
    return groups
