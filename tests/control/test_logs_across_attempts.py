"""A log follower goes on from attempt to attempt, even if one of them wrote nothing, wherever its log is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import httpx2
import msgspec
import pytest
import pytest_asyncio
from starlette.applications import Starlette

from corral.api.log_reader import follow_source
from corral.control.log_api import LogApi
from corral.kernel.errors import NotFound, Unavailable
from corral.kernel.ids import JobId, attempt_id
from corral.model.accounts import User
from corral.model.inventory import Device
from corral.model.launch import InventoryChanged
from corral.model.store_writes import IntentKind
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.logs.attempt_log import TaskLog
from corral.service.logs.log_source import Logs, SharedLogs
from corral.service.service import Service
from corral.storage.log_files import LogStore
from corral.storage.log_sources import LogSources
from tests.control.harness import House, short
from tests.control.test_gangs_yield import wish

ADA = Actor("ada", token_id="t-ada")


class Tasks:
    """A house, the disk of its tasks' logs, and a service that reads them."""

    def __init__(self, house: House, disk: LogStore, logs: Logs) -> None:
        self.house, self.disk = house, disk
        self.service = Service(Context(house.store, key=b"k" * 32, clock=house.clock, logs=logs))

    def print(self, job: JobId, text: bytes, *numbers: int, index: int = 0) -> None:
        """Write a line to the log of an attempt."""
        with open(self.disk.prepare(attempt_id(job, numbers[0], "worker", index, numbers[1]))[0], "ab") as file:
            file.write(text)

    def end(self, job: JobId, code: int, *numbers: int, index: int = 0) -> None:
        """End an attempt after its log is complete, as every engine does."""
        attempt = attempt_id(job, numbers[0], "worker", index, numbers[1])
        self.disk.finish(attempt)
        self.house.engine.end(attempt, code)

    async def starts(self, job: JobId, *numbers: int, index: int = 0) -> None:
        """Wait until an attempt runs."""
        async with self.house.patience():
            while attempt_id(job, numbers[0], "worker", index, numbers[1]) not in self.house.engine.running:
                await self.house.store.wakeup.wait(0.02)

    async def follow(self, job: JobId, index: int = 0, attempt: str = "") -> asyncio.Task[bytes]:
        """A running follower; it is done when the followed attempt or task has ended."""
        source = await self.service.task_logs.of_task(ADA, job, "worker", index, attempt=attempt)

        async def gather() -> bytes:
            return b"".join([piece async for piece in follow_source(source, 0)])

        return asyncio.create_task(gather())


async def of_the_leader(disk: LogStore, path: str) -> tuple[Mapping[str, str], bytes]:
    """The leader machine's answer to another machine that asks for one of its logs."""
    transport = httpx2.ASGITransport(app=Starlette(routes=[LogApi(LogSources(disk)).route()]))
    async with httpx2.AsyncClient(transport=transport, base_url="http://control") as client:
        answer = await client.get(path)
        return answer.headers, answer.content


@pytest_asyncio.fixture(params=["on this machine", "on the leader's"])
async def tasks(house: House, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Tasks]:
    await house.store.add_user(User("ada"))
    disk, own = LogStore(tmp_path / "logs"), LogStore(tmp_path / "own")
    disk.open()
    own.open()
    there = SharedLogs(own, None, lambda path: of_the_leader(disk, path))
    made = Tasks(house, disk, LogSources(disk) if request.param == "on this machine" else there)
    yield made
    await made.service.close()


async def test_an_attempt_that_never_began_holds_up_no_follower(tasks: Tasks) -> None:
    house = tasks.house

    def away(call: str) -> None:
        if call == "start":
            raise Unavailable("engine-away", "The engine is away.")

    house.engine.fault = away
    await house.begin()
    job = await house.submit(short("wide", devices=4))
    await house.until(job, "starting")
    whole, named = await tasks.follow(job), await tasks.follow(job, attempt="0.0")
    (node,) = house.engine._nodes
    house.engine._nodes = (msgspec.structs.replace(node, devices=node.devices[:2]),)
    house.engine._events.put_nowait(InventoryChanged(house.engine.name))
    await house.until(job, "waiting")
    async with house.patience():
        assert await named == b"", "it is over, though it never wrote"
    house.engine.fault = lambda call: None
    devices = tuple(Device(index, f"node0:{index}", described=True) for index in range(4))
    house.engine._nodes = (msgspec.structs.replace(node, devices=devices),)
    house.engine._events.put_nowait(InventoryChanged(house.engine.name))
    await tasks.starts(job, 0, 1)
    tasks.print(job, b"tick\n", 0, 1)
    tasks.end(job, 0, 0, 1)
    async with house.patience():
        assert await whole == b"tick\n"
    first, second = (await house.store.job_attempts(job, "worker", 0)).items[::-1]
    assert first.ended_at is not None and first.exit is not None and second.exit is not None
    assert first.exit.message == ("it lost its place before it started: devices 2, 3 of the node local/node0 are gone")


async def test_a_job_that_had_to_yield_goes_on_in_the_same_log(tasks: Tasks) -> None:
    house = tasks.house
    await house.begin()
    job = await house.submit(short("patient"))
    await tasks.starts(job, 0, 0)
    tasks.print(job, b"one\n", 0, 0)
    whole, first = await tasks.follow(job), await tasks.follow(job, attempt="latest")
    await wish(house, job, IntentKind.SUSPEND)
    await house.when(job, lambda record: record.run.suspended and record.phase == "waiting")
    tasks.disk.finish(attempt_id(job, 0, "worker", 0, 0))
    async with house.patience():
        assert await first == b"one\n"
    source = await tasks.service.task_logs.of_task(ADA, job, "worker", 0)
    assert await source.read(0, 100) == (0, b"one\n"), "what it printed is there while it waits"
    await source.close()
    await wish(house, job, IntentKind.RESUME)
    await tasks.starts(job, 1, 0)
    tasks.print(job, b"two\n", 1, 0)
    tasks.end(job, 0, 1, 0)
    async with house.patience():
        said = await whole
    assert said.startswith(b"one\n\n[corral: attempt 0.0 ended: ") and said.endswith(b"; attempt 1.0 follows]\ntwo\n")
    ((_, _, log),) = await tasks.service.task_logs.of_job(ADA, job)
    assert await log.size() == len(said)
    await log.close()


async def test_a_task_that_completed_ends_its_follower_while_others_run_on(tasks: Tasks) -> None:
    house = tasks.house
    await house.begin()
    job = await house.submit(short("two", replicas=2))
    await tasks.starts(job, 0, 0, index=0)
    await tasks.starts(job, 0, 0, index=1)
    following = await tasks.follow(job, 1)
    tasks.print(job, b"done\n", 0, 0, index=1)
    tasks.end(job, 0, 0, 0, index=1)
    async with house.patience():
        assert await following == b"done\n"
    assert (await house.store.find_job(job)).phase == "running"  # type: ignore[union-attr]


async def test_a_job_that_was_never_given_a_place_ends_its_followers_with_it(tasks: Tasks) -> None:
    house = tasks.house
    await house.begin()
    job = await house.submit(short("too-wide", devices=8))
    await house.explained(job)
    followers = [await tasks.follow(job), await tasks.follow(job, attempt="0.0")]
    await wish(house, job, IntentKind.STOP)
    async with house.patience():
        assert [await each for each in followers] == [b"", b""]


async def test_a_log_that_its_disk_never_completed_ends_some_time_after_its_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.service.logs.attempt_log._LOST_SECONDS", 0.05)
    monkeypatch.setattr("corral.api.log_reader.WAIT", 0.01)
    disk = LogStore(tmp_path / "logs")
    disk.open()
    attempt = attempt_id(JobId("j000000000000"), 0, "worker", 0, 0)
    Path(disk.prepare(attempt)[0]).write_bytes(b"half of it")

    async def ended() -> bool:
        return True

    log = TaskLog(attempt, "all", disk.source(attempt), ended)
    assert b"".join([piece async for piece in follow_source(log, 0)]) == b"half of it"


@pytest.mark.parametrize("number", ["0.1", "1.0", "999999999.999999999"])
async def test_an_attempt_that_was_never_made_is_not_there(tasks: Tasks, number: str) -> None:
    await tasks.house.begin()
    job = await tasks.house.submit(short("one"))
    await tasks.starts(job, 0, 0)
    with pytest.raises(NotFound, match="has no attempt"):
        await tasks.service.task_logs.of_task(ADA, job, "worker", 0, attempt=number)
    job_attempt, task_attempt = map(int, number.split("."))
    by_id = attempt_id(JobId(job), job_attempt, "worker", 0, task_attempt)
    with pytest.raises(NotFound, match="has no attempt"):
        await tasks.service.task_logs.of_task(ADA, job, "worker", 0, attempt=by_id)
    made = attempt_id(JobId(job), 0, "worker", 0, 0)
    assert (await tasks.service.task_logs.of_task(ADA, job, "worker", 0, attempt=made)).attempt == made
