"""What OpenPAI's clients keep is changed with nobody in between, and a change that refuses leaves it as it was."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from corral.kernel.errors import Conflict
from corral.store import Store
from corral.store.kept import Kept


def thing(name: str, body: str, at: float = 1.0) -> Kept:
    return Kept("framework", name, "ann", body, at, at)


async def test_a_thing_is_kept_changed_found_and_forgotten(store: Store) -> None:
    assert await store.kept("framework", "a") is None
    assert await store.keep("framework", "a", lambda known: thing("a", "1")) == thing("a", "1")
    assert await store.kept("framework", "a") == thing("a", "1")
    assert await store.kept("template", "a") is None
    await store.keep("framework", "b", lambda known: thing("b", "2"))
    assert [each.name for each in await store.kept_of("framework")] == ["a", "b"]
    assert await store.keep("framework", "a", lambda known: None) is None
    assert [each.name for each in await store.kept_of("framework")] == ["b"]


async def test_changes_of_one_thing_come_one_after_the_other(store: Store) -> None:
    def more(known: Kept | None) -> Kept:
        return thing("a", "x") if known is None else msgspec.structs.replace(known, body=known.body + "x")

    await asyncio.gather(*(store.keep("framework", "a", more) for _ in range(50)))
    found = await store.kept("framework", "a")
    assert found is not None and found.body == "x" * 50


async def test_a_change_that_refuses_changes_nothing(store: Store) -> None:
    def refuse(known: Kept | None) -> Kept:
        raise Conflict("no", "No.")

    await store.keep("framework", "a", lambda known: thing("a", "1"))
    with pytest.raises(Conflict):
        await store.keep("framework", "a", refuse)
    assert await store.kept("framework", "a") == thing("a", "1")
