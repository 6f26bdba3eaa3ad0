"""Data that OpenPAI's clients store is changed atomically, and a refused change leaves it as it was."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from corral.compat.openpai.tables.key_values import KeyValue, KeyValues
from corral.kernel.errors import Conflict
from corral.store import Store


@pytest.fixture
def records(store: Store) -> KeyValues:
    return KeyValues(store)


def thing(name: str, body: str, at: float = 1.0) -> KeyValue:
    return KeyValue("framework", name, "ann", body, at, at)


async def test_a_thing_is_kept_changed_found_and_forgotten(records: KeyValues) -> None:
    assert await records.key_value("framework", "a") is None
    assert await records.change_key_value("framework", "a", lambda known: thing("a", "1")) == thing("a", "1")
    assert await records.key_value("framework", "a") == thing("a", "1")
    assert await records.key_value("template", "a") is None
    await records.change_key_value("framework", "b", lambda known: thing("b", "2"))
    assert [each.name for each in await records.key_values("framework")] == ["a", "b"]
    assert await records.change_key_value("framework", "a", lambda known: None) is None
    assert [each.name for each in await records.key_values("framework")] == ["b"]


async def test_changes_of_one_thing_come_one_after_the_other(records: KeyValues) -> None:
    def more(known: KeyValue | None) -> KeyValue:
        return thing("a", "x") if known is None else msgspec.structs.replace(known, body=known.body + "x")

    await asyncio.gather(*(records.change_key_value("framework", "a", more) for _ in range(50)))
    found = await records.key_value("framework", "a")
    assert found is not None and found.body == "x" * 50


async def test_a_change_that_refuses_changes_nothing(records: KeyValues) -> None:
    def refuse(known: KeyValue | None) -> KeyValue:
        raise Conflict("no", "No.")

    await records.change_key_value("framework", "a", lambda known: thing("a", "1"))
    with pytest.raises(Conflict):
        await records.change_key_value("framework", "a", refuse)
    assert await records.key_value("framework", "a") == thing("a", "1")


def beside(name: str, owner: str = "ann", **texts: str) -> KeyValue:
    return KeyValue("template", name, owner, "whole", 1.0, 1.0, texts)


async def test_short_texts_are_found_and_added_without_the_body_and_go_with_it(records: KeyValues) -> None:
    first = beside("a", line="A", text="50% of_it", tasks="3")
    for one in (first, beside("b", line="B", text="50 of it", tasks="40000000000")):
        await records.change_key_value("template", one.name, lambda _, one=one: one)  # type: ignore[misc]
    assert await records.beside("template", "line") == [("a", "A"), ("b", "B")]
    assert await records.beside("template", "line", text="B") == [("b", "B")]
    assert await records.beside("template", "line", words=("0%", "of_"), words_in="text") == [("a", "A")]
    assert await records.sum_beside("template", "tasks", but="a") == 40_000_000_000
    assert await records.sum_beside("framework", "tasks", but="") == 0
    assert [each.name for each in await records.key_values("template")] == ["a", "b"], "they are no things themselves"
    await records.change_key_value("template", "a", lambda _: beside("a", line="new"))
    assert await records.beside("template", "line") == [("a", "new"), ("b", "B")]
    assert await records.beside("template", "text") == [("b", "50 of it")]
    await records.change_key_value("template", "b", lambda _: None)
    assert await records.beside("template", "text") == []


async def test_there_is_room_for_so_many_in_all_and_of_one_account(records: KeyValues) -> None:
    async def keep(name: str, owner: str) -> None:
        await records.change_key_value(
            "template", name, lambda _: beside(name, owner, line="x"), most=3, most_of_owner=2
        )

    for name in ("a", "b", "a"):
        await keep(name, "ann")
    with pytest.raises(Conflict, match="You have 2"):
        await keep("d", "ann")
    await keep("c", "bob")
    with pytest.raises(Conflict, match="There are 3"):
        await keep("d", "bob")
    assert await records.beside("template", "line") == [("a", "x"), ("b", "x"), ("c", "x")]
