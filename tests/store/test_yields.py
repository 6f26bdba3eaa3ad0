"""Receipts, ledgers and cordons outlive every process, and are removed with their job."""

from __future__ import annotations

import msgspec

from corral.kernel.ids import JobId, TaskKey
from corral.model.accounts import AuditWrite
from corral.model.cordons import CORDONS_CHANGED, Cordon, Drain
from corral.model.queues import QueueUsage, UserUsage
from corral.model.receipts import LedgerEntry, Receipt
from corral.model.runs import Served
from corral.model.store_writes import ControlBatch
from corral.store import Store
from tests.store.makers import ME, START, ended, new_job


def receipt(job: str, number: int, at: float, **fields: object) -> Receipt:
    base = Receipt(JobId(job), number, "name", "ann", "research", 0, "priority", "prod wants it", at, 4)
    return msgspec.structs.replace(base, **fields)  # type: ignore[arg-type]


async def epoch(store: Store) -> int:
    lease = await store.lead(ME)
    assert lease is not None
    return lease.epoch


async def test_receipts_are_listed_latest_first_in_pages_by_queue_job_and_time(store: Store) -> None:
    now = await epoch(store)
    made = tuple(receipt(f"job{number % 3}", number, START + number) for number in range(1, 8))
    other = receipt("other", 1, START + 50, queue="default", by_queue="research", tasks=(TaskKey("a", 3),))
    await store.commit(ControlBatch(now, receipts=(*made, other)))
    found, after = [], ""
    while True:
        page = await store.receipts(limit=3, after_cursor=after)
        found += page.items
        after = page.next or ""
        if not after:
            break
    assert found == [other, *reversed(made)]
    assert (await store.receipts(job="job1")).items == [each for each in reversed(made) if each.job == "job1"]
    assert (await store.receipts(queue="default")).items == [other]
    assert len((await store.receipts(queue="research")).items) == 8, "given and caused"
    assert (await store.receipts(since=START + 7)).items == [other, made[-1]]


async def test_a_closed_receipt_replaces_the_open_one(store: Store) -> None:
    now = await epoch(store)
    first, second = receipt("a", 1, START), receipt("b", 1, START)
    await store.commit(ControlBatch(now, receipts=(first, second)))
    assert await store.open_receipts() == [first, second]
    back = msgspec.structs.replace(first, returned_at=START + 9)
    await store.commit(ControlBatch(now, receipts=(first, back)))
    assert await store.open_receipts() == [second]
    assert (await store.receipts(job="a")).items == [back]


async def test_receipts_go_with_their_job(store: Store) -> None:
    now = await epoch(store)
    job = new_job()
    await store.submit(job)
    await store.commit(ControlBatch(now, receipts=(receipt(job.id, 1, START),)))
    await store.commit(ControlBatch(now, removed_jobs=(job.id,)))
    assert (await store.receipts()).items == []


async def test_the_ledger_keeps_the_last_word_on_two_queues(store: Store) -> None:
    now = await epoch(store)
    first = LedgerEntry("a", "b", 10.0, 2, START, START + 5)
    await store.commit(ControlBatch(now, ledger=(first, LedgerEntry("c", "a", 1.0, 0, START, START))))
    later = msgspec.structs.replace(first, device_seconds=30.0)
    await store.commit(ControlBatch(now, ledger=(later,)))
    assert await store.ledger("b") == [later]
    assert len(await store.ledger("a")) == 2 and len(await store.ledger()) == 2


async def test_a_cordon_is_stored_with_its_intent_and_its_line_in_the_audit_log(store: Store) -> None:
    cordon = Cordon("local/n1", "root", "new cables", START, Drain.NOW, 5.0)
    line = AuditWrite(START, "root", "node.drain", "node:local/n1", "administrator", True, {})
    await store.put_cordon(cordon, audit=line)
    assert await store.cordons() == {"local/n1": cordon}
    (intent,) = await store.intents(0)
    assert (intent.kind, intent.job, intent.data["drain"]) == (CORDONS_CHANGED, "", "now")
    assert [each.action for each in (await store.audit()).items] == ["node.drain"]
    assert await store.remove_cordon("local/n1", actor="root", at=START)
    assert not await store.remove_cordon("local/n1", actor="root", at=START)
    assert await store.cordons() == {} and len(await store.intents(0)) == 2


async def test_past_use_is_replaced_and_forgotten_by_queue(store: Store) -> None:
    now = await epoch(store)
    a, b = QueueUsage("a", START + 1 / 3, {"devices": 2000 / 3, "cpu": 0.1}), QueueUsage("b", START)
    await store.commit(ControlBatch(now, usage=(a, b)))
    assert await store.usage() == [a, b], "to the last bit"
    newer = QueueUsage("a", START + 9, {"devices": 1.5})
    await store.commit(ControlBatch(now, usage=(newer,), usage_forgotten=("b",)))
    assert await store.usage() == [newer]


async def test_past_use_of_users_is_replaced_and_forgotten_by_queue_and_user(store: Store) -> None:
    now = await epoch(store)
    ada, bob = UserUsage("a", "ada", START + 1 / 3, {"devices": 2000 / 3}), UserUsage("a", "bob", START)
    other = UserUsage("b", "ada", START, {"cpu": 0.1})
    await store.commit(ControlBatch(now, user_usage=(ada, bob, other)))
    assert await store.user_usage() == [ada, bob, other], "to the last bit"
    newer = UserUsage("a", "ada", START + 9, {"devices": 1.5})
    await store.commit(ControlBatch(now, user_usage=(newer,), user_usage_forgotten=(("a", "bob"),)))
    assert await store.user_usage() == [newer, other]


async def test_the_service_of_ended_jobs_is_told_in_the_order_of_their_ends(store: Store) -> None:
    now = await epoch(store)
    jobs = [new_job(name) for name in ("first", "second", "idle", "live")]
    for job in jobs:
        await store.submit(job)
    served = [Served(5.0, 40.0, 1, START), Served(7.0, 1 / 3, 2, START), Served(0.0, 0.0, 0, START)]
    ends = [ended(job, at=START + 9 - at) for at, job in enumerate(jobs[:3])]
    writes = [
        msgspec.structs.replace(write, run=msgspec.structs.replace(write.run, served=what))
        for write, what in zip(ends, served, strict=True)
    ]
    await store.commit(ControlBatch(now, jobs=tuple(writes)))
    assert await store.ended_service(10) == [1 / 3, 40.0], "the one that never ran and the one that lives do not count"
    assert await store.ended_service(1) == [40.0]
