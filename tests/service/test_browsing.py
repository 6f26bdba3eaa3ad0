"""People look into the folder that their tasks have on a storage."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from corral.kernel.errors import CorralError
from corral.service.actor import Actor
from corral.service.service import Service
from corral.storage.browsing import PIECE
from corral.store import Store
from tests.service.conftest import ROOT

ANN = Actor("ann", storages=("home",))


async def storage(service: Service, path: Path, *, share: bool = False) -> None:
    await service.apply_documents(
        ROOT, f"kind: Storage\nname: home\ntype: folder\npath: {path}\nshare: {str(share).lower()}\n".encode()
    )


async def read(service: Service, actor: Actor, path: str) -> bytes:
    _, pieces = await service.storage_file(actor, "home", path)
    return b"".join([piece async for piece in pieces])


async def test_a_namesake_looks_into_its_own_folder_and_not_that_of_the_one_before(
    service: Service, tmp_path: Path
) -> None:
    await storage(service, tmp_path)
    await service.delete_user(ROOT, "ann")
    folder = (await service.create_user(ROOT, "ann")).folder
    assert folder not in ("", "ann")
    for name, words in (("ann", "of the deleted account"), (folder, "of the namesake")):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o755)
        (tmp_path / name / "key").write_text(words)
        (tmp_path / name / "key").chmod(0o644)
    (tmp_path / "ann" / "old").touch()
    tmp_path.chmod(0o755)
    assert await read(service, ANN, "key") == b"of the namesake"
    assert [each.name for each in (await service.storage_files(ANN, "home", "")).items] == ["key"]
    with pytest.raises(CorralError, match="no old in the storage"):
        await read(service, ANN, "old")


async def test_the_account_database_is_asked_outside_of_the_event_loop(
    service: Service, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage(service, tmp_path, share=True)
    await store.allot_uid("ann", 70_000)
    asked: list[threading.Thread] = []

    def unknown(_: int) -> None:
        asked.append(threading.current_thread())
        raise KeyError

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    tmp_path.chmod(0o755)
    (tmp_path / "key").write_bytes(b"x" * (PIECE + 1))
    (tmp_path / "key").chmod(0o644)
    assert len(await read(service, ANN, "key")) == PIECE + 1
    assert len(asked) == 1 and asked[0] is not threading.current_thread()
