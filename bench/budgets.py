"""What budgets cost a submission: a store with 20,000 attempts of this month, without budgets and with twenty.

Each of ten users and ten queues has a budget of a month, and a job counts for two of them. Once in ten seconds a submission
sums what was used of them, in 2,000 attempts each.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from corral.kernel.clock import VirtualClock
from corral.kernel.ids import attempt_id, job_id
from corral.model.accounts import AuditWrite, QueueRecord
from corral.model.budgets import Budget
from corral.model.records import JobSummary, rfc3339
from corral.model.runs import JobRun
from corral.model.store_writes import AttemptWrite, ControlBatch, Holder, JobWrite, NewJob
from corral.store import Store, open_store

_NOW: Final = datetime(2026, 11, 28, tzinfo=UTC).timestamp()
_ATTEMPTS: Final = 20_000
_NAMES: Final = tuple(range(10))
_AT_ONCE: Final = 1_000
_SUBMISSIONS: Final = 100
_LINE: Final = AuditWrite(_NOW, "root", "budget.change", "budget:bench", "administrator", True, {})


def measure() -> dict[str, float]:
    """Milliseconds of processor time of a submission: without budgets, with twenty, and where it sums what was used."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measured(Path(folder)))


async def _measured(folder: Path) -> dict[str, float]:
    store = await open_store(f"sqlite:///{folder / 'corral.db'}", clock=VirtualClock(_NOW))
    try:
        await _fill(store)
        found = {"none": await _each(store, 0)}
        await _allow(store, "month")
        used = {each.budget.key: each.used for each in await store.standings(_NOW)}
        return found | {"twenty": await _each(store, 1, used), "summed": await _each(store, 2)}
    finally:
        await store.close()


async def _fill(store: Store) -> None:
    lease = await store.lead(Holder("bench", "bench", os.getpid(), "0"))
    if lease is None:
        raise RuntimeError("the new store has a leader already")
    await store.put_queues([QueueRecord(f"q{name}") for name in _NAMES])
    for begin in range(0, _ATTEMPTS, _AT_ONCE):
        jobs = [
            _job(number, _NOW - 27 * 86_400 * (1 - number / _ATTEMPTS)) for number in range(begin, begin + _AT_ONCE)
        ]
        cursor = max(one.seq for one in await store.submit_all(jobs))
        ended = tuple(JobWrite(job.id, JobRun(job.id), "succeeded", job.summary, live=False) for job in jobs)
        held = tuple(
            AttemptWrite(
                attempt_id(job.id, 0, "worker", 0, 0), node="local/n", started_at=job.created_at,
                ended_at=job.created_at + 3600.0, code=0, device_millis=1000,
            )
            for job in jobs
        )  # fmt: skip
        await store.commit(ControlBatch(lease.epoch, cursor=cursor, jobs=ended, attempts=held))


async def _allow(store: Store, window: str) -> None:
    for name in _NAMES:
        for kind, of in (("queue", f"q{name}"), ("user", f"user{name}")):
            await store.put_budget(Budget(kind, of, window, 1e6, 0.8, _NOW, "root"), _LINE)


async def _each(store: Store, turn: int, used: Mapping[tuple[str, str, str], float] | None = None) -> float:
    """Milliseconds of processor time of a submission with the reading of budgets before it, as the service does both.

    `used` is what was summed within ten seconds.
    """
    begun = time.process_time()
    for number in range(_SUBMISSIONS):
        job = _job(_ATTEMPTS + turn * _SUBMISSIONS + number, _NOW)
        budgets = await store.standings(_NOW, queue=job.queue, user=job.user, used=used)
        await store.submit_all([job], budgets=budgets)
    return (time.process_time() - begun) / _SUBMISSIONS * 1000


def _job(number: int, at: float) -> NewJob:
    identity, name, user, queue = (
        job_id(int(at * 1000), number),
        f"job-{number}",
        f"user{number % 10}",
        f"q{number % 10}",
    )
    summary = JobSummary(identity, name, user, queue, 10, "shell", "waiting", rfc3339(at), devices=1)
    text = '{"spec":{"maxDurationSeconds":3600}}'
    return NewJob(identity, user, name, queue, 10, text, summary, at)
