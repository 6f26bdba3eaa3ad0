"""Explain, the waiting list and what-if read one forecast, which is made in another process while somebody asks."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from pathlib import Path

import pytest
import pytest_asyncio

from corral.control.control_api import ControlApi
from corral.control.forecast import forecasts as keeping
from corral.control.forecast.forecasts import Forecasts
from corral.control.loop import Control
from corral.control.what_if.forked import Fork, ForkLimits
from corral.kernel.ids import JobId
from corral.model.views import EstimateView
from corral.model.what_if import WhatIfRequest
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.service import Service
from tests.control.asked import Asked
from tests.control.harness import House, PaperEngine, short

ADA = Actor("ada", token_id="t-ada")
ROOT = Actor("root", role="admin", token_id="t-root")


class Forks:
    """Counts the processes of forecasts, and may have something done to each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.then: Callable[[int], None] = lambda pid: None
        """Called with the process id of each."""
        monkeypatch.setattr(keeping, "Fork", self._fork)

    def _fork(self, compute: Callable[[], bytes], limits: ForkLimits) -> Fork:
        self.count += 1
        made = Fork(compute, limits)
        self.then(made._pid)
        return made


@pytest_asyncio.fixture
async def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    monkeypatch.setattr("corral.control.scheduler_views._KEPT_FOR", 0.0)
    monkeypatch.setattr(keeping, "_PATIENCE", 60.0)  # a slow machine needs more than an asker would wait
    engine = PaperEngine(nodes=1)
    engine.started_at = time.time()
    made = House(tmp_path, engine)
    await made.open()
    yield made
    await made.close()


@pytest_asyncio.fixture
async def service(house: House, tmp_path: Path) -> Service:
    await house.begin()
    control_client = Asked(ControlApi(house.control, tmp_path / "unused.sock", forecast_seconds=0.05))
    return Service(Context(house.store, key=b"k" * 32, clock=house.clock, control=control_client))


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> Forks:
    return Forks(monkeypatch)


async def full(house: House) -> tuple[JobId, JobId]:
    """A job that holds everything for an hour, and one that waits."""
    running = await house.submit(short("runs", devices=4, maxDuration="1h"))
    await house.until(running, "running")
    waiting = await house.submit(short("waits", devices=2, maxDuration="1h"))
    await house.explained(waiting)
    return running, waiting


async def explained(service: Service, job: JobId) -> EstimateView:
    """The estimate that `explain` gives."""
    found = (await service.explanations.explain(ADA, job)).estimate
    assert found is not None
    return found


async def test_they_say_the_same_of_the_same_revision(house: House, service: Service) -> None:
    _, waiting = await full(house)
    said = await explained(service, waiting)
    assert said.basis == "at-latest" and [job.name for job in said.after] == ["runs"]
    assert said.message.startswith("It is first in the queue order and starts when job runs ends.")
    assert said.forecast is not None and said.seconds is not None and 3500 < said.seconds < 3700
    line = await service.queues.waiting_line(ADA)
    assert line.forecast == said.forecast
    (entry,) = line.items
    assert entry.estimate is not None
    assert (entry.estimate.at, entry.estimate.p50, entry.estimate.p90) == (said.at, said.p50, said.p90)
    assert entry.estimate.forecast == said.forecast and entry.estimate.message == said.message
    answer = await service.what_if.ask(ROOT, WhatIfRequest(stop=("waits",)))
    assert (answer.at, answer.revision) == (said.forecast.at, said.forecast.revision)
    (job,) = answer.jobs
    assert job.before.p50 is not None
    begun = datetime.fromisoformat(answer.at).timestamp()
    assert datetime.fromisoformat(said.p50 or "").timestamp() == pytest.approx(begun + job.before.p50, abs=0.002)
    shorter = await service.what_if.ask(ROOT, WhatIfRequest(stop=("waits",), horizon_seconds=7200.0, timeline=True))
    assert (shorter.at, shorter.revision, shorter.jobs[0].before) == (answer.at, answer.revision, job.before)


async def test_what_changes_makes_another_one(house: House, service: Service, forks: Forks) -> None:
    running, waiting = await full(house)
    first = await explained(service, waiting)
    assert (await explained(service, waiting)).forecast == first.forecast and forks.count == 1
    another = await house.submit(short("another", devices=4))
    await house.explained(another)
    second = await explained(service, another)
    assert second.basis == "expected" and [job.name for job in second.after] == ["waits"]
    assert first.forecast is not None and second.forecast is not None
    assert first.forecast.revision != second.forecast.revision
    house.engine.end(next(iter(house.engine.running)), 0)
    await house.until(running, "succeeded")
    await house.until(waiting, "running")


async def test_nobody_asks_and_nothing_is_played(house: House, service: Service, forks: Forks) -> None:
    await full(house)
    revision = house.control.revision
    for _ in range(3):
        house.control.wake()
        await asyncio.sleep(0)
    await service.queues.page(ADA)
    assert forks.count == 0
    house.engine.end(next(iter(house.engine.running)), 0)
    await house.control.cycled()
    assert forks.count == 0 and house.control.revision != revision


async def test_a_killed_process_harms_nothing_and_the_next_one_answers(
    house: House, service: Service, forks: Forks, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, waiting = await full(house)
    play = keeping.play_courses
    monkeypatch.setattr(keeping, "play_courses", lambda core, past, now: os.kill(os.getpid(), signal.SIGKILL))
    told = await service.explanations.explain(ADA, waiting)
    assert told.reasons is not None and told.reasons.binding.code and told.changes is not None
    assert told.estimate is not None
    assert (told.estimate.basis, told.estimate.forecast) == ("not-estimated", None)
    assert told.estimate.message == "Not estimated: the process of the forecast failed; see control.log."
    (entry,) = (await service.queues.waiting_line(ADA)).items
    assert entry.estimate is not None and entry.estimate.basis == "not-estimated"
    monkeypatch.setattr(keeping, "play_courses", play)
    assert (await explained(service, waiting)).basis == "at-latest"
    assert house.control.troubles() == []


async def test_a_forecast_that_needs_too_much_is_given_up(
    house: House, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await full(house)
    control = house.control
    with monkeypatch.context() as large:
        large.setattr(keeping, "play_courses", lambda core, past, now: bytes(bytearray(1 << 30)))
        forecasts = _forecasts(control, ForkLimits(memory=64 << 20))
        await forecasts.latest()
    assert forecasts.trouble == "the forecast needs more memory than it may have"
    forecasts = _forecasts(control, ForkLimits(seconds=0.0))
    await forecasts.latest()
    assert forecasts.trouble == "the forecast took longer than it may"


async def test_a_slow_one_is_shown_until_the_next_is_there(
    house: House, service: Service, forks: Forks, monkeypatch: pytest.MonkeyPatch
) -> None:
    await full(house)
    monkeypatch.setattr(keeping, "_QUICK", 0.0)
    forecasts = _forecasts(house.control, ForkLimits(), seconds=3600.0)
    first = await forecasts.latest()
    assert first is not None
    another = await house.submit(short("another", devices=4))
    await house.explained(another)
    assert await forecasts.latest() is first, "the next begins later, and nobody waits for it"
    assert forks.count == 1
    await forecasts.aclose()


async def test_a_forecast_that_is_being_made_ends_with_its_keeper(
    house: House, service: Service, forks: Forks, monkeypatch: pytest.MonkeyPatch
) -> None:
    await full(house)
    made: list[int] = []
    forks.then = made.append
    monkeypatch.setattr(keeping, "play_courses", lambda core, past, now: os.kill(os.getpid(), signal.SIGSTOP))
    monkeypatch.setattr(keeping, "_PATIENCE", 0.05)
    forecasts = _forecasts(house.control, ForkLimits())
    async with house.patience():
        while not made:
            assert await forecasts.latest() is None
    await forecasts.aclose()
    assert not Path(f"/proc/{made[0]}").exists()


def _forecasts(control: Control, limits: ForkLimits, seconds: float = 5.0) -> Forecasts:
    return Forecasts(
        control.store, lambda: control.core, lambda: control.revision, control.clock.now, seconds=seconds, limits=limits
    )
