"""Series in their file: restarts, kills, broken and full files, clocks that jump, ages and bounds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from corral.model.metrics.samples import Distribution, Samples, Value
from corral.model.series import SeriesQuestion, SeriesView
from corral.monitor.series.database import Database
from corral.monitor.series.grid import FINE
from corral.monitor.series.store import SeriesStore

MIDNIGHT = 1_764_028_800
HOUR = 3600
DAY = 86_400


class Life:
    """A store of series, and the two clocks beside it."""

    def __init__(self, path: Path, **bounds: int) -> None:
        self.path, self.bounds = path, bounds
        self.at: float = MIDNIGHT
        self.steady = 0.0
        self.counts = False
        """Whether each step has a counter, too, that is the time."""
        self.store = self.opened()

    def opened(self) -> SeriesStore:
        return SeriesStore(self.path, steady=lambda: self.steady, **self.bounds)

    def put(self, value: float, queue: str = "a") -> None:
        counted = (Value("corral_placements_total", (queue,), self.at),) if self.counts else ()
        self.store.add(Samples((Value("corral_jobs", (queue, "running"), value), *counted)), self.at)

    def passes(self, seconds: float, value: Callable[[float], float | None] = lambda at: 1.0) -> None:
        """Let time pass with a value in each step; None is no value."""
        until = self.at + seconds
        while self.at < until:
            if (said := value(self.at)) is not None:
                self.put(said)
            self.at += FINE.seconds
            self.steady += FINE.seconds
            if int(self.at) % 60 == 0:
                self.tend()

    def tend(self) -> None:
        self.store.flush()
        while self.store.maintain():
            pass

    def killed(self) -> None:
        """Go on with another store on the same file, as after a kill."""
        self.store = self.opened()

    def read(self, begin: float, end: float, step: int = 15, family: str = "corral_jobs") -> list[SeriesView]:
        return self.store.read(SeriesQuestion(begin, end, step, (family,)))[0]

    def mean(self, begin: float, end: float, step: int = 15) -> list[float | None]:
        found = self.read(begin, end, step)
        return list(found[0].mean) if found else []


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    made = Life(tmp_path / "series.db")
    yield made
    made.store.close()


def test_values_are_read_as_they_came_over_hours_and_a_restart(life: Life) -> None:
    life.passes(3 * HOUR, lambda at: (at - MIDNIGHT) // 15)
    expected = [float(each) for each in range(720)]
    assert life.mean(MIDNIGHT, life.at) == expected
    life.store.close()
    life.killed()
    assert life.mean(MIDNIGHT, life.at) == expected


def test_no_other_account_reads_the_file(life: Life) -> None:
    life.passes(60)
    files = list(life.path.parent.iterdir())
    assert len(files) == 3 and {each.stat().st_mode & 0o777 for each in files} == {0o600}


def test_a_kill_loses_the_last_minute_at_most(life: Life) -> None:
    life.passes(600)
    life.put(2.0)
    life.killed()
    assert life.mean(MIDNIGHT, MIDNIGHT + 600) == [1.0] * 40


def test_a_series_that_is_silent_ends(life: Life) -> None:
    life.passes(HOUR, lambda at: 5.0 if at < MIDNIGHT + 1800 or at >= MIDNIGHT + 2700 else None)
    life.passes(HOUR, lambda at: None)
    found = life.mean(MIDNIGHT, MIDNIGHT + HOUR)
    assert found == [5.0] * 120 + [None] * 60 + [5.0] * 60
    assert life.mean(life.at - 900, life.at) == []


def curve(life: Life, begin: float, end: float) -> dict[float, float]:
    """The values of a job's curve by their times."""
    found = life.store.read(SeriesQuestion(begin, end, 15, ("corral_job_scalar",), "j1"))[0]
    return {begin + 15 * at: value for each in found for at, value in enumerate(each.mean) if value is not None}


def past(value: float, job: str = "j1") -> Samples:
    return Samples((Value("corral_job_scalar", (job, "worker-0", "", "loss"), value),))


def test_values_that_come_late_stand_where_they_belong_also_after_their_hour_and_a_kill(life: Life) -> None:
    life.passes(HOUR + 300)
    expected = {MIDNIGHT + HOUR + each: float(each) for each in range(-240, 300, 15)}
    for at, value in reversed(expected.items()):
        life.store.add_past(past(value), at + 7)
    assert curve(life, MIDNIGHT, MIDNIGHT + 2 * HOUR) == expected
    life.tend()
    life.killed()
    assert curve(life, MIDNIGHT, MIDNIGHT + 2 * HOUR) == expected
    assert life.mean(MIDNIGHT, life.at) == [1.0] * 260
    life.passes(2 * HOUR)
    assert curve(life, MIDNIGHT, MIDNIGHT + 2 * HOUR) == expected
    assert life.mean(MIDNIGHT, life.at) == [1.0] * (260 + 480)


def test_values_that_come_too_late_are_lost_and_a_later_one_of_a_step_wins(life: Life) -> None:
    life.store.add_past(past(0.5), MIDNIGHT - 15)  # the first value of all
    life.passes(HOUR)
    newest = life.at - 15
    for before, value in ((615, 9.0), (600, 1.0), (30, 2.0), (30, 3.0), (-15, 4.0)):
        life.store.add_past(past(value), newest - before)
    assert curve(life, MIDNIGHT - 60, life.at + 60) == {
        MIDNIGHT - 15: 0.5, newest - 600: 1.0, newest - 30: 3.0, newest + 15: 4.0
    }  # fmt: skip


def test_curves_of_jobs_leave_the_servers_own_series_their_room(tmp_path: Path) -> None:
    life = Life(tmp_path / "series.db", most_live=10)
    life.passes(60)
    for number in range(20):
        life.store.add_past(past(1.0, f"j{number}"), life.at - 30)
    assert len(life.read(MIDNIGHT, life.at, family="corral_job_scalar")) == 7
    life.put(1.0, "b")
    assert len(life.read(MIDNIGHT, life.at + 15)) == 2
    life.store.close()


def test_days_are_summed_up_and_read_as_mean_least_and_most(life: Life) -> None:
    life.counts = True
    life.passes(DAY + 4 * HOUR, lambda at: float(int(at) % 600 // 15))
    (found,) = life.read(MIDNIGHT, MIDNIGHT + DAY, 600)
    assert set(found.mean) == {19.5} and set(found.low) == {0.0} and set(found.high) == {39.0}
    assert life.read(MIDNIGHT, MIDNIGHT + HOUR, 15)[0].mean[0] == 19.5  # single values are gone, their sums are not
    (counter,) = life.read(MIDNIGHT, MIDNIGHT + HOUR, 600, "corral_placements_total")
    for at, value in enumerate(counter.mean):
        assert value is not None and abs(value - MIDNIGHT - 600 * at) <= value * 2**-20
    database = Database(life.path, read_only=True)
    assert min(database.chunks("fine")) >= (life.at - 27 * HOUR) // HOUR
    database.close()


def test_what_is_old_is_removed(life: Life) -> None:
    life.passes(DAY + HOUR)
    life.at += 91 * DAY
    life.steady += 91 * DAY
    life.passes(2 * HOUR)
    assert life.mean(MIDNIGHT, MIDNIGHT + DAY, 600) == []
    database = Database(life.path, read_only=True)
    assert all(chunk > MIDNIGHT // DAY for chunk in database.chunks("coarse"))
    database.close()


def test_a_jump_ahead_and_back_removes_nothing_that_was_before_it(life: Life) -> None:
    life.passes(2 * HOUR)
    life.at += 400 * DAY
    life.passes(600)
    life.at -= 400 * DAY
    with capture_logs() as said:
        life.passes(600, lambda at: 3.0)
    assert [each["event"] for each in said] == ["the clock was set back: series after now are removed"]
    found = life.mean(MIDNIGHT, life.at)
    assert found[:480] == [1.0] * 480 and found[-40:] == [3.0] * 40
    assert life.mean(life.at + 11 * DAY, life.at + 500 * DAY, 864_000) == []


def test_a_clock_that_is_set_back_writes_over_what_was_of_the_future(life: Life) -> None:
    life.passes(3 * HOUR)
    life.at -= HOUR
    life.passes(1800, lambda at: 2.0)
    assert life.mean(MIDNIGHT, MIDNIGHT + 3 * HOUR) == [1.0] * 480 + [2.0] * 120 + [None] * 120


@pytest.mark.parametrize("broken", [b"no database at all" * 500, b"SQLite format 3\0" + b"\xff" * 8000])
def test_a_broken_file_is_set_aside_and_a_new_one_begun(life: Life, broken: bytes) -> None:
    life.path.write_bytes(broken)
    with capture_logs() as said:
        life.passes(600)
    assert [each["event"] for each in said] == ["the file of series was broken and is set aside"]
    assert life.path.with_name("series.db.broken").read_bytes() == broken
    life.killed()
    assert life.mean(MIDNIGHT, life.at) == [1.0] * 40


def test_a_file_that_breaks_while_it_is_in_use_is_set_aside(life: Life) -> None:
    life.passes(600)
    life.store.close()
    data = bytearray(life.path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    life.path.write_bytes(data)
    life.killed()
    with capture_logs() as said:
        life.passes(600, lambda at: 2.0)
    assert [each["event"] for each in said] == ["the file of series was broken and is set aside"]
    assert life.mean(MIDNIGHT + 600, life.at)[-39:] == [2.0] * 39


def test_a_place_that_takes_no_file_is_told_once_and_raises_nothing(tmp_path: Path) -> None:
    life = Life(tmp_path / "missing" / "series.db")
    with capture_logs() as said:
        life.passes(600)
        assert life.mean(MIDNIGHT, life.at) == []
    assert [each["event"] for each in said] == ["series are not kept"]


def test_the_file_keeps_to_its_size_and_loses_the_oldest_first(tmp_path: Path) -> None:
    life = Life(tmp_path / "series.db", most_bytes=150_000)
    with capture_logs() as said:
        for _ in range(8 * 60):
            values = ((f"q{each}", (life.at * 7919 + each * 104_729) % 65_521) for each in range(200))
            life.store.add(
                Samples(tuple(Value("corral_jobs", (queue, "running"), value) for queue, value in values)), life.at
            )
            life.at += 60
            life.steady += 60
            life.tend()
    assert os.path.getsize(life.path) <= 150_000 * 9 // 8 + 4096
    assert {each["event"] for each in said} == {"series have reached their size: the oldest hour is removed"}
    assert life.mean(MIDNIGHT, MIDNIGHT + HOUR, 60) == []
    assert len(life.read(life.at - HOUR, life.at, 60)) == 100
    life.store.close()


def test_series_beyond_the_bound_are_left_out(tmp_path: Path) -> None:
    life = Life(tmp_path / "series.db", most_live=10)
    with capture_logs() as said:
        for each in range(20):
            life.put(1.0, f"q{each:02}")
    life.tend()
    assert [view.labels["queue"] for view in life.read(MIDNIGHT, MIDNIGHT + 60)] == [
        f"q{each:02}" for each in range(10)
    ]
    assert [each["event"] for each in said] == ["series are left out"]
    life.store.close()


def test_counters_are_exact_and_histograms_have_their_count_and_sum(life: Life) -> None:
    counts = (3, 4, *[0] * 11)
    for _ in range(300):
        exact = 2.0**40 + life.at
        samples = (Value("corral_placements_total", ("a",), exact), Value("corral_unknown", (), 1.0))
        life.store.add(Samples(samples, (Distribution("corral_job_wait_seconds", ("a",), counts, 12.5),)), life.at)
        life.at += 15
        life.steady += 15
    life.tend()
    begin, end = MIDNIGHT, MIDNIGHT + 60
    assert life.read(begin, end, family="corral_placements_total")[0].mean[0] == 2.0**40 + MIDNIGHT
    assert life.read(begin, end, family="corral_job_wait_seconds_count")[0].mean[0] == 7
    assert life.read(begin, end, family="corral_job_wait_seconds_sum")[0].mean[0] == 12.5
    assert life.read(begin, end, family="corral_unknown") == []


WRITER = """
import sys
from pathlib import Path
from corral.model.metrics.samples import Samples, Value
from corral.monitor.series.store import SeriesStore
store, at = SeriesStore(Path(sys.argv[1])), int(sys.argv[2])
for step in range(1_000_000):
    values = (Value("corral_jobs", (f"q{each}", "running"), float(step)) for each in range(200))
    store.add(Samples(tuple(values)), at + 15 * step)
    store.flush()
    print(step, flush=True)
    while store.maintain():
        pass
"""


def test_a_killed_writer_leaves_all_that_it_had_stored(tmp_path: Path) -> None:
    path = tmp_path / "series.db"
    for stop in (5, 250):
        path.unlink(missing_ok=True)
        arguments = [sys.executable, "-c", WRITER, str(path), str(MIDNIGHT)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            last = next(int(line) for line in writer.stdout if int(line) >= stop)
            writer.send_signal(signal.SIGKILL)
        store = SeriesStore(path)
        found, left_out = store.read(SeriesQuestion(MIDNIGHT, MIDNIGHT + (last + 1) * 15, 15, ("corral_jobs",)))
        assert len(found) == 100 and left_out == 100
        assert all(view.mean == tuple(map(float, range(last + 1))) for view in found)
        store.close()
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)


def test_series_of_other_machines_leave_room_for_the_servers_own(tmp_path: Path) -> None:
    life = Life(tmp_path / "series.db", most_live=10)
    machine = Samples((Value("node_memory_MemTotal_bytes", (), 1.0),))
    with capture_logs() as said:
        for number in range(20):
            life.store.add(machine, life.at, f"far/n{number:02}", others=True)
    life.put(1.0)
    life.tend()
    found, _ = life.store.read(SeriesQuestion(MIDNIGHT, MIDNIGHT + 60, 15, ("node_memory_MemTotal_bytes",)))
    assert [each.labels for each in found] == [{"node": f"far/n{number:02}"} for number in range(8)]
    assert len(life.read(MIDNIGHT, MIDNIGHT + 60)) == 1 and [each["event"] for each in said] == ["series are left out"]
    life.store.close()
