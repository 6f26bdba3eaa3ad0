"""Control's gauges and the reports of jobs become series, and its loop does not mind what is wrong with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from corral.control.control_api import ControlApi
from corral.control.metrics.series_keeper import SeriesKeeper
from corral.kernel.errors import CorralError
from corral.kernel.ids import JobId, attempt_id
from corral.model.metrics.samples import Samples
from corral.model.runs import WorkReport
from corral.model.series import SeriesQuestion, SeriesView
from corral.monitor.series.store import SeriesStore
from tests.control.asked import Asked
from tests.control.harness import House, PaperEngine, short


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path, PaperEngine(nodes=1, devices=4))
    await made.open()
    yield made
    await made.close()


async def asked(api: ControlApi, question: SeriesQuestion) -> list[SeriesView]:
    """The answer of control's API."""
    found, _ = await Asked(api).request("/series", msgspec.to_builtins(question))
    return [msgspec.convert(each, SeriesView) for each in found]


def keeper_of(api: ControlApi) -> SeriesKeeper:
    assert api._keeper is not None
    return api._keeper


async def reported(house: House, job: JobId, **said: Any) -> None:
    """Report as a job's runtime does, and wait until control has stored it."""
    at = house.clock.now()
    assert await house.store.work_reported(attempt_id(job, 0, "worker", 0, 0), WorkReport(at, **said))
    await house.when(job, lambda record: record.run.report is not None and record.run.report.at == at)


async def test_gauges_and_reports_become_series_and_outlive_control(house: House, tmp_path: Path) -> None:
    await house.begin()
    api = ControlApi(house.control, tmp_path / "unused.sock", series=SeriesStore(tmp_path / "series.db"))
    job = await house.submit(short("trainer", devices=3))
    await house.until(job, "running")
    await reported(house, job, loss=0.5, progress=0.25)
    async with house.patience():
        while job not in keeper_of(api)._told:  # control calls it a moment after the store has the report
            await asyncio.sleep(0)
    await keeper_of(api).keep(store_them=True)
    now = house.clock.now()
    of_job = SeriesQuestion(now - 300, now + 300, 15, job=job)
    found = {each.family: each for each in await asked(api, of_job)}
    assert set(found) == {"corral_job_loss", "corral_job_progress"}
    assert {value for value in found["corral_job_loss"].mean if value is not None} == {0.5}
    assert found["corral_job_loss"].labels == {"job": job}
    used = SeriesQuestion(now - 300, now + 300, 15, ("corral_queue_used",), labels={"resource": "devices"})
    queues = {each.labels["queue"]: each.high for each in await asked(api, used)}
    assert 3.0 in queues["default"]
    again = ControlApi(house.control, tmp_path / "unused.sock", series=SeriesStore(tmp_path / "series.db"))
    assert {each.family for each in await asked(again, of_job)} == set(found)


async def test_a_report_is_kept_once_and_the_last_one_too(house: House, tmp_path: Path) -> None:
    await house.begin()
    api = ControlApi(house.control, tmp_path / "unused.sock", series=SeriesStore(tmp_path / "series.db"))
    job = await house.submit(short("trainer", devices=1))
    await house.until(job, "running")
    await reported(house, job, progress=1.0)
    house.engine.end(next(iter(house.engine.running)), 0)
    await house.until(job, "succeeded")
    now = house.clock.now()
    (found,) = await asked(api, SeriesQuestion(now - 300, now + 300, 15, job=job))
    assert [value for value in found.mean if value is not None] == [1.0]


async def test_a_store_that_fails_is_told_once_and_stops_nothing(house: House, tmp_path: Path) -> None:
    await house.begin()

    class Failing(SeriesStore):
        def add(self, samples: Samples, at: float) -> None:
            raise RuntimeError("planted")

    keeper = SeriesKeeper(Failing(tmp_path / "series.db"), Samples, house.clock.now)
    keeper.every_seconds = 0.01
    with capture_logs() as said:
        running = asyncio.create_task(keeper.run(house.control.ready))
        job = await house.submit(short("trainer", devices=3))
        await house.until(job, "running")
        async with house.patience():
            while keeper.rounds < 5:
                await asyncio.sleep(0.01)
    running.cancel()
    assert [each["event"] for each in said if "series" in each["event"]] == ["series are not kept"]


async def test_what_is_no_question_and_a_server_without_series_refuse_in_a_sentence(
    house: House, tmp_path: Path
) -> None:
    await house.begin()
    api = ControlApi(house.control, tmp_path / "unused.sock", series=SeriesStore(tmp_path / "series.db"))
    with pytest.raises(CorralError, match="Control cannot read the question for series"):
        await Asked(api).request("/series", {"begin": "soon"})
    with pytest.raises(CorralError, match="keeps no series"):
        await Asked(ControlApi(house.control, tmp_path / "unused.sock")).request("/series", {})


class Longer:
    """A stand-in for a Prometheus."""

    def __init__(self) -> None:
        self.asked: list[SeriesQuestion] = []

    async def read(self, question: SeriesQuestion) -> tuple[list[SeriesView], int]:
        self.asked.append(question)
        return [], 0


@pytest.mark.parametrize(("kept", "days", "there"), [(True, 1, 0), (True, 120, 1), (False, 1, 1)])
async def test_what_is_not_kept_here_is_read_elsewhere(
    house: House, tmp_path: Path, kept: bool, days: int, there: int
) -> None:
    await house.begin()
    longer, now = Longer(), house.clock.now()
    store = SeriesStore(tmp_path / "series.db") if kept else None
    api = ControlApi(house.control, tmp_path / "unused.sock", series=store, longer_series=longer)  # type: ignore[arg-type]
    assert await asked(api, SeriesQuestion(now - days * 86_400, now, 86_400, ("corral_jobs",))) == []
    assert len(longer.asked) == there
