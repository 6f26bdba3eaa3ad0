"""Monitoring that is killed while it writes, or whose writes fail, never stops scheduling, and goes on afterwards."""

from __future__ import annotations

import asyncio
import errno
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol

import pytest

from corral.control.alerts.of_files import keeper_of_files
from corral.control.control_api import ControlApi
from corral.control.health.beside import HealthSettings, health_terms
from corral.control.health.keeper import HealthKeeper
from corral.control.metrics.series_keeper import SeriesKeeper
from corral.control.notifications import notifier_of
from corral.kernel.ids import AttemptId, JobId, parse_attempt_id
from corral.model.health.signs import Sign, SignKind
from corral.model.notifications.channels import Channel, Outgoing
from corral.model.notifications.messages import about_code
from corral.model.series import SeriesQuestion
from corral.monitor.series.store import SeriesStore
from corral.service.secret_box import SecretBox
from corral.settings import Settings
from tests.control.harness import House, PaperEngine, short

TICKS = (0, 1, 2, 4, 8, 16)
"""Turns of the event loop between the beginning of a write and the kill."""
KEY = b"k" * 32


class Part(Protocol):
    """A part of monitoring beside a control."""

    writes: str
    """The method of the store with which it writes."""

    async def prepare(self) -> None:
        """Have something happen that it writes next."""

    def begin(self) -> Coroutine[Any, Any, None]:
        """It, as after a restart."""

    async def whole(self) -> bool:
        """Whether everything that happened is stored, and once."""


class Alerts:
    """A rule whose alert has another value at each evaluation."""

    writes = "replace_alerts"

    def __init__(self, house: House, folder: Path) -> None:
        self._house, self._rules = house, folder / "rules.yml"
        self._rules.write_text("groups: [{name: now, rules: [{alert: Now, expr: vector(time())}]}]\n")
        self._metrics = ControlApi(house.control, folder / "unused.sock").metrics
        self._since = house.clock.now()

    async def prepare(self) -> None:
        self._since = self._house.clock.now()

    def begin(self) -> Coroutine[Any, Any, None]:
        keeper = keeper_of_files(self._rules, None, self._house.control, self._metrics, url="https://here:8470")
        return keeper.run(self._house.control.ready)

    async def whole(self) -> bool:
        values = [each.value for each in await self._house.store.alerts()]
        return len(values) == 1 and values[0] is not None and values[0] >= self._since


class Notifications:
    """A channel that is told of each job that starts; nothing is sent, because the mail server is not there."""

    writes = "queue_messages"

    def __init__(self, house: House, folder: Path) -> None:
        self._house = house
        self._jobs: list[str] = []

    async def prepare(self) -> None:
        if not self._jobs:
            await self._add_channel()
            await self._made().look()  # events from here on are told
        await self._job()

    async def _add_channel(self) -> None:
        at = self._house.clock.now()
        times = {"created_at": at, "code_at": at, "verified_at": at}
        channel = Channel("c1", "ada", "me", "mail", "a@b.org", ("started",), 0, **times)  # type: ignore[arg-type]
        code = Outgoing("code/1", "ada", "c1", "me", about_code("ada", "me", at))
        await self._house.store.add_channel(channel, {}, code)

    async def _job(self) -> None:
        job = await self._house.submit(short(f"told-{len(self._jobs)}"))
        self._jobs.append(job)
        await self._house.until(job, "running")

    def _made(self) -> Any:
        return notifier_of(self._house.control, key=KEY, secret_box=SecretBox(KEY))

    def begin(self) -> Coroutine[Any, Any, None]:
        return self._made().run(self._house.control.ready)  # type: ignore[no-any-return]

    async def whole(self) -> bool:
        items = (await self._house.store.messages_of("ada", limit=100, after_cursor="")).items
        told = [each.job for each in items if each.event == "started"]
        return len(told) == len(set(told)) and set(self._jobs) <= set(told)


class Health:
    """A node with one sign of trouble after another."""

    writes = "keep_health"

    def __init__(self, house: House, folder: Path) -> None:
        self._house = house
        self._signs: list[Sign] = []

    async def prepare(self) -> None:
        source = str(len(self._signs))
        self._signs.append(
            Sign(SignKind.CHECK_FAILED, "local/node0", self._house.clock.now(), "it was seen", source=source)
        )

    def begin(self) -> Coroutine[Any, Any, None]:
        house = self._house
        terms = health_terms(HealthSettings.of(Settings(health="watch")))
        keeper = HealthKeeper(house.control.store, house.clock, terms)
        keeper.add(self._signs[-1:])
        return keeper.run(house.control)

    async def whole(self) -> bool:
        known = await self._house.store.node_health()
        return [each.node for each in known] == ["local/node0"] and bool(known[0].scores)


PARTS: dict[str, Callable[[House, Path], Part]] = {
    "alerts": Alerts, "notifications": Notifications, "health": Health
}  # fmt: skip


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path, PaperEngine(nodes=1, devices=4))
    await made.open()
    await made.begin()
    yield made
    await made.close()


class Writing:
    """Tells when the control's store begins to write with a method, and how many of these writes were cut."""

    def __init__(self, house: House, method: str, patch: pytest.MonkeyPatch, fails: bool = False) -> None:
        self.begun = asyncio.Event()
        self.cut = 0
        write: Callable[..., Awaitable[Any]] = getattr(house.control.store, method)

        async def watched(*given: Any, **named: Any) -> Any:
            self.begun.set()
            if fails:
                raise OSError(errno.ENOSPC, "No space left on device")
            try:
                return await write(*given, **named)
            except asyncio.CancelledError:
                self.cut += 1
                raise

        patch.setattr(house.control.store, method, watched)


async def runs(house: House) -> None:
    """See that a job has its whole life."""
    await house.until(await house.submit(short("lives", end_with=0)), "succeeded")


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("name", PARTS)
async def test_monitoring_that_is_killed_while_it_writes_stops_nothing(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    part = PARTS[name](house, tmp_path)
    writing = Writing(house, part.writes, monkeypatch)
    for ticks in TICKS:
        await part.prepare()
        writing.begun.clear()
        task = asyncio.create_task(part.begin())
        async with house.patience():
            await writing.begun.wait()
        for _ in range(ticks):
            await asyncio.sleep(0)
        await ended(task)
        await runs(house)
    assert writing.cut >= 1
    await part.prepare()
    task = asyncio.create_task(part.begin())
    async with house.patience():
        while not await part.whole():
            await asyncio.sleep(0.02)
    await ended(task)


@pytest.mark.parametrize("name", PARTS)
async def test_monitoring_that_cannot_write_goes_on_and_stops_nothing(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    part = PARTS[name](house, tmp_path)
    await part.prepare()
    with monkeypatch.context() as patch:
        writing = Writing(house, part.writes, patch, fails=True)
        task = asyncio.create_task(part.begin())
        async with house.patience():
            await writing.begun.wait()
        await runs(house)
        assert not task.done()
    await ended(task)


async def killing(
    house: House, name: str, folder: Path, patch: pytest.MonkeyPatch, cuts: list[int], every: float = 0.0
) -> None:
    """Kill a part of monitoring while it writes, again after so many seconds, until cancelled."""
    part, writing = PARTS[name](house, folder), Writing(house, PARTS[name].writes, patch)  # type: ignore[attr-defined]
    try:
        for ticks in itertools.cycle(TICKS):
            await part.prepare()
            writing.begun.clear()
            task = asyncio.create_task(part.begin())
            await writing.begun.wait()
            for _ in range(ticks):
                await asyncio.sleep(0)
            await ended(task)
            await asyncio.sleep(every)
    finally:
        cuts.append(writing.cut)


def job_of(attempt: AttemptId) -> JobId:
    """The job of an attempt."""
    return parse_attempt_id(attempt).job


async def decided(house: House) -> list[tuple[str, str, tuple[int, ...]]]:
    """Which job got the one node when, of eight that each need all of it, with node and devices."""
    first = await house.submit(short("first", devices=4))
    await house.until(first, "running")
    names = {
        await house.submit(short(f"job-{number}", devices=4, priority=(3 * number) % 8)): f"job-{number}"
        for number in range(8)
    }
    for job in names:
        await house.explained(job)
    order: list[tuple[str, str, tuple[int, ...]]] = []
    begun = len(house.engine.started)
    house.engine.end(house.engine.started[begun - 1], 0)
    for number in range(8):
        async with house.patience():
            while len(house.engine.started) <= begun + number:
                await asyncio.sleep(0.005)
        attempt = house.engine.started[begun + number]
        launch = house.engine.running[attempt]
        order.append((names[job_of(attempt)], launch.node, tuple(each.index for each in launch.devices)))
        house.engine.end(attempt, 0)
    for job in names:
        await house.until(job, "succeeded")
    return order


async def test_what_is_decided_stays_the_same_while_monitoring_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[list[tuple[str, str, tuple[int, ...]]]] = []
    for name in ("", "alerts", "health"):  # what is told of jobs by mail submits some of its own
        (tmp_path / f"site{name}").mkdir()
        house, cuts = House(tmp_path / f"site{name}", PaperEngine(nodes=1, devices=4)), list[int]()
        await house.open()
        await house.begin()
        with monkeypatch.context() as patch:
            beside = [asyncio.create_task(killing(house, name, tmp_path / f"site{name}", patch, cuts))] if name else []
            found.append(await decided(house))
            for each in beside:
                await ended(each)
        await house.close()
        assert not name or cuts[0] >= 1, "it was killed while it wrote"
    expected = sorted(range(8), key=lambda number: -((3 * number) % 8))
    assert [name for name, _, _ in found[0]] == [f"job-{number}" for number in expected]
    assert found[1] == found[0] and found[2] == found[0]


async def test_series_that_are_killed_while_they_are_stored_stop_nothing_and_go_on(
    house: House, tmp_path: Path
) -> None:
    path, loop = tmp_path / "series.db", asyncio.get_running_loop()
    begun_at = house.clock.now()

    class Watched(SeriesStore):
        """Tells when it begins to store."""

        def flush(self) -> None:
            loop.call_soon_threadsafe(begun.set)
            super().flush()

    def keeper() -> SeriesKeeper:
        made = SeriesKeeper(
            Watched(path), ControlApi(house.control, tmp_path / "unused.sock").metrics.samples, house.clock.now
        )
        made.every_seconds = 0.01
        return made

    begun = asyncio.Event()
    for ticks in TICKS:
        begun.clear()
        task = asyncio.create_task(keeper().run(house.control.ready))
        async with house.patience():
            await begun.wait()
        for _ in range(ticks):
            await asyncio.sleep(0)
        await ended(task)
        await runs(house)
    store = SeriesStore(path)
    question = SeriesQuestion(begun_at - 60, house.clock.now() + 60, 15, ("corral_jobs_ended_total",))
    views, _ = store.read(question)
    assert views and any(value is not None for view in views for value in view.mean)
    store.close()
