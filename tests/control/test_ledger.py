"""Lent device seconds are summed exactly while control runs, and to within seconds after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.control.core.lending_ledger import HEARTBEAT_SECONDS, Ledger
from corral.control.core.pending_writes import PendingWrites
from corral.model.configuration import canonical
from corral.model.document_revisions import DocumentChange
from corral.model.receipts import LedgerEntry, ledger_view
from corral.spec.configuration_file import identity, load_document
from tests.control.harness import House, PaperEngine, short

PAIR = ("a", "b")


def stored(pending: PendingWrites) -> list[LedgerEntry]:
    return list(pending.ledger.values())


def test_device_seconds_are_added_up_at_every_change() -> None:
    ledger, pending = Ledger(), PendingWrites()
    ledger.fold(pending, {PAIR: 4000}, 100.0)
    ledger.fold(pending, {PAIR: 1000}, 110.0)
    ledger.fold(pending, {}, 120.0)
    (entry,) = stored(pending)
    assert (entry.device_seconds, entry.device_millis, entry.since) == (50.0, 0, 100.0)
    assert not ledger.running
    ledger.fold(pending, {PAIR: 2000}, 1000.0)
    assert pending.ledger[PAIR].until(1010.0) == pytest.approx(70.0)


def test_half_a_device_for_an_hour_is_half_a_device_hour() -> None:
    ledger, pending = Ledger(), PendingWrites()
    ledger.fold(pending, {PAIR: 500}, 0.0)
    ledger.fold(pending, {PAIR: 1500}, 3600.0)
    (line,) = ledger_view("a", stored(pending), 3600.0).lent
    assert (line.device_seconds / 3600, line.devices) == (0.5, 1.5)
    ledger.fold(pending, {PAIR: 2000}, 7200.0)
    (line,) = ledger_view("b", stored(pending), 10_800.0).borrowed
    assert (line.device_seconds / 3600, line.devices) == (4.0, 2)
    assert isinstance(line.devices, int), "whole devices are shown as whole numbers"


def test_nothing_is_written_while_nothing_changes_but_a_heartbeat() -> None:
    ledger = Ledger()
    ledger.fold(PendingWrites(), {PAIR: 4000}, 100.0)
    quiet = PendingWrites()
    ledger.fold(quiet, {PAIR: 4000}, 100.0 + HEARTBEAT_SECONDS - 1)
    assert quiet.empty
    ledger.fold(quiet, {PAIR: 4000}, 100.0 + HEARTBEAT_SECONDS)
    assert [(entry.device_seconds, entry.at) for entry in stored(quiet)] == [(4 * HEARTBEAT_SECONDS, 105.0)]


def test_a_loan_that_went_on_while_no_control_ran_is_counted_and_one_that_ended_is_not_guessed() -> None:
    found = [LedgerEntry("a", "b", 10.0, 4000, 0.0, 100.0), LedgerEntry("a", "c", 10.0, 4000, 0.0, 100.0)]
    ledger, pending = Ledger(found), PendingWrites()
    ledger.fold(pending, {("a", "b"): 3000}, 200.0)
    assert pending.ledger["a", "b"].device_seconds == 10.0 + 3 * 100
    assert (pending.ledger["a", "c"].device_seconds, pending.ledger["a", "c"].device_millis) == (10.0, 0)


def test_a_queue_sees_both_sides_of_its_account() -> None:
    entries = [LedgerEntry("a", "b", 10.0, 2000, 0.0, 100.0), LedgerEntry("c", "a", 5.0, 0, 0.0, 100.0)]
    view = ledger_view("a", entries, 110.0)
    assert (view.lent_device_seconds, view.borrowed_device_seconds) == (30.0, 5.0)
    assert [(line.queue, line.devices) for line in (*view.lent, *view.borrowed)] == [("b", 2), ("c", 0)]


async def test_a_queue_lends_what_it_does_not_use_and_takes_it_back_against_a_receipt(tmp_path: Path) -> None:
    house = House(tmp_path, PaperEngine(nodes=2, devices=4))
    await house.open()
    try:
        text = "kind: Queue\nname: {0}\ndeserved: {{devices: 4}}\n"
        documents = [document for name in "ab" for document in load_document(text.format(name))]
        changes = [DocumentChange(*identity(each), canonical(each)) for each in documents]
        await house.store.put_documents(changes, actor="root", at=1.0)
        await house.begin()
        borrower = await house.submit(short("borrower", replicas=2, devices=3, queue="a"))
        await house.until(borrower, "running")
        while not await house.store.ledger("b"):
            await house.store.wakeup.wait(0.05)
        (entry,) = await house.store.ledger("b")
        assert (entry.lender, entry.borrower, entry.device_millis) == ("b", "a", 2000)
        await house.abandon()
        await house.begin()
        owner = await house.submit(short("owner", devices=4, queue="b"))
        await house.until(owner, "running")
        (receipt,) = (await house.store.receipts(queue="b")).items
        assert (receipt.job, receipt.queue, receipt.by_queue, receipt.rule) == (borrower, "a", "b", "reclaim")
        while (entry := (await house.store.ledger("b"))[0]).device_millis:
            await house.store.wakeup.wait(0.05)
        assert entry.device_seconds > 0
    finally:
        await house.close()


async def test_the_devices_of_a_virtual_clusters_cells_are_lent_while_it_is_idle(tmp_path: Path) -> None:
    house = House(tmp_path, PaperEngine(nodes=2, devices=4))
    await house.open()
    try:
        text = "kind: VirtualCluster\nname: owner\ncells: [{level: node, count: 1}]\n---\nkind: Queue\nname: guest\n"
        documents = load_document(text)
        changes = [DocumentChange(*identity(each), canonical(each)) for each in documents]
        await house.store.put_documents(changes, actor="root", at=1.0)
        await house.begin()
        job = await house.submit(short("guest", replicas=2, devices=4, queue="guest"))
        await house.until(job, "running")
        while len(found := await house.store.ledger("guest")) < 2:
            await house.store.wakeup.wait(0.05)
        assert {(entry.lender, entry.device_millis) for entry in found} == {("", 4000), ("owner", 4000)}
        claimed = await house.submit(short("claims", devices=4, queue="owner"))
        await house.until(claimed, "running")
        (receipt,) = (await house.store.receipts(job=job)).items
        assert (receipt.rule, receipt.by_queue) == ("guarantee", "owner")
    finally:
        await house.close()
