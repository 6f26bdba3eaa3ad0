"""Configuration documents: every change is a revision, guarded, audited, signalled to control and never lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.kernel.errors import Conflict, InvalidInput
from corral.model.accounts import AuditWrite, QueueRecord
from corral.model.document_revisions import CONFIGURED, DocumentChange
from corral.store import Store, open_store
from tests.store.makers import START, Ticking

GOLD = DocumentChange("Queue", "gold", '{"weight":1}')


async def _put(store: Store, *changes: DocumentChange, actor: str = "root", **terms: object) -> list[int]:
    stored = await store.put_documents(changes, actor=actor, at=START, **terms)  # type: ignore[arg-type]
    return [each.revision for each in stored]


async def test_every_change_is_a_revision_and_all_of_them_stay(store: Store) -> None:
    assert await _put(store, GOLD) == [1]
    assert await _put(store, DocumentChange("Queue", "gold", '{"weight":2}', note="more"), actor="ann") == [2]
    history = await store.document_history("Queue", "gold")
    assert [(each.revision, each.doc, each.actor, each.note) for each in history.items] == [
        (2, '{"weight":2}', "ann", "more"),
        (1, '{"weight":1}', "root", ""),
    ]
    first = await store.document("Queue", "gold", 1)
    assert first is not None and first.doc == '{"weight":1}'


async def test_what_changes_nothing_makes_no_revision_and_tells_nobody(store: Store) -> None:
    await _put(store, GOLD)
    before = (await store.all_documents()).change, await store.last_seq()
    assert await _put(store, GOLD) == [1]
    assert ((await store.all_documents()).change, await store.last_seq()) == before


async def test_a_deleted_document_is_not_listed_and_its_revisions_go_on_counting(store: Store) -> None:
    await _put(store, GOLD)
    assert await _put(store, DocumentChange("Queue", "gold", None)) == [2]
    assert (await store.documents()).items == []
    last = await store.document("Queue", "gold")
    assert last is not None and last.deleted and last.revision == 2
    assert await _put(store, DocumentChange("Queue", "gold", None)) == [2]
    assert await _put(store, GOLD) == [3]


async def test_deleting_what_never_was_stores_nothing(store: Store) -> None:
    assert await _put(store, DocumentChange("Queue", "gold", None)) == []
    assert (await store.document_history("Queue", "gold")).items == []


@pytest.mark.parametrize(("guard", "fits"), [(None, True), (1, True), (2, False), (0, False)])
async def test_a_guard_refuses_a_change_of_another_revision(store: Store, guard: int | None, fits: bool) -> None:
    await _put(store, GOLD)
    change = DocumentChange("Queue", "gold", '{"weight":9}', guard)
    if fits:
        assert await _put(store, change) == [2]
        return
    with pytest.raises(Conflict) as refused:
        await _put(store, change)
    assert refused.value.code == "revision-changed" and "revision 1" in refused.value.message


async def test_a_guard_of_nothing_lets_a_deleted_document_be_made_again(store: Store) -> None:
    await _put(store, GOLD)
    await _put(store, DocumentChange("Queue", "gold", None))
    assert await _put(store, DocumentChange("Queue", "gold", "{}", 0)) == [3]


async def test_several_documents_are_stored_all_or_none(store: Store) -> None:
    await _put(store, GOLD)
    with pytest.raises(Conflict):
        await _put(store, DocumentChange("Queue", "new", "{}"), DocumentChange("Queue", "gold", "{}", 7))
    assert [each.name for each in (await store.documents()).items] == ["gold"]


async def test_a_change_thought_out_on_what_is_past_is_refused(store: Store) -> None:
    seen = (await store.all_documents()).change
    await _put(store, GOLD, seen=seen)
    with pytest.raises(Conflict) as refused:
        await _put(store, DocumentChange("Queue", "silver", "{}"), seen=seen)
    assert refused.value.code == "documents-changed"


async def test_a_change_its_queues_and_its_line_of_the_audit_log_are_one(store: Store) -> None:
    line = AuditWrite(START, "root", "document.apply", "document:Queue/gold", "administrator", True)
    await _put(store, GOLD, queues=[QueueRecord("default"), QueueRecord("gold", {"weight": 1})], audit=[line])
    assert (await store.admission()).queues == ("default", "gold")
    assert [each.resource for each in (await store.audit()).items] == ["document:Queue/gold"]


async def test_control_is_told_of_each_change_in_the_order_of_all_intents(store: Store) -> None:
    await _put(store, GOLD, DocumentChange("Policy", "default", "{}"))
    told = await store.intents(0)
    assert [(each.job, each.kind, each.data) for each in told] == [
        ("", CONFIGURED, {"kind": "Queue", "name": "gold", "revision": 1}),
        ("", CONFIGURED, {"kind": "Policy", "name": "default", "revision": 1}),
    ]


async def test_a_change_wakes_control(tmp_path: Path) -> None:
    url, run = f"sqlite:///{tmp_path / 'corral.db'}", tmp_path / "run"
    control = await open_store(url, clock=Ticking(), run_folder=run, role="control")
    front = await open_store(url, clock=Ticking(), run_folder=run, role="front")
    await _put(front, GOLD)
    assert await control.wakeup.wait(120)
    await front.close()
    await control.close()


async def test_deleted_documents_are_listed_each_once_at_the_revision_that_deleted_it(store: Store) -> None:
    await _put(store, *(DocumentChange("Queue", name, "{}") for name in ("a", "b", "c", "d")))
    for doc in (None, '{"weight": 2}', None):
        await _put(store, DocumentChange("Queue", "b", doc))
    for doc in (None, '{"weight": 2}'):
        await _put(store, DocumentChange("Queue", "c", doc))
    await _put(store, DocumentChange("Queue", "d", None))
    gone = await store.documents(deleted=True)
    assert [(each.name, each.revision, each.deleted) for each in gone.items] == [("b", 4, True), ("d", 2, True)]
    first = await store.documents(deleted=True, limit=1)
    rest = await store.documents(deleted=True, limit=1, after_cursor=first.next or "")
    assert [each.name for each in first.items + rest.items] == ["b", "d"] and rest.next is None
    assert (await store.documents(deleted=True, kind="Cluster")).items == []
    assert [each.name for each in (await store.documents()).items] == ["a", "c"]


async def test_lists_are_read_in_pages_by_kind_and_name(store: Store) -> None:
    names = ["a", "b", "c"]
    await _put(
        store, *(DocumentChange("Queue", name, "{}") for name in names), DocumentChange("Cluster", "local", "{}")
    )
    first = await store.documents(limit=2)
    rest = await store.documents(limit=2, after_cursor=first.next or "")
    assert [(each.kind, each.name) for each in first.items + rest.items] == [
        ("Cluster", "local"),
        *(("Queue", name) for name in names),
    ]
    assert rest.next is None
    assert [each.name for each in (await store.documents(kind="Cluster")).items] == ["local"]
    with pytest.raises(InvalidInput):
        await store.documents(after_cursor="nonsense")


async def test_a_history_is_read_in_pages(store: Store) -> None:
    for weight in range(5):
        await _put(store, DocumentChange("Queue", "gold", f'{{"weight":{weight}}}'))
    first = await store.document_history("Queue", "gold", limit=3)
    rest = await store.document_history("Queue", "gold", limit=3, after_cursor=first.next or "")
    assert [each.revision for each in first.items + rest.items] == [5, 4, 3, 2, 1]
