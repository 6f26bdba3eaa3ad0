"""Changes of accounts and secrets, and their audit lines."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from corral.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound
from corral.model.accounts import Group
from corral.service.secret_box import SecretBox, rotate_key
from corral.service.service import Service
from corral.store import Store
from tests.service.conftest import ANN, BOB, KEY, ROOT, job_text


async def test_a_group_that_does_not_exist_is_refused_with_the_nearest_name(service: Service) -> None:
    await service.groups.put(ROOT, Group("vision", (), ()))
    for asked in (
        service.accounts.create(ROOT, "eve", groups=("vison",)),
        service.accounts.change(ROOT, "ann", groups=("default", "vison")),
    ):
        with pytest.raises(InvalidInput, match=r"There is no group vison; did you mean .vision"):
            await asked
    with pytest.raises(InvalidInput, match=r"There is no group x1; make it first \(corral groups make\)"):
        await service.accounts.create(ROOT, "eve", groups=("x1",))
    with pytest.raises(NotFound):
        await service.accounts.get(ROOT, "eve")
    assert (await service.accounts.change(ROOT, "ann", groups=("vision",))).groups == ("vision",)
    with pytest.raises(Forbidden):
        await service.accounts.change(ANN, "ann", groups=("vison",))


async def test_an_account_keeps_a_group_that_is_gone(service: Service, store: Store) -> None:
    await store.change_user("ann", groups=("gone",), at=0.0)
    changed = await service.accounts.change(ROOT, "ann", groups=("gone", "default"))
    assert set(changed.groups) == {"gone", "default"}


async def test_administrators_make_change_and_delete_accounts(service: Service) -> None:
    await service.groups.put(ROOT, Group("g", (), ()))
    made = await service.accounts.create(ROOT, "eve", groups=("g",), password="long enough")
    assert (made.role, made.groups, made.has_password) == ("user", ("g",), True)
    assert [user.name for user in (await service.accounts.page(ROOT, limit=2)).items] == ["ann", "bob"]
    assert (await service.accounts.change(ROOT, "eve", role="admin")).role == "admin"
    await service.accounts.delete(ROOT, "eve")
    with pytest.raises(NotFound):
        await service.accounts.get(ROOT, "eve")
    for name in ("", "e" * 127, "../x", ".", "..", "ann b", "é", "e\n"):
        with pytest.raises(InvalidInput):
            await service.accounts.create(ROOT, name)
    with pytest.raises(Conflict):
        await service.accounts.create(ROOT, "ann")
    with pytest.raises(Forbidden):
        await service.accounts.create(ANN, "eve")
    with pytest.raises(Forbidden):
        await service.accounts.change(ANN, "ann", role="admin")


async def test_the_last_administrator_stays(service: Service) -> None:
    for attempt in (service.accounts.delete(ROOT, "root"), service.accounts.change(ROOT, "root", role="user"),
                    service.accounts.change(ROOT, "root", disabled=True)):  # fmt: skip
        with pytest.raises(Conflict) as refused:
            await attempt
        assert refused.value.code == "last-admin"


async def test_an_account_with_live_jobs_is_kept(service: Service) -> None:
    await service.submission.submit(ANN, job_text())
    with pytest.raises(Conflict):
        await service.accounts.delete(ROOT, "ann")


async def test_a_single_user_server_takes_no_second_account(service: Service) -> None:
    service.context.several_users = False
    with pytest.raises(Conflict) as refused:
        await service.accounts.create(ROOT, "eve")
    assert refused.value.code == "single-user"


async def test_a_secret_is_sealed_and_its_value_never_returned(service: Service, store: Store) -> None:
    await service.secrets.put(ANN, "KEY", "value")
    (shown,) = await service.secrets.names(ANN)
    assert shown.name == "KEY" and not hasattr(shown, "value")
    assert await service.secrets.names(BOB) == []
    sealed = (await store.secrets("user:ann"))["KEY"]
    assert "value" not in sealed
    assert SecretBox(KEY).open("user:ann", "KEY", sealed) == "value"
    with pytest.raises(NotFound):
        await service.secrets.delete(BOB, "KEY")
    await service.secrets.delete(ANN, "KEY")
    assert await service.secrets.names(ANN) == []
    for name, value in (("", "v"), ("../x", "v"), ("a" * 300, "v"), ("a", "v" * 70_000)):
        with pytest.raises(InvalidInput):
            await service.secrets.put(ANN, name, value)


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
        await service.secrets.put(ANN, name, f"value {name}")
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
    await service.submission.submit(ANN, job_text())
    with pytest.raises(Forbidden):
        await service.job_commands.stop(BOB, "ann~digits")
    await service.accounts.create(ROOT, "eve", password="do not tell")
    await service.secrets.put(ANN, "KEY", "do not tell")
    lines = (await service.audit_log.page(ROOT)).items
    shown = [(line.actor, line.action, line.rule, line.allowed) for line in reversed(lines)]
    assert shown == [
        ("ann", "job.submit", "queue-open", True),
        ("bob", "job.stop", "job-not-owned", False),
        ("root", "user.create", "administrator", True),
        ("ann", "secret.put", "own-account", True),
    ]
    assert "do not tell" not in repr(lines)
    with pytest.raises(Forbidden):
        await service.audit_log.page(ANN)
    first = await service.audit_log.page(ROOT, limit=2)
    rest = await service.audit_log.page(ROOT, limit=100, after=first.next or "")
    assert [line.seq for line in [*first.items, *rest.items]] == sorted(
        {line.seq for line in [*first.items, *rest.items]}, reverse=True
    )
