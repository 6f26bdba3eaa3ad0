"""Changes of accounts and secrets, and their audit lines."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from corral.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound
from corral.service.secret_box import SecretBox, rotate_key
from corral.service.service import Service
from corral.store import Store
from tests.service.conftest import ANN, BOB, KEY, ROOT, job_text


async def test_administrators_make_change_and_delete_accounts(service: Service) -> None:
    made = await service.create_user(ROOT, "eve", groups=("g",), password="long enough")
    assert (made.role, made.groups, made.has_password) == ("user", ("g",), True)
    assert [user.name for user in (await service.users(ROOT, limit=2)).items] == ["ann", "bob"]
    assert (await service.change_user(ROOT, "eve", role="admin")).role == "admin"
    await service.delete_user(ROOT, "eve")
    with pytest.raises(NotFound):
        await service.user(ROOT, "eve")
    for name in ("", "e" * 127, "../x", ".", "..", "ann b", "é", "e\n"):
        with pytest.raises(InvalidInput):
            await service.create_user(ROOT, name)
    with pytest.raises(Conflict):
        await service.create_user(ROOT, "ann")
    with pytest.raises(Forbidden):
        await service.create_user(ANN, "eve")
    with pytest.raises(Forbidden):
        await service.change_user(ANN, "ann", role="admin")


async def test_the_last_administrator_stays(service: Service) -> None:
    for attempt in (service.delete_user(ROOT, "root"), service.change_user(ROOT, "root", role="user"),
                    service.change_user(ROOT, "root", disabled=True)):  # fmt: skip
        with pytest.raises(Conflict) as refused:
            await attempt
        assert refused.value.code == "last-admin"


async def test_an_account_with_live_jobs_is_kept(service: Service) -> None:
    await service.submit(ANN, job_text())
    with pytest.raises(Conflict):
        await service.delete_user(ROOT, "ann")


async def test_a_single_user_server_takes_no_second_account(service: Service) -> None:
    service.several_users = False
    with pytest.raises(Conflict) as refused:
        await service.create_user(ROOT, "eve")
    assert refused.value.code == "single-user"


async def test_a_secret_is_sealed_and_its_value_never_returned(service: Service, store: Store) -> None:
    await service.put_secret(ANN, "KEY", "value")
    (shown,) = await service.secrets(ANN)
    assert shown.name == "KEY" and not hasattr(shown, "value")
    assert await service.secrets(BOB) == []
    sealed = (await store.secrets("user:ann"))["KEY"]
    assert "value" not in sealed
    assert SecretBox(KEY).open("user:ann", "KEY", sealed) == "value"
    with pytest.raises(NotFound):
        await service.delete_secret(BOB, "KEY")
    await service.delete_secret(ANN, "KEY")
    assert await service.secrets(ANN) == []
    for name, value in (("", "v"), ("../x", "v"), ("a" * 300, "v"), ("a", "v" * 70_000)):
        with pytest.raises(InvalidInput):
            await service.put_secret(ANN, name, value)


def test_a_sealed_value_cannot_be_moved_changed_or_opened_with_another_key() -> None:
    sealed = SecretBox(KEY).seal("user:ann", "KEY", "value")
    assert SecretBox(KEY).seal("user:ann", "KEY", "value") != sealed
    for owner, name, text in (
        ("user:bob", "KEY", sealed),
        ("user:ann", "OTHER", sealed),
        ("user:ann", "KEY", sealed[:-3] + "AA="),
    ):
        with pytest.raises(Conflict) as refused:
            SecretBox(KEY).open(owner, name, text)
        assert "value" not in refused.value.message
    with pytest.raises(Conflict) as refused:
        SecretBox(b"x" * 32).open("user:ann", "KEY", sealed)
    assert refused.value.code == "sealed-with-another-key"


async def test_rotation_seals_everything_anew_and_finishes_when_it_was_cut_short(
    service: Service, store: Store, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_bytes(base64.b64encode(KEY))
    for name in ("A", "B"):
        await service.put_secret(ANN, name, f"value {name}")
    half = base64.b64encode(b"n" * 32)
    (tmp_path / "key.new").write_bytes(half)
    moved = SecretBox(b"n" * 32).seal("user:ann", "A", "value A")
    await store.put_secret("user:ann", "A", moved, 0)
    assert await rotate_key(store, file) == 2
    assert file.read_bytes() == half and not (tmp_path / "key.new").exists()
    assert await rotate_key(store, file) == 2
    new = base64.b64decode(file.read_bytes())
    assert new != b"n" * 32 and file.stat().st_mode & 0o777 == 0o600
    sealed = await store.secrets("user:ann")
    assert {name: SecretBox(new).open("user:ann", name, text) for name, text in sealed.items()} == {
        "A": "value A",
        "B": "value B",
    }


async def test_every_change_and_refusal_is_in_the_audit_log_without_secrets(service: Service) -> None:
    await service.submit(ANN, job_text())
    with pytest.raises(Forbidden):
        await service.stop(BOB, "ann~digits")
    await service.create_user(ROOT, "eve", password="do not tell")
    await service.put_secret(ANN, "KEY", "do not tell")
    lines = (await service.audit(ROOT)).items
    shown = [(line.actor, line.action, line.rule, line.allowed) for line in reversed(lines)]
    assert shown == [
        ("ann", "job.submit", "queue-open", True),
        ("bob", "job.stop", "job-not-owned", False),
        ("root", "user.create", "administrator", True),
        ("ann", "secret.put", "own-account", True),
    ]
    assert "do not tell" not in repr(lines)
    with pytest.raises(Forbidden):
        await service.audit(ANN)
    first = await service.audit(ROOT, limit=2)
    rest = await service.audit(ROOT, limit=100, after=first.next or "")
    assert [line.seq for line in [*first.items, *rest.items]] == sorted(
        {line.seq for line in [*first.items, *rest.items]}, reverse=True
    )
