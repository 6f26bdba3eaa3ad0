"""The scalars that tasks write for TensorBoard become series of their jobs, the last ones too."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from corral.control.control_api import ControlApi
from corral.control.metrics import event_files
from corral.control.metrics.control_metrics import ControlMetrics, MeasureSettings, measure
from corral.control.metrics.event_files import EventFiles
from corral.control.metrics.series_keeper import SeriesKeeper
from corral.control.metrics.told_scalars import CurvesOfTasks
from corral.kernel.errors import CorralError
from corral.kernel.ids import AttemptId, JobId, attempt_id, parse_attempt_id
from corral.model.metrics.samples import Samples
from corral.model.metrics.told_scalars import ToldScalar, ToldScalars
from corral.model.series import SeriesQuestion, SeriesView
from corral.monitor.series.store import SeriesStore
from corral.runtime.event_folder import MOST_CURVES
from tests.control.asked import Asked
from tests.control.harness import House, short
from tests.frameworks.environments import environment
from tests.runtime.event_files.encoder import scalars, write

NOW = 1_764_028_807.0
ONE, TWO = (attempt_id(JobId(f"{job:013}"), 0, "worker", job, 0) for job in (1, 2))


class Folders:
    """The folders of an engine's attempts."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.last_look: Callable[[Mapping[AttemptId, str]], Awaitable[None]] | None = None
        self.there = [ONE, TWO]

    def all(self) -> Mapping[AttemptId, str]:
        return {each: str(self.root / each) for each in self.there}


class Watched:
    """Two tasks whose files become series; `now` is the clock."""

    def __init__(self, root: Path) -> None:
        self.now = NOW
        self.folders = Folders(root)
        self.keeper = SeriesKeeper(SeriesStore(root / "series.db"), Samples, lambda: self.now)
        self.files = EventFiles(self.folders, self.keeper.take_scalars, lambda: self.now)

    def write(self, attempt: AttemptId, *points: tuple[float, str, float], run: str = "") -> None:
        write(self.folders.root / attempt / run, scalars(*points))

    async def series(self, attempt: AttemptId) -> list[SeriesView]:
        question = SeriesQuestion(NOW - 900, NOW + 900, 15, job=attempt.split(".")[0])
        return (await self.keeper.read(question))[0]

    async def curves(self, attempt: AttemptId) -> dict[str, list[float]]:
        """The known values of an attempt's job by tag."""
        found = await self.series(attempt)
        return {each.labels["tag"]: [value for value in each.mean if value is not None] for each in found}


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


async def test_scalars_are_series_of_their_job_by_task_run_and_tag(watched: Watched) -> None:
    watched.write(ONE, (NOW - 100, "loss", 3.0), (NOW - 40, "loss", 2.0), (NOW - 39, "loss", 1.5), run="runs/a")
    watched.write(TWO, (NOW, "loss", 1.0))
    await watched.files.look()
    (found,) = await watched.series(ONE)
    assert found.labels == {"job": ONE.split(".")[0], "task": "worker-1", "run": "runs/a", "tag": "loss"}
    assert [value for value in found.mean if value is not None] == [3.0, 1.5]
    assert await watched.curves(TWO) == {"loss": [1.0]}


async def test_the_last_scalars_are_read_before_the_folder_goes(watched: Watched) -> None:
    watched.write(ONE, (NOW - 40, "loss", 2.0))
    await watched.files.look()
    watched.write(ONE, (NOW - 40, "loss", 2.0), (NOW - 20, "loss", 1.0))
    await watched.files.last_look({ONE: watched.folders.all()[ONE]})
    watched.folders.there.remove(ONE)
    await watched.files.look()
    assert await watched.curves(ONE) == {"loss": [2.0, 1.0]}


async def test_values_of_long_ago_and_of_the_future_are_left_out(watched: Watched) -> None:
    watched.write(
        ONE, (NOW - 700, "loss", 9.0), (NOW + 100, "loss", 8.0), (NOW - 20, "loss", 1.0), (NOW + 50, "loss", 0.5)
    )
    await watched.files.look()
    assert await watched.curves(ONE) == {"loss": [1.0, 0.5]}


async def test_a_task_that_writes_without_end_delays_others_by_one_look(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_files, "_MOST_EVENTS", 5)
    watched.write(ONE, *((NOW - 30, f"tag-{number}", 1.0) for number in range(20)))
    watched.write(TWO, (NOW, "loss", 1.0))
    await watched.files.look()
    assert len(await watched.curves(ONE)) == 5 and not await watched.curves(TWO)
    await watched.files.look()
    assert await watched.curves(TWO) == {"loss": [1.0]}


async def test_what_is_broken_is_logged_once_and_stops_nothing(
    watched: Watched, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(watched.folders.root / ONE, b"this is no event file")
    watched.write(TWO, (NOW, "loss", 1.0))
    await watched.files.look()
    await watched.files.look()
    assert await watched.curves(TWO) == {"loss": [1.0]}
    (said,) = caplog.messages
    assert said == (
        f"The event files of {ONE} are not read as a whole: a file is broken: "
        "the checksum of a record's length is wrong."
    )
    monkeypatch.setattr(watched.files, "_look", lambda folders: 1 / 0)
    await watched.files.look()
    assert "could not be read; that is tried again" in caplog.messages[-1]


async def test_only_engines_with_folders_here_are_followed_and_only_where_series_are_kept(
    house: House, tmp_path: Path
) -> None:
    await house.begin()
    settings = MeasureSettings(5.0, "machine", None, None, "", None)
    metrics = ControlMetrics(house.control)
    loops = {}
    metrics.take_scalars = lambda scalars: None
    loops["no folders"] = measure(house.control, metrics, ["local"], settings)
    house.engine.folders = Folders(tmp_path)  # type: ignore[attr-defined]
    loops["both"] = measure(house.control, metrics, ["local"], settings)
    metrics.take_scalars = None
    loops["no series"] = measure(house.control, metrics, ["local"], settings)
    counts = {name: len(found) for name, found in loops.items()}
    for each in (loop for found in loops.values() for loop in found):
        each.close()
    assert counts == {"no folders": 1, "both": 2, "no series": 1}


WRITES = """
import sys, time
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary import Writer
from tensorboard.summary.writer.event_file_writer import EventFileWriter

new = Writer(sys.argv[1] + "/new")
new.add_scalar("loss", 0.25, 1)
new.close()
old = EventFileWriter(sys.argv[1] + "/old")
values = [Summary.Value(tag="train/loss", simple_value=0.5), Summary.Value(tag="picture", image=Summary.Image(height=1))]
old.add_event(Event(wall_time=time.time(), step=1, summary=Summary(value=values)))
old.close()
"""


@pytest.mark.frameworks
async def test_what_tensorboards_own_writers_write_is_read(watched: Watched) -> None:
    folder = watched.folders.root / ONE
    python = environment("tensorboard") / "python"
    await asyncio.to_thread(lambda: subprocess.run([python, "-c", WRITES, folder], check=True, timeout=300))
    watched.now = time.time()
    await watched.files.look()
    question = SeriesQuestion(watched.now - 500, watched.now + 500, 15, job=ONE.split(".")[0])
    found = {each.labels["run"]: each for each in (await watched.keeper.read(question))[0]}
    assert {run: each.labels["tag"] for run, each in found.items()} == {"new": "loss", "old": "train/loss"}
    assert [value for value in found["new"].mean if value is not None] == [0.25]
    assert [value for value in found["old"].mean if value is not None] == [0.5]


async def test_what_tasks_of_other_machines_tell_are_curves_of_a_bounded_number(watched: Watched) -> None:
    curves = CurvesOfTasks(watched.keeper.take_scalars, lambda: watched.now)
    one, two = (parse_attempt_id(each).task for each in (ONE, TWO))
    told = [ToldScalar("runs/a", "loss", 100.0, 3.0), ToldScalar("runs/a", "loss", 40.0, 2.0)]
    assert curves.told(ToldScalars(ONE, told), one) == 0
    many = [ToldScalar("", f"tag-{number}", 20.0, 1.0) for number in range(200)]
    assert curves.told(ToldScalars(ONE, many), one) == 200 + 1 - MOST_CURVES
    assert curves.told(ToldScalars(TWO, many[:5]), two) == 0, "another attempt has its own"
    found = await watched.curves(ONE)
    assert found["loss"] == [3.0, 2.0] and len(found) == MOST_CURVES
    assert len(await watched.curves(TWO)) == 5


async def test_only_attempts_that_run_have_curves(house: House, tmp_path: Path) -> None:
    await house.begin()
    api = ControlApi(house.control, tmp_path / "unused.sock", series=SeriesStore(tmp_path / "series.db"))
    control = Asked(api)
    job = await house.submit(short("trainer"))
    await house.until(job, "running")
    now, scalar = house.clock.now(), ["", "loss", 5.0, 0.25]

    async def told(attempt: str) -> None:
        await control.request("/scalars", {"attempt": attempt, "scalars": [scalar]})

    for role, index, attempt in (("invented", 0, 0), ("worker\x1b[31m", 0, 0), ("worker", 7, 0), ("worker", 0, 1)):
        with pytest.raises(CorralError, match="No task of the job runs as this attempt"):
            await told(attempt_id(job, 0, role, index, attempt))
    with pytest.raises(CorralError, match="No task of the job"):
        await told(attempt_id(JobId("other"), 0, "worker", 0, 0))
    await told(attempt_id(job, 0, "worker", 0, 0))
    found, _ = await api.read_series(SeriesQuestion(now - 900, now + 900, 15, job=job))
    assert [each.labels["task"] for each in found if "tag" in each.labels] == ["worker-0"]
    house.engine.end(next(iter(house.engine.running)), 0)
    await house.until(job, "succeeded")
    with pytest.raises(CorralError, match="No task of the job"):
        await told(attempt_id(job, 0, "worker", 0, 0))
