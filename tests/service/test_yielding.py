"""Administrators close nodes, with an audit line; owners suspend jobs; everybody reads receipts."""

from __future__ import annotations

import msgspec
import pytest

from corral.kernel.clock import VirtualClock
from corral.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound
from corral.kernel.ids import JobId
from corral.model.cordons import CORDONS_CHANGED
from corral.model.receipts import LedgerEntry, Receipt
from corral.model.store_writes import ControlBatch, IntentKind
from corral.service.service import Service
from corral.store import Store
from tests.service.conftest import ANN, BOB, ROOT, START, job_text
from tests.service.test_jobs import FAILED, _run, _submit

pytestmark = pytest.mark.usefixtures("machines")


def receipt(job: JobId, number: int, **fields: object) -> Receipt:
    base = Receipt(job, number, "digits", "ann", "default", 0, "priority", "prod wants it", START, 4)
    return msgspec.structs.replace(base, **fields)  # type: ignore[arg-type]


async def test_a_cordon_is_shown_with_the_node_and_audited(service: Service, store: Store) -> None:
    view = await service.cordons.cordon(ROOT, "local/n1", why="  new\n\x1b\0cables ")
    assert (view.by, view.why, view.drain) == ("root", "new cables", "")
    first, second = (await service.nodes.page(ANN)).items
    assert first.cordon == view and first.ready and second.cordon is None
    assert (await service.nodes.get(ANN, "local/n1")).cordon == view
    cells = (await service.nodes.cluster(ANN)).cells[0].cells
    assert [rack.free for rack in cells] == [0, 2]
    assert (await service.nodes.top(ANN)).free.devices == 2
    line = (await store.audit()).items[0]
    assert (line.actor, line.action, line.resource, line.allowed) == ("root", "node.cordon", "node:local/n1", True)
    await service.cordons.uncordon(ROOT, "local/n1")
    assert (await service.nodes.get(ANN, "local/n1")).cordon is None
    assert [intent.kind for intent in await store.intents(0)] == [CORDONS_CHANGED] * 2
    with pytest.raises(Conflict, match="not cordoned"):
        await service.cordons.uncordon(ROOT, "local/n1")


async def test_a_drain_says_how(service: Service, store: Store) -> None:
    assert (await service.cordons.drain(ROOT, "local/n1", grace_seconds=5)).drain == "now"
    assert (await service.cordons.drain(ROOT, "local/n1", after_jobs=True)).drain == "after-jobs"
    assert (await store.cordons())["local/n1"].grace_seconds is None, "the last word counts"
    for grace in (-1.0, 1e9, float("nan")):
        with pytest.raises(InvalidInput, match="grace"):
            await service.cordons.drain(ROOT, "local/n1", grace_seconds=grace)


async def test_only_administrators_close_nodes_and_only_those_that_are_there(service: Service, store: Store) -> None:
    for call in (service.cordons.cordon, service.cordons.uncordon, service.cordons.drain):
        with pytest.raises(Forbidden, match="administrators-only"):
            await call(ANN, "local/n1")
        with pytest.raises(NotFound, match="no node"):
            await call(ROOT, "local/nowhere")
    with pytest.raises(InvalidInput, match="longer than 500"):
        await service.cordons.cordon(ROOT, "local/n1", why="x" * 501)
    assert await store.cordons() == {}


async def test_a_job_is_suspended_by_its_owner_once(service: Service, store: Store, epoch: int) -> None:
    job = await _submit(service)
    await _run(store, epoch, job)
    with pytest.raises(Forbidden, match="job-not-owned"):
        await service.job_commands.suspend(BOB, job)
    await service.job_commands.suspend(ANN, job)
    await service.job_commands.resume(ANN, job)
    kinds = [intent.kind for intent in await store.intents(0) if intent.job == job]
    assert kinds == [IntentKind.SUBMITTED, IntentKind.SUSPEND, IntentKind.RESUME]
    await _run(store, epoch, job, end=FAILED)
    for call in (service.job_commands.suspend, service.job_commands.resume):
        with pytest.raises(Conflict, match="over already"):
            await call(ANN, job)


async def test_receipts_say_where_the_job_is_now(
    service: Service, store: Store, epoch: int, clock: VirtualClock
) -> None:
    job = await _submit(service, job_text("digits"))
    back = receipt(job, 2, at=START + 1, returned_at=START + 31, by_queue="prod")
    over = receipt(job, 3, at=START + 2, over=True)
    await store.commit(ControlBatch(epoch, receipts=(receipt(job, 1), back, over)))
    clock.advance(60)
    found = (await service.receipts.of_job(BOB, "ann~digits")).items
    assert [each.state for each in found] == ["ended", "returned", "away"]
    assert [each.away_seconds for each in found] == [None, 30.0, 60.0]
    assert [each.id for each in (await service.receipts.page(BOB, queue="prod")).items] == [f"{job}.2"]
    assert len((await service.receipts.page(BOB, since=START + 1)).items) == 2


async def test_receipts_that_were_stored_with_ids_name_the_jobs(service: Service, store: Store, epoch: int) -> None:
    job, by = await _submit(service, job_text("digits")), await _submit(service, job_text("llama"))
    old = receipt(job, 1, message=f"Job {by} of priority 100 starts in its place; 1gone00000000 came too.")
    await store.commit(ControlBatch(epoch, receipts=(old,)))
    told = "Job llama of priority 100 starts in its place; 1gone00000000 came too."
    assert [each.message for each in (await service.receipts.page(ANN)).items] == [told]
    assert [each.message for each in (await service.receipts.of_job(BOB, "ann~digits")).items] == [told]


async def test_a_queue_without_loans_has_an_empty_ledger_and_no_queue_none(
    service: Service, store: Store, epoch: int
) -> None:
    assert (await service.receipts.ledger(ANN, "default")).lent == ()
    with pytest.raises(NotFound, match="no queue nowhere"):
        await service.receipts.ledger(ANN, "nowhere")
    await store.commit(ControlBatch(epoch, ledger=(LedgerEntry("default", "gone", 5.0, 0, START, START),)))
    assert (await service.receipts.ledger(ANN, "gone")).borrowed_device_seconds == 5.0
