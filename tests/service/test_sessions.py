"""Ways to sign in: tokens, one-time links, passwords, job tokens."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from corral.kernel.clock import VirtualClock
from corral.kernel.errors import Forbidden, InvalidInput, NotFound, Unauthenticated
from corral.kernel.ids import JobId
from corral.kernel.tokens import mint_job_token, verify_job_token
from corral.model.accounts import Group
from corral.service.people.credentials import digest
from corral.service.service import Service
from corral.store import Store
from tests.service.conftest import ANN, BOB, KEY, ROOT, START, job_text


async def _refused(service: Service, token: str) -> str:
    with pytest.raises(Unauthenticated) as refused:
        await service.authentication.authenticate(token)
    return refused.value.code


async def test_a_link_lets_in_once_and_not_for_long(service: Service, clock: VirtualClock) -> None:
    link = await service.sessions.login_link(ROOT, "ann")
    late = await service.sessions.login_link(ROOT, "ann")
    signed = await service.sessions.sign_in_link(link.link)
    assert (signed.user, signed.role) == ("ann", "user") and signed.token.startswith("crl_")
    actor = await service.authentication.authenticate(signed.token)
    assert (actor.user, actor.kind, actor.is_admin) == ("ann", "session", False)
    with pytest.raises(Unauthenticated):
        await service.sessions.sign_in_link(link.link)
    clock.advance(15 * 60 + 1)
    with pytest.raises(Unauthenticated):
        await service.sessions.sign_in_link(late.link)
    with pytest.raises(Unauthenticated):
        await service.sessions.sign_in_link("made-up")
    with pytest.raises(NotFound):
        await service.sessions.login_link(ROOT, "nobody")
    with pytest.raises(Forbidden):
        await service.sessions.login_link(ANN, "ann")


async def test_a_server_is_administered_once_somebody_has_signed_in_as_an_administrator(service: Service) -> None:
    assert not await service.sessions.administered()
    link = await service.sessions.first_link("carl")
    assert not await service.sessions.administered(), "a link that nobody used is no sign-in"
    await service.sessions.sign_in_link(link.link)
    assert await service.sessions.administered()


async def test_the_first_link_makes_the_administrator(service: Service) -> None:
    link = await service.sessions.first_link("carl", uid=1000)
    signed = await service.sessions.sign_in_link(link.link)
    assert signed.role == "admin"
    assert (await service.accounts.get(ROOT, "carl")).uid == 1000
    await service.sessions.first_link("carl")
    with pytest.raises(Forbidden):
        await service.sessions.first_link("ann")


async def test_a_password_opens_only_its_own_account(service: Service) -> None:
    await service.accounts.change(ROOT, "ann", password="correct horse")
    signed = await service.sessions.sign_in_password("ann", "correct horse")
    assert (await service.authentication.authenticate(signed.token)).user == "ann"
    for user, password in (
        ("ann", "wrong"),
        ("bob", "correct horse"),
        ("nobody", "correct horse"),
        ("ann", ""),
        ("a\0", "x"),
    ):
        with pytest.raises(Unauthenticated) as refused:
            await service.sessions.sign_in_password(user, password)
        assert refused.value.code == "wrong-password"
    with pytest.raises(InvalidInput):
        await service.accounts.change(ROOT, "ann", password="short")


async def test_a_token_ends_by_time_revocation_sign_out_and_with_its_account(
    service: Service, clock: VirtualClock
) -> None:
    short = await service.tokens.create(ANN, name="ci", days=1)
    revoked = await service.tokens.create(ANN)
    signed = await service.sessions.sign_in_link((await service.sessions.login_link(ROOT, "ann")).link)
    disabled = await service.tokens.create(BOB)
    for token in (short.token, revoked.token, signed.token, disabled.token):
        await service.authentication.authenticate(token)
    assert {token.id for token in await service.tokens.all(ANN)} >= {short.id, revoked.id}
    await service.tokens.revoke(ANN, revoked.id)
    assert await _refused(service, revoked.token) == "token-revoked"
    await service.sessions.sign_out(await service.authentication.authenticate(signed.token))
    assert await _refused(service, signed.token) == "token-revoked"
    await service.accounts.change(ROOT, "bob", disabled=True)
    assert await _refused(service, disabled.token) == "account-disabled"
    clock.advance(86_400)
    assert await _refused(service, short.token) == "token-expired"
    assert await _refused(service, "crl_made-up") == "bad-token"
    assert await _refused(service, "é" * 10) == "bad-token"
    with pytest.raises(NotFound):
        await service.tokens.revoke(BOB, short.id)


async def test_another_process_hears_of_a_revocation_within_seconds(
    service: Service, store: Store, clock: VirtualClock
) -> None:
    token = await service.tokens.create(ANN)
    await service.authentication.authenticate(token.token)
    await store.revoke_token(token.id, START)
    clock.advance(5.1)
    assert await _refused(service, token.token) == "token-revoked"


async def test_a_users_groups_grant_its_queues(service: Service) -> None:
    await service.groups.put(ROOT, Group("vision", ("gold",), ()))
    token = await service.tokens.create(ANN)
    assert (await service.authentication.authenticate(token.token)).queues == ()
    await service.accounts.change(ROOT, "ann", groups=("vision",))
    assert (await service.authentication.authenticate(token.token)).queues == ("gold",)


async def test_only_hashes_reach_the_disk(service: Service, store: Store, tmp_path: Path) -> None:
    token = await service.tokens.create(ANN)
    link = await service.sessions.login_link(ROOT, "ann")
    await service.accounts.change(ROOT, "ann", password="correct horse")
    await service.secrets.put(ANN, "KEY", "the-secret-value")
    await store.close()
    connection = sqlite3.connect(tmp_path / "corral.db")
    everything = "\n".join(connection.iterdump())
    connection.close()
    assert digest(token.token) in everything
    for secret in (token.token, link.link, "correct horse", "the-secret-value"):
        assert secret not in everything


async def test_a_job_token_is_its_jobs_alone(service: Service, clock: VirtualClock) -> None:
    made = await service.submission.submit(ANN, job_text())
    assert made.detail is not None
    token = mint_job_token(KEY, JobId(made.detail.id), START + 100)
    actor = await service.authentication.authenticate(token)
    assert (actor.user, actor.kind, actor.job, actor.is_admin) == ("ann", "job", made.detail.id, False)
    with pytest.raises(Forbidden) as refused:
        await service.job_commands.stop(actor, made.detail.id)
    assert "job-token-only-runtime" in refused.value.message
    other = mint_job_token(KEY, JobId("0000000000000"), START + 100)
    assert await _refused(service, other) == "bad-token"
    clock.advance(100)
    assert await _refused(service, token) == "bad-token"


@pytest.mark.parametrize(
    "change",
    [
        lambda token: token[:-1] + ("A" if token[-1] != "A" else "B"),
        lambda token: token.replace("abc", "abd", 1),
        lambda token: token.replace("_200_", "_999_", 1),
        lambda token: token.replace("_200_", "_²_", 1),
        lambda token: token.rpartition("_")[0],
        lambda token: "cjt_",
        lambda token: token + "x" * 300,
    ],
)
def test_a_changed_job_token_is_none(change) -> None:  # type: ignore[no-untyped-def]
    token = mint_job_token(KEY, JobId("abc"), 200)
    assert verify_job_token(KEY, token, 199.9) == "abc"
    assert verify_job_token(KEY, token, 200) is None
    assert verify_job_token(b"other" * 8, token, 100) is None
    assert verify_job_token(KEY, change(token), 100) is None
