"""Any front reads and follows a growing log on the leader's machine through control, also during a change of leader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from corral.api.log_reader import follow_source, read_source
from corral.control.log_api import LogApi
from corral.kernel.errors import CorralError, InvalidInput, Unavailable
from corral.kernel.ids import AttemptId
from corral.service.logs.attempt_log import TaskLog
from corral.service.logs.log_source import LeadersLog, SharedLogs
from tests.storage.moody import TASK, Machine, Moody


async def refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, CorralError)
    return JSONResponse({"code": error.code, "message": error.message}, status_code=error.status)


class Leading:
    """The connection to the current leader, if there is one."""

    def __init__(self) -> None:
        self.machine: Machine | None = None
        self.asked = 0

    async def pull(self, path: str) -> tuple[Mapping[str, str], bytes]:
        self.asked += 1
        if self.machine is None:
            raise Unavailable("no-control", "Nobody leads.")
        routes = [LogApi(self.machine.shelf).route()]
        transport = httpx2.ASGITransport(app=Starlette(routes=routes, exception_handlers={CorralError: refusal}))
        async with httpx2.AsyncClient(transport=transport, base_url="http://control") as client:
            answer = await client.get(path)
        if answer.status_code >= 400:
            raise InvalidInput(answer.json()["code"], answer.json()["message"])
        return answer.headers, answer.content


@pytest.fixture
def remote() -> Moody:
    return Moody()


@pytest.fixture
def machines(tmp_path: Path, remote: Moody) -> list[Machine]:
    return [Machine(tmp_path / name, remote.archive()) for name in ("one", "two", "front")]


@pytest.fixture
def leading(machines: list[Machine]) -> Leading:
    made = Leading()
    made.machine = machines[0]
    return made


@pytest.fixture
def front(machines: list[Machine], leading: Leading) -> SharedLogs:
    return SharedLogs(machines[2].store, machines[2].archiver.archive, leading.pull)


async def gathered(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


async def over() -> bool:
    return False


def as_task(log: LeadersLog) -> TaskLog:
    return TaskLog(TASK, "all", log, over)


async def test_a_growing_log_is_read_from_the_leaders_disk(
    front: SharedLogs, machines: list[Machine], leading: Leading
) -> None:
    machines[0].write(b"one\ntwo\nthree\n")
    source = await front.source(TASK)
    assert isinstance(source, LeadersLog)
    assert (await source.size(), await source.tail(1), await source.complete()) == (14, 8, False)
    assert await gathered(read_source(as_task(source), 4, 8)) == b"two\n"


async def test_a_log_is_followed_while_the_lead_moves(
    front: SharedLogs, machines: list[Machine], leading: Leading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.service.logs.log_source._PAUSE", 0.01)
    one, two, _ = machines
    one.write(b"from one\n")
    source = await front.source(TASK)
    assert isinstance(source, LeadersLog)
    pieces = follow_source(as_task(source), 0)
    assert await anext(pieces) == b"from one\n"
    waiting = asyncio.ensure_future(anext(pieces))
    one.grows()
    await one.archiver.sweep()
    leading.machine, asked = None, leading.asked
    one.write(b"")  # the machine is lost
    while leading.asked < asked + 3:
        await asyncio.sleep(0.01)
    await two.archiver.restore(TASK)
    leading.machine = two
    two.write(b"from two\n")
    assert await asyncio.wait_for(waiting, 120) == b"from two\n"
    two.store.finish(TASK)
    assert [piece async for piece in pieces] == []


async def test_an_ended_log_needs_nobody_to_lead(front: SharedLogs, machines: list[Machine], leading: Leading) -> None:
    machines[0].write(b"all of it")
    machines[0].store.finish(TASK)
    assert await (await front.source(TASK)).complete(), "not archived yet: the leader has it"
    await machines[0].archiver.sweep()
    leading.machine = None
    source = await front.source(TASK)
    assert await source.complete() and await source.read(0, 100) == (0, b"all of it")


async def test_with_nobody_to_lead_what_is_archived_is_shown(
    front: SharedLogs, machines: list[Machine], leading: Leading
) -> None:
    leading.machine = None
    with pytest.raises(Unavailable):
        await front.source(TASK)
    machines[0].write(b"so far")
    machines[0].grows()
    await machines[0].archiver.sweep()
    assert await (await front.source(TASK)).read(0, 100) == (0, b"so far")


async def test_what_is_no_log_is_refused_at_the_door(front: SharedLogs, leading: Leading) -> None:
    assert leading.machine is not None
    Path(leading.machine.store.prepare(TASK)[0]).write_text("both streams\n")
    for attempt, stream in ((TASK, "../x"), (AttemptId("x"), "all"), (TASK, "stderr")):
        with pytest.raises(InvalidInput):
            await front.source(attempt, stream)
    with pytest.raises(InvalidInput, match="must be a number"):
        await leading.pull(f"/logs/{TASK}/all?offset=-1")
    with pytest.raises(InvalidInput, match="attempt"):
        await leading.pull("/logs/%2e%2e/all")


async def test_a_follower_ends_when_the_rest_of_a_log_is_lost(
    front: SharedLogs, machines: list[Machine], leading: Leading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.service.logs.log_source._WAIT_SECONDS", 0)
    monkeypatch.setattr("corral.service.logs.attempt_log._LOST_SECONDS", 0.05)
    monkeypatch.setattr("corral.api.log_reader.WAIT", 0.01)
    one, two, _ = machines
    one.write(b"half of it")
    one.grows()
    await one.archiver.sweep()
    leading.machine = two  # one machine is lost, and the attempt has ended meanwhile
    source = await front.source(TASK)

    async def ended() -> bool:
        return True

    assert await gathered(follow_source(TaskLog(TASK, "all", source, ended), 0)) == b"half of it"
