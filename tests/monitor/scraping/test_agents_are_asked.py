"""Agents are asked within bounds of time and size, and one that is slow, dead or wrong delays no other."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest
from structlog.testing import capture_logs

from corral.kernel.errors import Conflict, CorralError, Unavailable
from corral.model.metrics.agent_page import MOST_BYTES, AgentPage, AgentVersions, encode_page, encode_values, read_page
from corral.model.metrics.device_families import DeviceMetric
from corral.model.metrics.families import Metric
from corral.model.metrics.node_families import NodeMetric
from corral.model.metrics.samples import Samples, Value
from corral.monitor.scraping.addresses import Address
from corral.monitor.scraping.agent_client import Target, ask, read_token
from corral.monitor.scraping.scraper import Scraper, ahead_by
from tests.reserved import free_port

_HANG: Final = 120.0
"""Seconds after which a wait has failed; not a bound on speed."""
CLOCK: Final = Value(NodeMetric.CLOCK, (), 0.5)
GOOD: Final = encode_page("gpu-7", 1000.0, encode_values(Samples((CLOCK,))))
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def whole(body: bytes, first: str = "HTTP/1.1 200 ", length: int | None = None) -> bytes:
    """An answer with its head."""
    return f"{first}\r\nContent-Length: {len(body) if length is None else length}\r\n\r\n".encode() + body


def answering(data: bytes) -> Answer:
    """Answers everything with these bytes."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        await writer.drain()
        writer.close()

    return answer


def endless(begin: bytes, part: bytes) -> Answer:
    """Answers without end, until the caller goes."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(begin)
        try:
            while True:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)  # drain alone does not yield while there is room
        except OSError:
            pass
        finally:
            writer.close()

    return answer


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Takes a request, and never answers."""
    await reader.read()
    writer.close()


@asynccontextmanager
async def at(answer: Answer) -> AsyncIterator[Address]:
    """A server on loopback."""

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            writer.close()

    server = await asyncio.start_server(guarded, "127.0.0.1", 0)
    try:
        yield Address(False, "127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()


BAD: Final[dict[str, tuple[Answer, str]]] = {
    "endless-head": (endless(b"HTTP/1.1 200 \r\n", b"X: " + b"x" * 5000 + b"\r\n"), "not that of a node's agent"),
    "endless-body": (endless(b"HTTP/1.1 200 \r\n\r\n", b"x" * 65_536), "does not say how long its answer is"),
    "chunks": (endless(b"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 10_000), "not say how"),
    "huge": (endless(b"HTTP/1.1 200 \r\nContent-Length: 99999999999\r\n\r\n", b"x" * 65_536), "more than 8 MiB"),
    "two-lengths": (answering(b"HTTP/1.1 200 \r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"), "how long"),
    "no-http": (answering(b"\x00\xff\x16\x03" * 20 + b"\r\n\r\n"), "not that of a node's agent"),
    "nothing": (answering(b""), "not that of a node's agent"),
    "ends-early": (answering(whole(GOOD, length=len(GOOD) + 1)), "not that of a node's agent"),
    "redirect": (answering(b"HTTP/1.1 302 \r\nLocation: http://169.254.169.254/\r\n\r\n"), "the status 302"),
    "wrong-token": (answering(whole(b"no", "HTTP/1.1 401 ")), "does not know the token"),
}


@pytest.mark.parametrize("name", BAD)
async def test_an_answer_that_is_none_is_refused_in_a_sentence(name: str) -> None:
    answer, said = BAD[name]
    async with at(answer) as address:
        with pytest.raises(Unavailable, match=said) as refused:
            await ask(Target(address, address.host), "s3cret", _HANG)
    assert "s3cret" not in refused.value.message and refused.value.message.endswith(".")


async def test_a_refused_token_is_told_as_whose_it_is() -> None:
    async with at(answering(whole(b"no", "HTTP/1.1 401 "))) as address:
        for asked, said in ((address, "`agents_token_file`"), (address._replace(engine="yarn"), "another program")):
            with pytest.raises(Unavailable, match=said):
                await ask(Target(asked, asked.host), "s3cret", _HANG)


async def test_an_agent_that_does_not_answer_or_is_not_there_is_given_up() -> None:
    async with at(silent) as address:
        with pytest.raises(Unavailable, match=r"did not answer within 0.05 s"):
            await ask(Target(address, address.host), "", 0.05)
    nobody = Address(False, "127.0.0.1", free_port())
    with pytest.raises(Unavailable, match="cannot be reached"):
        await ask(Target(nobody, nobody.host), "", _HANG)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe\x00",
        b"# HELP x\nx 1\n",
        b"[]",
        b'{"node": "", "clock": 1, "values": []}',
        b'{"node": "n", "clock": "x", "values": []}',
        b'{"node": "n", "clock": 1e999, "values": []}',
        b'{"node": "n", "clock": 1, "values": [["a"]]}',
        b'{"node": "n", "clock": 1, "values": [["a", [1], 1]]}',
        b'{"node": "n", "clock": 1, "values": [], "more": ' + b"[" * 200_000,
        b'{"node": "n", "clock": 1, "values": [' + b'["a",[],1],' * 60_000 + b'["a",[],1]]}',
        b'{"node": "' + b"n" * 254 + b'", "clock": 1, "values": []}',
        b'{"node": "n", "clock": 1, "values": [], "versions": {"agent": "' + b"9" * 201 + b'"}}',
        b'{"node": "n", "clock": 1, "values": [], "versions": {"kernel": "6.1\\u202e"}}',
        b'{"node": "n", "clock": 1, "values": [], "versions": {"runs_on": [' + b'"x",' * 16 + b'"x"]}}',
    ],
)
def test_a_body_that_is_no_page_is_refused(body: bytes) -> None:
    with pytest.raises(CorralError, match="Its answer"):
        read_page(body)


def test_of_a_page_only_figures_of_machines_tasks_and_devices_are_taken() -> None:
    told = [
        CLOCK,
        Value(Metric.SCHEDULER_UP, (), 0.0),
        Value("corral_of_a_newer_agent", ("x",), 1.0),
        Value(DeviceMetric.USE, ("nvidia",), 1.0),
        Value(NodeMetric.DISK_READ, ("x" * 1001,), 1.0),
        Value(NodeMetric.DISK_READ, ("sda",), 1.0),
        Value(NodeMetric.DISK_READ, ("sda",), 2.0),
    ]
    body = msgspec.json.encode({"node": "n", "clock": 3, "values": told})
    assert read_page(body) == AgentPage("n", 3.0, (CLOCK, Value(NodeMetric.DISK_READ, ("sda",), 2.0)))
    assert read_page(body).versions == AgentVersions(), "an agent that is older tells none"
    told_versions = AgentVersions("9.9", "6.1.0", ("Debian GNU/Linux 12", "nvidia 550.54"))
    assert read_page(encode_page("n", 3.0, b"[]", versions=told_versions)).versions == told_versions
    own = Samples((Value(Metric.SCHEDULER_UP, (), 0.0), Value(NodeMetric.CLOCK, (), float("nan")), CLOCK))
    assert read_page(encode_page("n", 3.0, encode_values(own))).values == (CLOCK,)


def test_the_page_of_a_full_machine_is_within_the_bound() -> None:
    labels = ("someone", "someone~" + "j" * 40, "worker", "1", "01jc8x4mzkq7w", "research")
    values = [
        Value("task_cpu_percent", (*labels[:3], str(task * 14 + each), *labels[4:]), 1 / 3)
        for task in range(2000)
        for each in range(14)
    ]
    page = encode_page("n", 1.0, encode_values(Samples(tuple(values))))
    assert len(page) < MOST_BYTES and len(read_page(page).values) == 28_000


@pytest.mark.parametrize(
    ("clock", "ahead"), [(9.0, -1.0), (10.0, 0.0), (11.0, 0.0), (12.0, 0.0), (12.5, 0.5), (0.0, -10.0)]
)
def test_a_clock_is_ahead_or_behind_by_what_the_time_of_the_answer_does_not_explain(clock: float, ahead: float) -> None:
    assert ahead_by(clock, 10.0, 12.0) == ahead


def test_a_token_is_read_from_its_file_and_never_told(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with pytest.raises(Unavailable, match="cannot be read"):
        read_token(file)
    for wrong in (b"", b"two words", b"a\r\nX: b", b"\xff"):
        file.write_bytes(wrong)
        with pytest.raises(Unavailable, match="token"):
            read_token(file)
    file.write_bytes(b"s3cret\n")
    assert read_token(file) == "s3cret" and read_token(None) == ""


class Takes:
    """What a scraper was told, with an event for each answer."""

    def __init__(self) -> None:
        self.count: dict[Target, int] = {}
        self.refuse = ""

    def __call__(self, target: Target, page: AgentPage, ahead: float) -> None:
        if self.refuse:
            raise Conflict("unwanted", self.refuse)
        self.count[target] = self.count.get(target, 0) + 1

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(_HANG):
            while not holds():
                await asyncio.sleep(0.02)


@asynccontextmanager
async def running(scraper: Scraper) -> AsyncIterator[None]:
    task = asyncio.create_task(scraper.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_an_agent_among_many_that_never_answer_is_asked_round_after_round() -> None:
    takes = Takes()
    async with AsyncExitStack() as stack:
        dead = [await stack.enter_async_context(at(silent)) for _ in range(30)]
        wrong = [await stack.enter_async_context(at(answer)) for answer, _ in BAD.values()]
        good = await stack.enter_async_context(at(answering(whole(GOOD))))
        # Those that never answer are given an hour: if the good one had to wait for them, the test would hang.
        scraper = Scraper(lambda: [*wrong, good, *dead[:11]], takes, seconds=0.02, patience=3600.0)
        with capture_logs() as said:
            async with running(scraper):
                await takes.until(lambda: sum(takes.count.values()) >= 20)
                assert [each.address for each in takes.count] == [good]
                await takes.until(lambda: scraper.silent == len(wrong))
                reasons = {each["agent"]: each["reason"] for each in said if each["event"] == "an agent is not read"}
        assert set(reasons) == {str(each) for each in wrong}
        # After failures, others of their kind wait for each other, and still not those that answer.
        quick = Scraper(lambda: [*dead, good], takes, seconds=0.02, patience=1.0)
        async with running(quick):
            await takes.until(lambda: {each.address for each in quick._failures} >= set(dead))
            before = sum(takes.count.values())
            await takes.until(lambda: sum(takes.count.values()) >= before + 5)


async def test_a_failing_agent_is_told_once_and_when_it_answers_again() -> None:
    takes = Takes()
    takes.refuse = "It is no node of an engine."
    async with at(answering(whole(GOOD))) as address:
        scraper = Scraper(lambda: [address], takes, seconds=0.01, patience=3600.0)
        with capture_logs() as said:
            async with running(scraper):
                await takes.until(lambda: scraper._failures.get(Target(address, "127.0.0.1"), 0) >= 3)
                assert (scraper.answering, scraper.silent) == (0, 1)
                takes.refuse = ""
                await takes.until(lambda: scraper.answering == 1)
        told = [(each["event"], each.get("reason")) for each in said]
        assert told == [
            ("an agent is not read", "It is no node of an engine."),
            ("an agent answers again", None),
        ]


async def test_an_address_that_is_gone_is_asked_no_more_and_a_host_that_is_unknown_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    takes, addresses = Takes(), list[Address]()
    known = socket.getaddrinfo

    def look_up(host: str, *rest: object, **more: object) -> object:
        if host == "no-such-host.invalid":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return known(host, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    async with at(answering(whole(GOOD))) as first, at(answering(whole(GOOD))) as second:
        addresses += [first, second, Address(False, "no-such-host.invalid", 9102)]
        scraper = Scraper(lambda: addresses, takes, seconds=0.01)
        with capture_logs() as said:
            async with running(scraper):
                await takes.until(lambda: {each.address for each in takes.count} == {first, second})
                await takes.until(lambda: any("no-such-host" in str(each.get("agent")) for each in said))
                addresses.remove(first)
                await takes.until(lambda: set(scraper._followed) == {Target(second, "127.0.0.1")})
        assert "Its host is not known" in next(each["reason"] for each in said if "no-such-host" in str(each["agent"]))
