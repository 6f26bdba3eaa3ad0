"""Where blocks are is asked of NameNodes within bounds; what they say wrongly, late or endlessly is one sentence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from corral.kernel.errors import CorralError, Forbidden, InvalidInput, NotFound, Unavailable
from corral.storage import block_locations
from corral.storage.block_locations import BlockLocator, NameNodes, name_nodes_of

MIB = 1 << 20
Answer = tuple[int, object]
"""The status and the JSON, or the bytes, of an answer; a callable yields bytes for ever."""


def status(name: str = "", size: int = 0, *, kind: str = "FILE", changed: int = 1) -> dict[str, Any]:
    """A file or folder as a NameNode shows it."""
    return {"type": kind, "length": size, "blockSize": MIB, "modificationTime": changed, "pathSuffix": name}


def block(size: object, *hosts: str) -> dict[str, Any]:
    """A block with copies on these hosts."""
    return {"offset": 0, "length": size, "hosts": list(hosts), "names": []}


def refusal(kind: str, said: str) -> dict[str, Any]:
    return {"RemoteException": {"exception": kind, "message": f"{said}\n\tat org.apache.hadoop"}}


class PaperNameNode:
    """Answers WebHDFS calls from tables by path; counts the calls by operation."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, Any]] = {}
        self.listed: dict[str, list[dict[str, Any]]] = {}
        self.blocks: dict[str, list[dict[str, Any]]] = {}
        self.says: Callable[[str, str], Answer | None] = lambda operation, path: None
        """The answer to a call, instead of one from the tables."""
        self.calls: list[tuple[str, str, dict[str, str]]] = []
        self.page = 2
        """The most entries of a list."""

    def count(self, operation: str) -> int:
        return sum(1 for done, *_ in self.calls if done == operation)

    def answer(self, operation: str, path: str, query: dict[str, str]) -> Answer:
        self.calls.append((operation, path, query))
        if (said := self.says(operation, path)) is not None:
            return said
        if operation == "GETFILESTATUS" and path in self.found:
            return 200, {"FileStatus": self.found[path]}
        if operation == "LISTSTATUS_BATCH" and path in self.listed:
            rest = [each for each in self.listed[path] if each["pathSuffix"] > query.get("startAfter", "")]
            page = {"FileStatuses": {"FileStatus": rest[: self.page]}}
            left = max(0, len(rest) - self.page)
            return 200, {"DirectoryListing": {"partialListing": page, "remainingEntries": left}}
        if operation == "GETFILEBLOCKLOCATIONS" and path in self.blocks:
            return 200, {"BlockLocations": {"BlockLocation": self.blocks[path]}}
        return 404, refusal("FileNotFoundException", f"File does not exist: {path}")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one call of a connection."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            target = urlsplit(head.split(" ")[1])
            query = {name: values[0] for name, values in parse_qs(target.query).items()}
            code, said = self.answer(query["op"], unquote(target.path).removeprefix("/webhdfs/v1"), query)
            writer.write(b"HTTP/1.1 %d said\r\nConnection: close\r\n\r\n" % code)
            if callable(said):
                for piece in said():
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
            else:
                writer.write(said if isinstance(said, bytes) else json.dumps(said).encode())
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def locating(
    *nodes: PaperNameNode, now: Callable[[], float] = lambda: 0.0, **more: Any
) -> AsyncIterator[BlockLocator]:
    """A locator of one HDFS with these NameNodes."""
    servers = [await asyncio.start_server(node.serve, "127.0.0.1", 0) for node in nodes]
    urls = tuple(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}" for server in servers)
    made = BlockLocator([NameNodes(urls, "corral", **more)], now=now)
    try:
        yield made
    finally:
        await made.close()
        for server in servers:
            server.close()


def one_file(size: int = 3 * MIB, *blocks: dict[str, Any]) -> PaperNameNode:
    """A NameNode with one file of three blocks on two hosts."""
    node = PaperNameNode()
    node.found["/data"] = status("", size)
    node.blocks["/data"] = [*blocks] or [block(MIB, "a", "b"), block(MIB, "b", "a"), block(MIB, "b")]
    return node


async def test_the_bytes_of_a_file_are_counted_by_the_hosts_of_its_blocks() -> None:
    async with locating(one_file()) as locator:
        found = await locator.where("hdfs://127.0.0.1:8020/data", "ada")
    assert found.total == 3 * MIB
    assert found.by_hosts == {frozenset("ab"): 2 * MIB, frozenset("b"): MIB}


async def test_hosts_are_known_by_their_names_and_addresses() -> None:
    node = one_file(5, {"length": 5, "hosts": ["a.example.org"], "names": ["10.0.0.1:9866", "[::1]:9866"]})
    async with locating(node) as locator:
        found = await locator.where("hdfs://127.0.0.1:8020/data", "ada")
    assert found.by_hosts == {frozenset(("a.example.org", "10.0.0.1", "::1")): 5}


async def test_all_files_below_a_folder_count_but_links_and_unfinished_copies() -> None:
    node = PaperNameNode()
    node.found["/d e%"] = status(kind="DIRECTORY")
    node.listed["/d e%"] = [
        status("a", 5), status("b", 7), status("c.corral-part", 100), status("d", kind="DIRECTORY"),
        status("e", 9, kind="SYMLINK"), status("f", 0),
    ]  # fmt: skip
    node.listed["/d e%/d"] = [status("g", 11)]
    node.blocks = {"/d e%/a": [block(5, "x")], "/d e%/b": [block(7, "y")], "/d e%/d/g": [block(11, "x")]}
    async with locating(node) as locator:
        found = await locator.where("webhdfs://127.0.0.1/d e%/", "ada")
    assert (found.total, found.by_hosts) == (23, {frozenset("x"): 16, frozenset("y"): 7})
    assert node.count("LISTSTATUS_BATCH") == 4, "three pages and one"


async def test_of_many_files_the_largest_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_locations, "_MOST_FILES", 3)
    node = PaperNameNode()
    node.page = 1000
    node.found["/d"] = status(kind="DIRECTORY")
    node.listed["/d"] = [status(f"f{at}", at) for at in range(1, 10)]
    node.blocks = {f"/d/f{at}": [block(at, "x")] for at in range(1, 10)}
    async with locating(node) as locator:
        found = await locator.where("hdfs://127.0.0.1/d", "ada")
    assert (found.total, found.by_hosts, node.count("GETFILEBLOCKLOCATIONS")) == (45, {frozenset("x"): 24}, 3)


async def test_an_answer_is_used_again_until_the_file_changes_or_it_is_old() -> None:
    node, now = one_file(), [0.0]
    async with locating(node, now=lambda: now[0]) as locator:

        async def asked() -> int:
            await locator.where("hdfs://127.0.0.1/data", "ada")
            return node.count("GETFILEBLOCKLOCATIONS")

        assert [await asked(), await asked()] == [1, 1]
        node.found["/data"]["modificationTime"] = 2
        assert [await asked(), await asked()] == [2, 2]
        now[0] = 601.0
        assert [await asked(), await asked()] == [3, 3]


async def test_it_asks_the_active_one_of_a_pair_from_then_on_and_for_the_account() -> None:
    standby, active = PaperNameNode(), one_file()
    standby.says = lambda operation, path: (
        403,
        refusal("StandbyException", "Operation category READ is in state standby"),
    )
    async with locating(standby, active, acts_for={"ada": "ada_l", "eve": "corral"}.__getitem__) as locator:
        for account in ("ada", "eve"):
            await locator.where("hdfs://service/data", account)
    assert len(standby.calls) == 1
    assert [query.get("doas") for _, _, query in active.calls] == ["ada_l", "ada_l", None, None]
    assert {query["user.name"] for _, _, query in active.calls} == {"corral"}


def _endless() -> Iterator[bytes]:
    yield b'{"FileStatus": {"x": "'
    while True:
        yield b"x" * 65536


STATUS, BLOCKS = "GETFILESTATUS", "GETFILEBLOCKLOCATIONS"


def blocks(*found: dict[str, Any]) -> Answer:
    return 200, {"BlockLocations": {"BlockLocation": list(found)}}


_SAFE = refusal("SafeModeException", "Cannot get locations. Name node is in safe mode.")
_DENIED = refusal("AccessControlException", "Permission denied: user=ada")
BROKEN: dict[str, tuple[Answer, str, type[CorralError], str]] = {
    "endless": ((200, _endless), STATUS, Unavailable, "has more than 8 MiB"),
    "no-json": ((200, b"<html>"), STATUS, Unavailable, "unknown form"),
    "deep": ((200, b"[" * 100_000), STATUS, Unavailable, "unknown form"),
    "negative": (blocks(block(-5, "a")), BLOCKS, Unavailable, "unknown form"),
    "huge": (blocks(block(10**30, "a")), BLOCKS, Unavailable, "unknown form"),
    "long-host": (blocks(block(1, "a" * 10_000)), BLOCKS, Unavailable, "unknown form"),
    "too-many-bytes": (blocks(block(4 * MIB, "a")), BLOCKS, Unavailable, "more bytes"),
    "no-permission": ((403, _DENIED), STATUS, Forbidden, "Permission denied: user=ada."),
    "safe-mode": ((403, _SAFE), BLOCKS, Unavailable, "Name node is in safe mode."),
    "not-there": ((404, {}), STATUS, NotFound, "HTTP 404."),
    "odd-refusal": ((500, {"RemoteException": [1]}), STATUS, Unavailable, "HTTP 500."),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_what_is_refused_or_broken_is_one_sentence(case: str) -> None:
    said, at, kind, words = BROKEN[case]
    node = one_file()
    node.says = lambda operation, path: said if operation == at else None
    async with locating(node) as locator:
        with pytest.raises(kind) as raised:
            await locator.where("hdfs://127.0.0.1/data", "ada")
    assert type(raised.value) is kind and words in raised.value.message and "\n" not in raised.value.message


async def test_lists_without_end_and_folders_with_too_much_are_given_up() -> None:
    node = PaperNameNode()
    node.found["/d"] = status(kind="DIRECTORY")
    page = {"FileStatuses": {"FileStatus": [status("a", 1)]}}

    def listed(left: int) -> Callable[[str, str], Answer | None]:
        said = {"DirectoryListing": {"partialListing": page, "remainingEntries": left}}
        return lambda operation, path: (200, said) if operation == "LISTSTATUS_BATCH" else None

    async with locating(node) as locator:
        for left, words in ((1, "does not go on"), (10**6, "more than 20,000 files and folders")):
            node.says = listed(left)
            with pytest.raises(Unavailable, match=words):
                await locator.where("hdfs://127.0.0.1/d", "ada")
        node.says = lambda operation, path: None
        node.listed["/d"] = [status(f"f{at}", 1 << 53) for at in range(2)]
        with pytest.raises(Unavailable, match="more bytes than can be counted"):
            await locator.where("hdfs://127.0.0.1/d", "ada")


async def test_a_name_node_that_is_slow_or_gone_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_locations, "_SECONDS", 0.2)
    silent = await asyncio.start_server(lambda reader, writer: asyncio.sleep(60), "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    locator = BlockLocator([NameNodes((f"http://127.0.0.1:{port}",), "corral")])
    with pytest.raises(Unavailable, match=r"did not say within|does not answer"):
        await locator.where("hdfs://127.0.0.1/data", "ada")
    silent.close()
    with pytest.raises(Unavailable):
        await locator.where("hdfs://127.0.0.1/data", "ada")
    await locator.close()


async def test_only_of_a_pair_is_a_connection_given_up_before_the_rest_of_the_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A connection may take longer over a slow network, and there is no other NameNode to ask."""
    monkeypatch.setattr(block_locations, "_CONNECT", 0.0)
    async with locating(one_file()) as locator:
        assert (await locator.where("hdfs://127.0.0.1/data", "ada")).total == 3 * MIB
    async with locating(one_file(), one_file()) as locator:
        with pytest.raises(Unavailable, match="No NameNode says where /data is"):
            await locator.where("hdfs://127.0.0.1/data", "ada")


async def test_only_configured_name_nodes_are_asked() -> None:
    pair = NameNodes(("http://nn1:9870", "http://nn2.example.org:9870"), "corral")
    other = name_nodes_of(" http://10.0.0.5:9870/ ,")
    assert other.urls == ("http://10.0.0.5:9870",)
    locator = BlockLocator([pair, other])
    known = ["hdfs://nn1/x", "hdfs://nn1:8020/x", "webhdfs://nn2.example.org:9870/x", "hdfs://service/x", "hdfs:///x",
             "hdfs://10.0.0.5:9000/x"]  # fmt: skip
    unknown = [
        "hdfs://elsewhere:8020/x",
        "webhdfs://elsewhere/x",
        "webhdfs:///x",
        "s3://nn1/x",
        "hdfs://nn1:x/",
        "/x",
        "",
    ]
    assert [uri for uri in known if not locator.knows(uri)] == []
    assert [uri for uri in unknown if locator.knows(uri)] == []
    with pytest.raises(NotFound, match="No NameNode is configured for"):
        await locator.where("hdfs://elsewhere:8020/x", "ada")
    assert not BlockLocator([]).knows("hdfs:///x")
    with pytest.raises(InvalidInput, match="write http://HOST:9870"):
        name_nodes_of("nn1:9870")
    await locator.close()
