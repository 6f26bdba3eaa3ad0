"""Users change only their own password, and the change ends the sessions of the old one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from argon2 import Parameters, Type, extract_parameters

from corral.compat.openpai.records.accounts import UserChanges
from corral.compat.openpai.records.cluster_import import ImportUser, OpenPaiImport
from corral.compat.openpai.service.tenant import OpenPai
from corral.kernel.clock import VirtualClock
from corral.kernel.errors import CorralError, Forbidden, Unauthenticated
from corral.service.actor import Actor
from corral.service.service import Service
from corral.store import Store
from tests.passwords import HASHER, NOBODY
from tests.service.conftest import ROOT

OLD, NEW = "correct horse", "battery staple"
Way = Callable[[OpenPai, Actor, str], Awaitable[object]]


async def _by_v3(openpai: OpenPai, actor: Actor, old: str) -> object:
    return await openpai.service.accounts.change(actor, actor.user, password=NEW, old_password=old)


async def _by_openpais_profile(openpai: OpenPai, actor: Actor, old: str) -> object:
    return await openpai.accounts.change_profile(actor, actor.user, UserChanges(password=NEW), old)


async def _by_openpais_me(openpai: OpenPai, actor: Actor, old: str) -> object:
    return await openpai.accounts.update_self(actor, UserChanges(password=NEW), old_password=old, merge=True)


async def _by_openpais_administration(openpai: OpenPai, actor: Actor, old: str) -> object:
    return await openpai.accounts.update_user(actor, actor.user, UserChanges(password=NEW), merge=True)


async def signed_in(service: Service, user: str) -> Actor:
    link = await service.sessions.login_link(ROOT, user)
    return await service.authentication.authenticate((await service.sessions.sign_in_link(link.link)).token)


async def _good(service: Service, token: str) -> bool:
    try:
        await service.authentication.authenticate(token)
    except Unauthenticated:
        return False
    return True


@pytest.mark.parametrize("user", ["ann", "root"])
@pytest.mark.parametrize("way", [_by_v3, _by_openpais_profile, _by_openpais_me, _by_openpais_administration])
async def test_no_way_to_change_ones_own_password_goes_without_the_old_one_or_a_fresh_sign_in(
    service: Service, openpai: OpenPai, clock: VirtualClock, user: str, way: Way
) -> None:
    await service.accounts.change(ROOT, "ann", password=OLD)
    session = await signed_in(service, "root")
    await service.accounts.change(session, "root", password=OLD)
    session = await signed_in(service, user)
    program = await service.authentication.authenticate((await service.tokens.create(session)).token)
    clock.advance(10 * 60 + 1)
    for actor in (session, program):
        for old in ("", "wrong horse"):
            with pytest.raises(CorralError) as refused:
                await way(openpai, actor, old)
            assert refused.value.status == 403
    assert await service.passwords.check(user, OLD)


async def test_the_old_password_or_a_fresh_sign_in_is_enough(service: Service, clock: VirtualClock) -> None:
    session = await signed_in(service, "ann")
    program = await service.authentication.authenticate((await service.tokens.create(session)).token)
    with pytest.raises(Forbidden) as refused:
        await service.accounts.change(program, "ann", password=OLD)
    assert refused.value.code == "old-password-needed"
    await service.accounts.change(session, "ann", password=OLD)
    session = await signed_in(service, "ann")
    clock.advance(3600)
    await service.accounts.change(session, "ann", password=NEW, old_password=OLD)
    assert await service.passwords.check("ann", NEW)


@pytest.mark.parametrize("who", ["ann", "root"])
@pytest.mark.parametrize("keep", [False, True])
async def test_a_new_password_ends_what_was_open_to_the_old_one(
    service: Service, openpai: OpenPai, who: str, keep: bool
) -> None:
    await service.accounts.change(ROOT, "ann", password=OLD)
    portal = (await service.sessions.sign_in_password("ann", OLD)).token
    of_openpai = (await openpai.tokens.sign_in("ann", OLD)).token
    actor = await service.authentication.authenticate(portal)
    api = (await service.tokens.create(actor)).token
    application = await openpai.tokens.create(actor)
    link = await service.sessions.login_link(ROOT, "ann")
    by = actor if who == "ann" else ROOT
    changed = await service.accounts.change(by, "ann", password=NEW, old_password=OLD, keep_tokens=keep)
    assert [await _good(service, token) for token in (portal, of_openpai, api, application)] == [
        False,
        False,
        keep,
        True,
    ]
    assert changed.notice == (
        f"All sign-ins {'' if keep else 'and API tokens '}have ended. Still valid: 1 application tokens, "
        f"{int(keep)} API tokens; revoke those that are not wanted."
    )
    with pytest.raises(Unauthenticated):
        await service.sessions.sign_in_link(link.link)


async def test_an_import_sets_no_password_for_who_imports(openpai: OpenPai, store: Store) -> None:
    told = OpenPaiImport(
        users=(ImportUser("ann", password_hash="a" * 128), ImportUser("root", password_hash="a" * 128))
    )
    await openpai.cluster_import.run(ROOT, told)
    ann, root = [await store.user(name) for name in ("ann", "root")]
    assert ann is not None and ann.has_password
    assert root is not None and not root.has_password


def test_a_password_of_anybody_and_of_nobody_costs_what_rfc_9106_asks_for_with_little_memory() -> None:
    cost = Parameters(Type.ID, version=19, salt_len=16, hash_len=32, time_cost=3, memory_cost=65536, parallelism=4)
    assert extract_parameters(HASHER.hash(NEW)) == cost == extract_parameters(NOBODY)
