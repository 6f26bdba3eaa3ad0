"""Users browse the folder that their tasks have on a storage."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from corral.kernel.errors import CorralError
from corral.service.actor import Actor
from corral.service.list_cursor import name_at, name_cursor
from corral.service.service import Service
from corral.storage import folder_browser as browsing
from corral.storage.folder_browser import PIECE
from corral.store import Store
from tests.service.conftest import ROOT

ANN = Actor("ann", storages=("home",))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The folder of the storage, which every account may read."""
    made = tmp_path / "data"
    made.mkdir()
    made.chmod(0o755)
    return made


async def storage(service: Service, path: Path, *, share: bool = False) -> None:
    await service.configuration.apply(
        ROOT, f"kind: Storage\nname: home\ntype: folder\npath: {path}\nshare: {str(share).lower()}\n".encode()
    )


async def read(service: Service, actor: Actor, path: str) -> bytes:
    _, pieces = await service.storage_browser.file(actor, "home", path)
    return b"".join([piece async for piece in pieces])


async def test_a_namesake_looks_into_its_own_folder_and_not_that_of_the_one_before(
    service: Service, data: Path
) -> None:
    await storage(service, data)
    await service.accounts.delete(ROOT, "ann")
    folder = (await service.accounts.create(ROOT, "ann")).folder
    assert folder not in ("", "ann")
    for name, words in (("ann", "of the deleted account"), (folder, "of the namesake")):
        (data / name).mkdir()
        (data / name).chmod(0o755)
        (data / name / "key").write_text(words)
        (data / name / "key").chmod(0o644)
    (data / "ann" / "old").touch()
    assert await read(service, ANN, "key") == b"of the namesake"
    assert [each.name for each in (await service.storage_browser.files(ANN, "home", "")).items] == ["key"]
    with pytest.raises(CorralError, match="no old in the storage"):
        await read(service, ANN, "old")


async def test_the_account_database_is_asked_outside_of_the_event_loop(
    service: Service, store: Store, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage(service, data, share=True)
    await store.allot_uid("ann", 70_000)
    asked: list[threading.Thread] = []

    def unknown(_: int) -> None:
        asked.append(threading.current_thread())
        raise KeyError

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    (data / "key").write_bytes(b"x" * (PIECE + 1))
    (data / "key").chmod(0o644)
    assert len(await read(service, ANN, "key")) == PIECE + 1
    assert len(asked) == 1 and asked[0] is not threading.current_thread()


async def test_pages_of_a_folder_have_every_name_once(service: Service, data: Path) -> None:
    await storage(service, data, share=True)
    names = ["a", "z" * 255, "\udcff", "\udcff\udcfe", "！wide", "\n", "😀"]
    for name in names:
        (data / name).touch()
    seen, after = [], ""
    while True:
        page = await service.storage_browser.files(ANN, "home", "", limit=1, after=after)
        seen += [each.name for each in page.items]
        if page.next is None:
            break
        after = page.next
    assert sorted(seen) == sorted(os.fsencode(name).decode("utf-8", "replace") for name in names)


async def test_a_page_whose_files_are_gone_meanwhile_does_not_end_the_list(
    service: Service, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage(service, data, share=True)
    for name in "ab":
        (data / name).touch()
    known = browsing._entry
    monkeypatch.setattr(browsing, "_entry", lambda folder, name: None if name == "a" else known(folder, name))
    page = await service.storage_browser.files(ANN, "home", "", limit=1)
    assert page.items == [] and page.next is not None
    assert [each.name for each in (await service.storage_browser.files(ANN, "home", "", after=page.next)).items] == [
        "b"
    ]


@pytest.mark.parametrize("cursor", ["a", "é", "a b=", "_w", "7aCA*"])
async def test_a_cursor_that_no_list_gave_is_refused(service: Service, data: Path, cursor: str) -> None:
    await storage(service, data, share=True)
    with pytest.raises(CorralError) as refused:
        await service.storage_browser.files(ANN, "home", "", after=cursor)
    assert refused.value.code == "bad-cursor"


@pytest.mark.parametrize("name", ["", "n" * 1024, "é" * 512, "\udcff" * 255, "a=/+b"])
def test_a_cursor_stands_for_its_name_and_is_short(name: str) -> None:
    cursor = name_cursor(name)
    assert name_at(cursor) == name and len(cursor) <= 1400
