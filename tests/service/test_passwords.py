"""Users change only their own password, and the change ends the sessions of the old one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from corral.kernel.clock import VirtualClock
from corral.kernel.errors import CorralError, Forbidden, Unauthenticated
from corral.model.openpai_accounts import UserChanges
from corral.model.openpai_import import ImportUser, OpenPaiImport
from corral.service.actor import Actor
from corral.service.service import Service
from corral.store import Store
from tests.service.conftest import ROOT

OLD, NEW = "correct horse", "battery staple"
Way = Callable[[Service, Actor, str], Awaitable[object]]


async def _by_v3(service: Service, actor: Actor, old: str) -> object:
    return await service.change_user(actor, actor.user, password=NEW, old_password=old)


async def _by_openpais_profile(service: Service, actor: Actor, old: str) -> object:
    return await service.openpai_change_profile(actor, actor.user, UserChanges(password=NEW), old)


async def _by_openpais_me(service: Service, actor: Actor, old: str) -> object:
    return await service.openpai_update_self(actor, UserChanges(password=NEW), old_password=old, merge=True)


async def _by_openpais_administration(service: Service, actor: Actor, old: str) -> object:
    return await service.openpai_update_user(actor, actor.user, UserChanges(password=NEW), merge=True)


async def signed_in(service: Service, user: str) -> Actor:
    link = await service.login_link(ROOT, user)
    return await service.authenticate((await service.sign_in_link(link.link)).token)


async def _good(service: Service, token: str) -> bool:
    try:
        await service.authenticate(token)
    except Unauthenticated:
        return False
    return True


@pytest.mark.parametrize("user", ["ann", "root"])
@pytest.mark.parametrize("way", [_by_v3, _by_openpais_profile, _by_openpais_me, _by_openpais_administration])
async def test_no_way_to_change_ones_own_password_goes_without_the_old_one_or_a_fresh_sign_in(
    service: Service, clock: VirtualClock, user: str, way: Way
) -> None:
    await service.change_user(ROOT, "ann", password=OLD)
    session = await signed_in(service, "root")
    await service.change_user(session, "root", password=OLD)
    session = await signed_in(service, user)
    program = await service.authenticate((await service.create_token(session)).token)
    clock.advance(10 * 60 + 1)
    for actor in (session, program):
        for old in ("", "wrong horse"):
            with pytest.raises(CorralError) as refused:
                await way(service, actor, old)
            assert refused.value.status == 403
    assert await service.check_password(user, OLD)


async def test_the_old_password_or_a_fresh_sign_in_is_enough(service: Service, clock: VirtualClock) -> None:
    session = await signed_in(service, "ann")
    program = await service.authenticate((await service.create_token(session)).token)
    with pytest.raises(Forbidden) as refused:
        await service.change_user(program, "ann", password=OLD)
    assert refused.value.code == "old-password-needed"
    await service.change_user(session, "ann", password=OLD)
    session = await signed_in(service, "ann")
    clock.advance(3600)
    await service.change_user(session, "ann", password=NEW, old_password=OLD)
    assert await service.check_password("ann", NEW)


@pytest.mark.parametrize("who", ["ann", "root"])
@pytest.mark.parametrize("keep", [False, True])
async def test_a_new_password_ends_what_was_open_to_the_old_one(service: Service, who: str, keep: bool) -> None:
    await service.change_user(ROOT, "ann", password=OLD)
    portal = (await service.sign_in_password("ann", OLD)).token
    openpai = (await service.openpai_login("ann", OLD)).token
    actor = await service.authenticate(portal)
    api = (await service.create_token(actor)).token
    application = await service.openpai_application_token(actor)
    link = await service.login_link(ROOT, "ann")
    by = actor if who == "ann" else ROOT
    changed = await service.change_user(by, "ann", password=NEW, old_password=OLD, keep_tokens=keep)
    assert [await _good(service, token) for token in (portal, openpai, api, application)] == [False, False, keep, True]
    assert changed.notice == (
        f"All sign-ins {'' if keep else 'and API tokens '}have ended. Still valid: 1 application tokens, "
        f"{int(keep)} API tokens; revoke those that are not wanted."
    )
    with pytest.raises(Unauthenticated):
        await service.sign_in_link(link.link)


async def test_an_import_sets_no_password_for_who_imports(service: Service, store: Store) -> None:
    told = OpenPaiImport(
        users=(ImportUser("ann", password_hash="a" * 128), ImportUser("root", password_hash="a" * 128))
    )
    await service.import_openpai(ROOT, told)
    ann, root = [await store.user(name) for name in ("ann", "root")]
    assert ann is not None and ann.has_password
    assert root is not None and not root.has_password
