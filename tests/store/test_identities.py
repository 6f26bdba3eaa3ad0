"""OpenID identities and their sessions at the provider are stored alike in both databases."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from corral.model.accounts import Token, User
from corral.store import Store

AT = 1_700_000_000.0
HERE, THERE = "https://one.example", "https://two.example"


async def test_whoever_was_linked_first_stays(store: Store, open_more: Callable[[], Any]) -> None:
    other = await open_more()
    linked = await asyncio.gather(store.link_identity(HERE, "1", "ann", AT), other.link_identity(HERE, "1", "bob", AT))
    assert len(set(linked)) == 1
    assert await store.identity(HERE, "1") == linked[0]
    assert await store.identity(THERE, "1") is None
    assert await store.identities(linked[0]) == [(HERE, "1")]


async def test_links_end_with_the_account(store: Store) -> None:
    await store.add_user(User("root", "admin", created_at=AT))
    await store.add_user(User("ann", created_at=AT))
    await store.link_identity(HERE, "1", "ann", AT)
    await store.remove_user("ann")
    assert await store.identity(HERE, "1") is None


async def test_tokens_are_found_by_the_session_and_by_the_person_and_forgotten_when_they_are_gone(store: Store) -> None:
    for name in ("ann", "bob"):
        await store.add_user(User(name, created_at=AT))
        await store.link_identity(HERE, f"sub-{name}", name, AT)
    for number, (name, session) in enumerate((("ann", "s"), ("ann", "t"), ("bob", "s"))):
        await store.add_token(Token(f"id{number}", name, "", "session", AT), f"hash {number}")
        await store.add_openid_session(f"id{number}", HERE if name == "ann" else THERE, session, AT)
    assert await store.tokens_of_openid_session(HERE, "s") == ["id0"]
    assert sorted(await store.tokens_of_identity(HERE, "sub-ann")) == ["id0", "id1"]
    assert await store.tokens_of_identity(HERE, "sub-bob") == [], "that session was another provider's"
    assert await store.openid_session("id2") == (THERE, "s")
    await store.add_user(User("root", "admin", created_at=AT))
    await store.remove_user("ann")
    await store.add_token(Token("id3", "bob", "", "session", AT), "hash 3")
    await store.add_openid_session("id3", HERE, "u", AT)
    assert await store.openid_session("id0") is None
    assert await store.openid_session("id2") == (THERE, "s")


async def test_a_token_is_stored_once_however_many_bring_it(store: Store) -> None:
    brought = await asyncio.gather(
        *(store.add_token_once(Token(f"id{each}", "ann", "", "application", AT), "hash") for each in range(5))
    )
    assert sorted(brought) == [False, False, False, False, True]
    assert len(await store.tokens("ann")) == 1
