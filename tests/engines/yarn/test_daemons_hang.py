"""Daemons of Hadoop's that take calls and do not answer: each call has its end, and its cause is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from corral.engines.yarn import hadoop_rest
from corral.engines.yarn.engine import YarnEngine
from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.engines.yarn.job_loops import JobLoops
from corral.engines.yarn.records import BURIED, Holder
from corral.engines.yarn.slots import Attempt, Phase, SlotTable
from corral.kernel.errors import Unavailable
from corral.kernel.ids import AttemptId
from corral.model.launch import Exited
from corral.storage.log_files import LogStore
from tests.engines.yarn.test_services_that_end import ATTEMPT
from tests.engines.yarn.test_services_that_failed import SETTINGS

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def daemon(answer: Answer) -> AsyncIterator[str]:
    """A daemon at HOST:PORT that takes calls, and answers them so."""
    left = list[asyncio.StreamWriter]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        await answer(writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for each in left:
            each.close()


async def silence(writer: asyncio.StreamWriter) -> None:
    """Answer nothing."""


async def trickle(writer: asyncio.StreamWriter) -> None:
    """Answer with a byte now and then, without end."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while not writer.is_closing():
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)


async def refusal(call: Callable[[HadoopRest], Awaitable[Any]], url: str) -> str:
    """The message of the error with which a call of the NameNode at an address ends."""
    rest = HadoopRest("NameNode", [f"http://{url}"], "me")
    try:
        with pytest.raises(Unavailable) as error:
            await call(rest)
    finally:
        await rest.close()
    assert error.value.code == "hadoop-unreachable"
    return error.value.message


async def test_a_name_node_that_is_silent_is_named_with_what_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hadoop_rest, "CALL_SECONDS", 1.0)
    async with daemon(silence) as at:
        said = await refusal(lambda rest: rest.ask("GET", "/webhdfs/v1/", op="LISTSTATUS"), at)
        assert said == f"The NameNode at http://{at} does not answer: it took the call and was silent for 1 s."


async def test_a_name_node_that_answers_without_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hadoop_rest, "_WHOLE_SECONDS", 1.0)
    async with daemon(trickle) as at:
        said = await refusal(lambda rest: rest.ask("GET", "/webhdfs/v1/", op="LISTSTATUS"), at)
        assert said == f"The NameNode at http://{at} does not answer: its answer was not complete after 1 s."


@pytest.mark.parametrize("call", ["put_file", "read_file"])
@pytest.mark.parametrize("hang", [silence, trickle])
async def test_a_data_node_that_hangs_is_named_with_the_file(
    monkeypatch: pytest.MonkeyPatch, call: str, hang: Answer
) -> None:
    monkeypatch.setattr(hadoop_rest, "CALL_SECONDS", 3.0)  # the NameNode must answer within it
    monkeypatch.setattr(hadoop_rest, "_WHOLE_SECONDS", 3.0)
    async with daemon(hang) as data:

        async def place(writer: asyncio.StreamWriter) -> None:
            body = json.dumps({"Location": f"http://{data}/webhdfs/v1/a/slot.json"}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()

        async with daemon(place) as name:
            given = (b"content",) if call == "put_file" else ()
            said = await refusal(lambda rest: getattr(rest, call)("/webhdfs/v1/a/slot.json", *given), name)
    assert said.startswith(f"The DataNode at {data} does not answer for /a/slot.json: ")


async def test_a_stop_that_hdfs_did_not_take_is_made_good_by_its_repetition(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refusals = [Unavailable("hadoop-unreachable", "The NameNode does not answer.")]

    async def ask(self: HadoopRest, method: str, path: str, **_: Any) -> Any:
        if refusals:
            raise refusals.pop()

    monkeypatch.setattr(HadoopRest, "ask", ask)
    engine = YarnEngine(SETTINGS, secret=b"k" * 32, logs=LogStore(tmp_path))
    with pytest.raises(Unavailable):
        await engine.stop(ATTEMPT, grace_seconds=0.0)
    await engine.stop(ATTEMPT, grace_seconds=0.0)
    async with asyncio.timeout(60):
        told = await anext(aiter(engine.watch()))
    assert isinstance(told, Exited) and (told.attempt, told.code) == (ATTEMPT, 128 + 15)
    await engine.stop(ATTEMPT, grace_seconds=0.0)
    assert engine._events.queue.empty(), "an end is told once"
    await engine.close()


class Lost:
    """Records of HDFS, whose first answer is lost although the record is written."""

    def __init__(self) -> None:
        self.kept, self.calls = set[str](), 0

    async def write(self, attempt: AttemptId, holder: Holder) -> None:
        self.kept.add(holder.container)
        self.calls += 1
        if self.calls == 1:
            raise Unavailable("hadoop-unreachable", "The NameNode does not answer.")

    async def remove(self, attempt: AttemptId, holder: Holder) -> None:
        self.kept.discard(holder.container)


@pytest.mark.parametrize("second", ["container_1", "container_2"])
async def test_an_attempt_has_one_record_though_the_answer_to_its_first_was_lost(second: str) -> None:
    records, attempt = Lost(), Attempt(ATTEMPT, Phase.PENDING)
    unused: Any = None
    loops = JobLoops(SETTINGS, SlotTable(), unused, records, unused, unused, unused, unused)  # type: ignore[arg-type]
    with pytest.raises(Unavailable):
        await loops._record(attempt, Holder("container_1"))
    await loops._record(attempt, Holder(second))
    assert records.kept == {second}


@pytest.mark.parametrize("ends", ["it is stopped", "its start is late"])
async def test_a_forgotten_attempt_has_no_record_though_the_answer_to_its_first_was_lost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ends: str
) -> None:
    """A record that is left would make the next server take the attempt for one that a container has."""
    kept = set[str]()

    async def ask(self: HadoopRest, method: str, path: str, *, op: str = "", **_: Any) -> Any:
        name = path.rpartition("/")[2]
        if op == "MKDIRS":
            kept.add(name)
            if "buried" not in name:
                raise Unavailable("hadoop-unreachable", "The NameNode does not answer.")
        elif op == "DELETE":
            kept.discard(name)

    monkeypatch.setattr(HadoopRest, "ask", ask)
    engine = YarnEngine(SETTINGS, secret=b"k" * 32, logs=LogStore(tmp_path))
    attempt = engine._table.attempts[ATTEMPT] = Attempt(ATTEMPT, Phase.PENDING)
    with pytest.raises(Unavailable):
        await engine._loops._record(attempt, Holder("container_1"))
    assert len(kept) == 1
    if ends == "it is stopped":
        await engine.stop(ATTEMPT, grace_seconds=0.0)
        assert [name.rpartition("%40")[2] for name in kept] == ["buried"], "it has one record, that it never starts"
    else:
        attempt.container = BURIED
        engine._events.end(attempt, -120, "YARN gave no container")
    await engine.forget([ATTEMPT])
    assert not kept
    await engine.close()
