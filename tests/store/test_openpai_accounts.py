"""Accounts carry the data of OpenPAI's clients, and a deleted group leaves no references."""

from __future__ import annotations

from corral.model.accounts import ADMIN_GROUP, DEFAULT_GROUP, Group, Token, User
from corral.store import Store

AT = 1_700_000_000.0


async def test_what_clients_keep_with_an_account_and_a_group_comes_back(store: Store) -> None:
    user = User("Ann.B-1", email="a@b.c\0", extension={"sshKeys": [{"value": "x\0"}], "é": "☃"}, created_at=AT)
    group = Group("g", ("q",), ("s", "t"), True, "words", "elsewhere", {"acls": {"more": 1}})
    await store.add_user(user)
    await store.put_group(group)
    kept = await store.user("Ann.B-1")
    assert kept is not None
    assert (kept.email, kept.extension) == ("a@b.c\ufffd", user.extension)
    assert await store.groups() == [group]
    changed = await store.change_user("Ann.B-1", email="", extension={})
    assert (changed.email, changed.extension) == ("", {})
    assert await store.all_users() == [changed]


async def test_who_is_in_no_group_is_in_the_default_one_and_administrators_in_theirs() -> None:
    assert User("ann").memberships == (DEFAULT_GROUP,)
    assert User("ann", groups=("g",)).memberships == ("g",)
    assert User("ann", "admin").memberships == (DEFAULT_GROUP, ADMIN_GROUP)
    assert User("ann", "admin", (ADMIN_GROUP,)).memberships == (ADMIN_GROUP,)


async def test_a_token_finds_what_the_default_group_grants(store: Store) -> None:
    await store.put_group(Group(DEFAULT_GROUP, ("open",)))
    await store.put_group(Group("g", ("closed",)))
    for name, groups in (("ann", ()), ("bob", ("g",))):
        await store.add_user(User(name, groups=groups, created_at=AT))
        await store.add_token(Token(name, name, "", "openpai", AT), f"hash of {name}")
    granted = {}
    for name in ("ann", "bob"):
        found = await store.find_token(f"hash of {name}")
        assert found is not None
        granted[name] = [group.name for group in found[2]]
    assert granted == {"ann": [DEFAULT_GROUP], "bob": ["g"]}
    assert await store.token_hashes("ann") == {"ann": "hash of ann"}


async def test_a_group_takes_its_memberships_with_it(store: Store) -> None:
    for name in ("a_b", "a%b", "axb"):
        await store.put_group(Group(name, ("q",)))
    await store.add_user(User("ann", groups=("axb", "a_b", "a%b"), created_at=AT))
    await store.add_user(User("bob", groups=("axb",), created_at=AT))
    await store.remove_group("a_b")
    assert [group.name for group in await store.groups()] == ["a%b", "axb"]
    assert [user.groups for user in await store.all_users()] == [("axb", "a%b"), ("axb",)]


async def test_all_tokens_of_one_user_end_but_those_of_a_kind(store: Store) -> None:
    for name in ("ann", "bob"):
        await store.add_user(User(name, created_at=AT))
    for number, (name, kind) in enumerate(
        [("ann", "openpai"), ("ann", "application"), ("ann", "api"), ("bob", "openpai")]
    ):
        await store.add_token(Token(str(number), name, "", kind, AT + number), f"hash {number}")
    await store.change_user("ann", password_hash="new", at=AT + 10, kept_kinds=("application",))
    ended = {token.id for name in ("ann", "bob") for token in await store.tokens(name) if token.revoked_at is not None}
    assert ended == {"0", "2"}


async def test_of_names_that_differ_only_by_case_the_oldest_account_is_told_to_those_after_it(store: Store) -> None:
    users = [User("Ann", created_at=AT + 1), User("ann", created_at=AT), User("ANN", created_at=AT + 1), User("anna")]
    for user in users:
        await store.add_user(user)
    told = {user.name: await store.older_namesake(user) for user in users}
    assert told == {"Ann": "ann", "ann": "", "ANN": "ann", "anna": ""}
