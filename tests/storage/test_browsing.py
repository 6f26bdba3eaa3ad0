"""Browsing a storage shows only the folder that the user's tasks see, without a way out of it."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import fsspec
import pytest

from corral.kernel.errors import CorralError, Forbidden, InvalidInput, NotFound, Unavailable
from corral.storage.call_slots import AT_ONCE, PER_USER, CallSlots
from corral.storage.folder_browser import PIECE, Account, Browser, Listing, LocalFolder, RemoteStorage, parts_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    (root / "sets" / "deep").mkdir(parents=True)
    (root / "sets" / "a.txt").write_text("hello")
    (root / "ann").mkdir()
    (root / "ann" / "mine").write_text("ann's")
    (tmp_path / "outside").write_text("secret")
    (root / "way-out").symlink_to(tmp_path)
    (root / "sets" / "passwd").symlink_to(tmp_path / "outside")
    os.mkfifo(root / "pipe")
    return root


async def read(browser: Browser, folder: LocalFolder, path: str) -> bytes:
    _, pieces = await browser.file("data", folder, path)
    return b"".join([piece async for piece in pieces])


async def test_a_folder_is_listed_by_name_and_a_file_is_read(root: Path) -> None:
    browser, folder = Browser(), LocalFolder(str(root), "", None)
    found = await browser.entries("data", folder, "/sets/./", "", 100)
    assert [(each.name, each.kind) for each in found.entries] == [
        ("a.txt", "file"),
        ("deep", "folder"),
        ("passwd", "link"),
    ]
    assert await read(browser, folder, "sets/a.txt") == b"hello"
    first = await browser.entries("data", folder, "sets", "", 1)
    assert ([each.name for each in first.entries], first.next) == (["a.txt"], "a.txt")
    rest = await browser.entries("data", folder, "sets", first.next, 5)
    assert ([each.name for each in rest.entries], rest.next) == (["deep", "passwd"], "")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../outside", "bad-path"),
        ("sets/../../outside", "bad-path"),
        ("sets/a.txt\0", "bad-path"),
        ("/".join("x" * 65), "bad-path"),
        ("way-out/outside", "path-not-found"),
        ("sets/passwd", "path-is-link"),
        ("missing", "path-not-found"),
        ("sets", "not-a-file"),
        ("pipe", "not-a-file"),
        ("x" * 300, "path-not-found"),
    ],
)
async def test_no_path_leads_out_or_to_what_is_no_file(root: Path, path: str, code: str) -> None:
    with pytest.raises(CorralError) as refused:
        await read(Browser(), LocalFolder(str(root), "", None), path)
    assert refused.value.code == code


async def test_a_link_is_not_listed_through(root: Path) -> None:
    with pytest.raises((InvalidInput, NotFound)):
        await Browser().entries("data", LocalFolder(str(root), "", None), "way-out", "", 10)


async def test_a_folder_of_100_000_files_is_shown_page_by_page(tmp_path: Path) -> None:
    for number in range(100_000):
        os.mknod(tmp_path / f"{number}")
    browser, folder = Browser(), LocalFolder(str(tmp_path), "", None)
    names = sorted(map(str, range(100_000)))
    first = await browser.entries("data", folder, "", "", 200)
    assert ([each.name for each in first.entries], first.next) == (names[:200], names[199])
    last = await browser.entries("data", folder, "", names[-11], 200)
    assert ([each.name for each in last.entries], last.next) == (names[-10:], "")


async def test_who_has_a_folder_of_their_own_sees_that_alone(root: Path) -> None:
    browser = Browser()
    assert await read(browser, LocalFolder(str(root), "ann", None), "mine") == b"ann's"
    with pytest.raises(NotFound):
        await read(browser, LocalFolder(str(root), "bob", None), "mine")
    (root / "eve").symlink_to(root / "ann")
    with pytest.raises((InvalidInput, NotFound)):
        await read(browser, LocalFolder(str(root), "eve", None), "mine")


async def test_what_the_account_may_not_read_the_server_does_not_give(root: Path) -> None:
    browser, stranger = Browser(), Account(65_000, frozenset({65_000}))
    file = root / "sets" / "a.txt"
    for folder in (root.parent, root, root / "sets"):
        folder.chmod(0o755)
    file.chmod(0o640)
    with pytest.raises(Forbidden):
        await read(browser, LocalFolder(str(root), "", lambda: stranger), "sets/a.txt")
    file.chmod(0o644)
    assert await read(browser, LocalFolder(str(root), "", lambda: stranger), "sets/a.txt") == b"hello"
    (root / "sets").chmod(0o700)
    with pytest.raises(Forbidden):
        await browser.entries("data", LocalFolder(str(root), "", lambda: stranger), "sets", "", 10)
    owner = Account(os.stat(file).st_uid, frozenset())
    assert await read(browser, LocalFolder(str(root), "", lambda: owner), "sets/a.txt") == b"hello"


async def test_a_large_file_comes_in_pieces(root: Path) -> None:
    (root / "big").write_bytes(b"x" * (2 * PIECE + 5))
    size, pieces = await Browser().file("data", LocalFolder(str(root), "", None), "big")
    assert [len(piece) async for piece in pieces] == [PIECE, PIECE, 5]
    assert size == 2 * PIECE + 5


class Hanging(LocalFolder):
    """The folder of a file server that hangs until it is released."""

    def __init__(self) -> None:
        super().__init__("/", "", None)
        self.go = threading.Event()
        self.inside: list[str] = []

    def entries(self, parts: tuple[str, ...], after: str, limit: int) -> Listing:
        self.inside.append("/".join(parts))
        self.go.wait()
        return Listing([])

    async def fill(self, browser: Browser, users: int) -> list[asyncio.Task[Listing]]:
        """Let `users` users take all the slots that each of them may have."""
        calls = [
            asyncio.create_task(browser.entries("away", self, "", "", 1, user=f"user-{user}"))
            for user in range(users)
            for _ in range(PER_USER)
        ]
        async with asyncio.timeout(120):
            while len(self.inside) < len(calls):
                await asyncio.sleep(0)
        return calls


async def test_a_storage_that_hangs_holds_up_few_and_not_for_long() -> None:
    browser, folder = Browser(seconds=0.05, wait=0.05), Hanging()
    calls = await folder.fill(browser, AT_ONCE // PER_USER)
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(each, Unavailable) and each.code == "storage-away" for each in answers)
    with pytest.raises(Unavailable, match="There are 8 calls"):
        await browser.entries("away", folder, "", "", 1)
    folder.go.set()
    async with asyncio.timeout(120):
        while True:
            try:
                await browser.entries("away", folder, "", "", 1)
                return
            except Unavailable:
                await asyncio.sleep(0)


async def test_a_file_that_is_being_fetched_waits_for_the_storage_and_goes_on(root: Path) -> None:
    (root / "big").write_bytes(b"x" * (PIECE + 5))
    browser, folder = Browser(seconds=60, wait=0.01), Hanging()
    _, pieces = await browser.file("away", LocalFolder(str(root), "", None), "big", user="ann")
    assert len(await anext(pieces)) == PIECE
    calls = await folder.fill(browser, AT_ONCE // PER_USER)
    last = asyncio.ensure_future(anext(pieces))
    with pytest.raises(Unavailable) as refused:
        await browser.entries("away", folder, "", "", 1, user="bob")
    assert (refused.value.code, last.done()) == ("storage-busy", False)
    folder.go.set()
    assert await last == b"x" * 5
    await asyncio.gather(*calls)


async def test_a_file_does_not_wait_for_ever(root: Path) -> None:
    browser, folder = Browser(piece_wait=0.01), Hanging()
    _, pieces = await browser.file("away", LocalFolder(str(root), "", None), "sets/a.txt", user="ann")
    calls = await folder.fill(browser, AT_ONCE // PER_USER)
    with pytest.raises(Unavailable, match="try again in a moment"):
        await anext(pieces)
    folder.go.set()
    await asyncio.gather(*calls)


async def test_one_user_leaves_slots_of_a_storage_to_others(root: Path) -> None:
    browser, folder = Browser(wait=0.01), Hanging()
    calls = await folder.fill(browser, 1)
    with pytest.raises(Unavailable, match="You have 2 calls"):
        await browser.entries("away", folder, "", "", 1, user="user-0")
    there = LocalFolder(str(root), "", None)
    assert (await browser.entries("away", there, "sets", "", 1, user="bob")).next
    folder.go.set()
    await asyncio.gather(*calls)


async def test_many_files_that_are_fetched_at_once_all_come_whole(root: Path) -> None:
    (root / "big").write_bytes(b"x" * (3 * PIECE + 5))
    browser = Browser(wait=60)

    async def fetch(user: int) -> int:
        _, pieces = await browser.file("data", LocalFolder(str(root), "", None), "big", user=str(user % 6))
        return sum([len(piece) async for piece in pieces])

    assert set(await asyncio.gather(*map(fetch, range(24)))) == {3 * PIECE + 5}


async def test_who_waits_no_more_holds_no_slot() -> None:
    slots = CallSlots("data")
    for user in ("ann", "ann"):
        await slots.take(user, 1)
    waiting = [asyncio.ensure_future(slots.take("ann", 120)) for _ in range(2)]
    await asyncio.sleep(0)
    slots.give_back("ann")
    waiting[0].cancel()  # it got the slot and never ran again
    await asyncio.wait_for(waiting[1], 120)
    for _ in range(2):
        assert not slots.idle
        slots.give_back("ann")
    assert slots.idle


async def test_a_folder_at_a_uri_is_looked_into_as_well(root: Path) -> None:
    (root / "ann" / "sub").mkdir()
    (root / "ann" / "sub" / "x").write_bytes(b"12345")
    folder = RemoteStorage(root.as_uri(), "ann")
    browser = Browser()
    found = await browser.entries("mem", folder, "sub", "", 10)
    assert [(each.name, each.kind, each.size) for each in found.entries] == [("x", "file", 5)]
    _, pieces = await browser.file("mem", folder, "sub/x")
    assert b"".join([piece async for piece in pieces]) == b"12345"
    with pytest.raises(NotFound):
        await browser.entries("mem", RemoteStorage(root.as_uri(), "bob"), "sub", "", 10)


async def test_an_object_store_is_shown_as_it_is_now(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    tasks = fsspec.filesystem("s3", skip_instance_cache=True, use_listings_cache=False)
    browser, folder = Browser(), RemoteStorage("s3://data/browsed", "ann")

    async def seen() -> list[tuple[str, int]]:
        return [(each.name, each.size) for each in (await browser.entries("s3", folder, "", "", 10)).entries]

    tasks.pipe_file("data/browsed/ann/one", b"1")
    assert await seen() == [("one", 1)]
    tasks.pipe_file("data/browsed/ann/one", b"1 and more")
    tasks.pipe_file("data/browsed/ann/two", b"22")
    assert await seen() == [("one", 10), ("two", 2)]
    size, pieces = await browser.file("s3", folder, "one")
    assert (size, [piece async for piece in pieces]) == (10, [b"1 and more"])
    tasks.rm_file("data/browsed/ann/one")
    assert await seen() == [("two", 2)]


def test_a_path_is_taken_apart() -> None:
    assert parts_of("//a/./b/") == ("a", "b")
