"""Imported OpenPAI accounts and tokens work here exactly as long, and as far, as they should."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from typing import Any

import pytest

from corral.compat.openpai.records.cluster_import import ImportGroup, ImportJob, ImportToken, ImportUser, OpenPaiImport
from corral.compat.openpai.service.password_hash import PREFIX, imported_hash
from corral.compat.openpai.service.tenant import OpenPai
from corral.kernel.clock import VirtualClock
from corral.kernel.errors import CorralError, Forbidden, Unauthenticated
from corral.model.accounts import Group, User
from corral.service.jobs.submission import Submission
from corral.service.service import Service
from tests.service.conftest import ANN, ROOT

SECRET = "what the cluster signed with"


def signed(secret: str = SECRET, *, alg: str = "HS256", **claims: Any) -> str:
    def part(data: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(data).encode()).decode().rstrip("=")

    told = {"username": "ann", "application": True, "iat": 1_600_000_000, **claims}
    body = (
        f"{part({'alg': alg, 'typ': 'JWT'})}.{part({key: value for key, value in told.items() if value is not None})}"
    )
    signature = hmac.new(secret.encode(), body.encode(), hashlib.sha256).digest()
    return f"{body}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


async def bring(openpai: OpenPai, **given: Any) -> dict[str, str]:
    page = await openpai.cluster_import.run(ROOT, OpenPaiImport(**given))
    return {f"{each.kind}/{each.name}": each.result for each in page.items}


async def test_a_hash_of_openpais_opens_once_and_is_then_argon2id(service: Service) -> None:
    told = imported_hash("Old.User", "secret")
    await service.context.store.add_user(User("Old.User"), told)
    assert told.startswith(PREFIX)
    assert not await service.passwords.check("Old.User", "Secret")
    assert await service.context.store.password_hash("Old.User") == told, "a wrong password changes nothing"
    assert await service.passwords.check("Old.User", "secret"), "though it is shorter than ours must be"
    stored = await service.context.store.password_hash("Old.User")
    assert stored.startswith("$argon2id$")
    assert await service.passwords.check("Old.User", "secret")
    assert not await service.passwords.check("Old.User", "Secret")


async def test_a_password_that_was_changed_meanwhile_is_not_put_back(service: Service) -> None:
    await service.context.store.add_user(User("old"), imported_hash("old", "secret"))
    await service.context.store.change_user("old", password_hash="another")
    await service.context.store.replace_password_hash("old", imported_hash("old", "secret"), "the old one anew")
    assert await service.context.store.password_hash("old") == "another"


async def test_the_hash_is_not_itself_a_password(service: Service) -> None:
    told = imported_hash("old", "secret")
    await service.context.store.add_user(User("old"), told)
    for guess in (told, told.removeprefix(PREFIX), ""):
        assert not await service.passwords.check("old", guess)


async def test_a_token_of_the_cluster_opens_from_the_first_use_on_even_when_many_come_at_once(
    service: Service, openpai: OpenPai
) -> None:
    assert await bring(openpai, jwt_secret=SECRET) == {"secret/jwt-secret": "created"}
    token = signed()
    actors = await asyncio.gather(*(service.authentication.authenticate(token) for _ in range(5)))
    assert {(actor.user, actor.kind) for actor in actors} == {("ann", "application")}
    (kept,) = await service.context.store.tokens("ann")
    assert kept.created_at == 1_600_000_000
    assert (await openpai.imported_tokens.texts("ann"))(kept) == token
    assert token not in str(await service.context.store.secrets("openpai-tokens:ann")), "it is sealed"


async def test_a_list_of_imported_tokens_is_one_look_whatever_their_number(
    service: Service, openpai: OpenPai, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [signed(iat=1_600_000_000 + number) for number in range(5)]
    await bring(openpai, jwt_secret=SECRET, tokens=tuple(ImportToken("ann", text) for text in texts))
    looks, secrets = [], service.context.store.secrets

    async def counted(owner: str) -> dict[str, str]:
        looks.append(owner)
        return await secrets(owner)

    monkeypatch.setattr(service.context.store, "secrets", counted)
    assert sorted(await openpai.tokens.all(ANN)) == sorted(texts)
    assert looks == ["openpai-tokens:ann"]


BAD: dict[str, str] = {
    "signed with another secret": signed("another secret, just as long"),
    "no application's": signed(application=False),
    "a job's": signed(jobSpecific=True),
    "one that ends": signed(exp=4_000_000_000),
    "of nobody here": signed(username="nobody"),
    "of no user": signed(username=None),
    "of another algorithm": signed(alg="none"),
    "cut short": signed()[:-4],
}


@pytest.mark.parametrize("what", BAD)
async def test_a_token_does_not_open_that_is(what: str, service: Service, openpai: OpenPai) -> None:
    await bring(openpai, jwt_secret=SECRET)
    with pytest.raises(Unauthenticated):
        await service.authentication.authenticate(BAD[what])
    assert await service.context.store.tokens("ann") == []


async def test_a_token_of_a_removed_account_does_not_open_another_of_its_name(
    service: Service, openpai: OpenPai, clock: VirtualClock
) -> None:
    await bring(openpai, jwt_secret=SECRET)
    clock.advance(60)
    await bring(openpai, users=(ImportUser("carl"),))
    assert (await service.authentication.authenticate(signed(username="carl"))).user == "carl", (
        "the import brought the account itself"
    )
    for name in ("carl", "ann"):
        await service.accounts.delete(ROOT, name)
        await service.context.store.add_user(User(name, created_at=clock.now()))
        for issued in (1_600_000_000, None):
            with pytest.raises(Unauthenticated):
                await service.authentication.authenticate(signed(username=name, iat=issued))
        assert await service.context.store.tokens(name) == []
    newer = signed(username="carl", iat=int(clock.now()) + 1)
    assert (await service.authentication.authenticate(newer)).user == "carl", (
        "the cluster gave it to whom the account is of"
    )


async def test_without_the_secret_no_token_of_the_cluster_opens(service: Service) -> None:
    with pytest.raises(Unauthenticated):
        await service.authentication.authenticate(signed())


async def test_where_tokens_were_exported_no_other_one_opens(service: Service, openpai: OpenPai) -> None:
    listed, other = signed(), signed(iat=1_600_000_001)
    done = await bring(openpai, jwt_secret=SECRET, tokens_listed=True, tokens=(ImportToken("ann", listed),))
    assert sorted(done.values()) == ["created", "created"]
    assert (await service.authentication.authenticate(listed)).user == "ann"
    with pytest.raises(Unauthenticated):
        await service.authentication.authenticate(other)


async def test_a_token_that_was_revoked_stays_so_whatever_is_imported_again(service: Service, openpai: OpenPai) -> None:
    given: dict[str, Any] = {"jwt_secret": SECRET, "tokens": (ImportToken("ann", signed()),)}
    await bring(openpai, **given)
    (kept,) = await service.context.store.tokens("ann")
    await service.tokens.revoke(ANN, kept.id)
    assert set((await bring(openpai, **given)).values()) == {"unchanged"}
    with pytest.raises(Unauthenticated):
        await service.authentication.authenticate(signed())


async def test_tokens_go_with_their_account(service: Service, openpai: OpenPai) -> None:
    await bring(openpai, jwt_secret=SECRET, tokens=(ImportToken("ann", signed()),))
    await service.context.store.remove_user("ann")
    assert await service.context.store.secrets("openpai-tokens:ann") == {}
    with pytest.raises(Unauthenticated):
        await service.authentication.authenticate(signed())


async def test_a_token_is_taken_only_for_whom_it_names_and_whom_it_was_signed_for(openpai: OpenPai) -> None:
    tokens = (
        ImportToken("bob", signed()),
        ImportToken("ann", signed("another secret, just as long")),
        ImportToken("ann", "x"),
    )
    done = await bring(openpai, jwt_secret=SECRET, tokens=tokens)
    assert [result for name, result in done.items() if name.startswith("token/")] == ["refused"] * len(
        set(done) - {"secret/jwt-secret"}
    )


async def test_a_secret_that_everybody_knows_is_refused_here_too(service: Service, openpai: OpenPai) -> None:
    for secret in ("pai-secret", "short"):
        assert await bring(openpai, jwt_secret=secret) == {"secret/jwt-secret": "refused"}
    assert await openpai.imported_tokens.secret() is None


async def test_only_administrators_bring_over_and_it_is_in_the_audit_log(service: Service, openpai: OpenPai) -> None:
    given = OpenPaiImport(users=(ImportUser("new", password_hash="ab" * 64),))
    with pytest.raises(Forbidden):
        await openpai.cluster_import.run(ANN, given)
    await openpai.cluster_import.run(ROOT, given)
    lines = (await service.context.store.audit(limit=10)).items
    assert [(each.actor, each.allowed) for each in lines if each.action == "openpai.import"] == [
        ("root", True),
        ("ann", False),
    ]
    assert "ab" * 64 not in str(lines)


async def test_a_trial_stores_nothing(service: Service, openpai: OpenPai) -> None:
    given = OpenPaiImport(
        groups=(ImportGroup("g"),),
        users=(ImportUser("new"),),
        tokens=(ImportToken("ann", signed()),),
        jwt_secret=SECRET,
    )
    page = await openpai.cluster_import.run(ROOT, given, dry_run=True)
    assert {each.result for each in page.items} == {"created"}
    assert await service.context.store.user("new") is None
    assert await service.context.store.tokens("ann") == []
    assert await openpai.imported_tokens.secret() is None
    assert "g" not in [group.name for group in await service.context.store.groups()]


async def test_accounts_and_groups_that_differ_are_kept_or_replaced(service: Service, openpai: OpenPai) -> None:
    await service.context.store.put_group(Group("g", ("a",)))
    given: dict[str, Any] = {
        "groups": (ImportGroup("g", queues=("b",)),),
        "users": (ImportUser("ann", groups=("g",), admin=True),),
    }
    assert await bring(openpai, **given) == {"group/g": "kept", "user/ann": "kept"}
    ann = await service.context.store.user("ann")
    assert ann is not None and ann.role == "user"
    page = await openpai.cluster_import.run(ROOT, OpenPaiImport(**given), replace=True)
    assert {each.result for each in page.items} == {"changed"}
    ann = await service.context.store.user("ann")
    assert ann is not None and (ann.role, ann.groups) == ("admin", ("g",))
    assert set((await bring(openpai, **given)).values()) == {"unchanged"}


async def test_the_administrators_group_is_a_role_and_no_membership(service: Service, openpai: OpenPai) -> None:
    await bring(openpai, users=(ImportUser("chief", groups=("admingroup", "default"), admin=True),))
    chief = await service.context.store.user("chief")
    assert chief is not None and (chief.role, chief.groups) == ("admin", ("default",))


async def test_who_signs_in_at_a_provider_is_waited_for(service: Service, openpai: OpenPai) -> None:
    await bring(openpai, users=(ImportUser("new"), ImportUser("root")), issuer="https://id.example")
    assert await service.context.store.identity("https://id.example", "name:new") == "new"
    assert await service.context.store.identity("https://id.example", "name:root") is None, (
        "that account was here before"
    )


@pytest.mark.parametrize(
    ("user", "text", "why"),
    [
        ("nobody", "name: x\nroles: {w: {command: echo}}", "not there"),
        ("ann", "protocolVersion: 2\nname: x\n", "type"),
        ("ann", "name: x\nsecrets: '******'", "masked"),
        ("ann", "[", ""),
    ],
)
async def test_a_job_that_cannot_be_brought_over_is_said_in_a_line(
    openpai: OpenPai, user: str, text: str, why: str
) -> None:
    page = await openpai.cluster_import.run(ROOT, OpenPaiImport(jobs=(ImportJob(user, "x", text),)))
    (one,) = page.items
    assert one.result == "refused"
    assert why in one.message
    assert "\n" not in one.message


async def test_a_fault_of_the_server_is_not_told_as_a_refusal_of_a_job(
    openpai: OpenPai, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise CorralError("broken", "broken")

    monkeypatch.setattr(Submission, "submit", broken)
    with pytest.raises(CorralError):
        await openpai.cluster_import.run(ROOT, OpenPaiImport(jobs=(ImportJob("ann", "x", "name: x"),)))
