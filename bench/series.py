"""The store of series with 10,000 series of a stated mix: its size, its time, its memory, and a page read from it.

The mix is one cluster of 64 nodes with 8 devices each: 4,608 series of devices (use in percent, used memory, total memory,
temperature, power, clock, errors, two counters of bytes), 1,408 of nodes (half counters, half gauges), 1,280 of 40 queues
(mostly unchanged whole numbers) and 2,704 of 338 tasks that live four hours each. Values are drawn: nine tenths of the
devices are busy. An hour of all series is written as a server would write it; a day of every 50th series is written and
summed up. What a full store has is computed from those: 26 hours of single values and 90 days of sums.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from corral.model.metrics.families import Metric
from corral.model.metrics.samples import Samples, Value
from corral.model.series import SeriesQuestion
from corral.monitor.series.database import Database
from corral.monitor.series.grid import COARSE, FINE
from corral.monitor.series.store import SeriesStore
from corral.service.metrics.process import ProcessFigures

SERIES: Final = 10_000
_MIDNIGHT: Final = 1_764_028_800
_HOUR: Final = FINE.steps
_NODES, _DEVICES, _QUEUES, _TASKS = 64, 8, 40, 338
_TASK_STEPS: Final = 4 * _HOUR
_ONE_IN: Final = 50
_HOURS_KEPT: Final = FINE.kept_steps // FINE.steps
_DAYS_KEPT: Final = COARSE.kept_steps // COARSE.steps
_GAUGE, _COUNTER = "corral_queue_used", "corral_preemptions_total"
"""Families with two labels; the store treats all gauges alike, and all counters."""
_CHANCE: Final = random.Random(19)
_POOL: Final = itertools.cycle([_CHANCE.random() for _ in range(99_991)])
"""Drawn once, because drawing costs more than what is measured; as many as a prime, so that no series repeats itself."""

Draw = Callable[[float], float]


def measure() -> dict[str, float]:
    """Megabytes of a full store, percent of a core, megabytes in memory, milliseconds of a page, and parts of these."""
    with tempfile.TemporaryDirectory() as folder:
        written = _write(Path(folder) / "hour.db", hours=1, one_in=1)
        summed = _write(Path(folder) / "day.db", hours=25, one_in=_ONE_IN)
        page = _page(Path(folder) / "day.db")
    fine = written["fine"] * _HOURS_KEPT
    coarse = summed["coarse"] * _ONE_IN * _DAYS_KEPT
    day = 24 * written["seconds"] + summed["sum_seconds"] * _ONE_IN
    return {
        "size": (fine + coarse + written["rest"]) / 1e6,
        "core": 100 * day / 86_400,
        "memory": written["memory"] / 1e6,
        "page": page * 1000,
        "fine-bytes": written["fine"] / (SERIES * _HOUR),
        "coarse-bytes": summed["coarse"] * _ONE_IN / (SERIES * COARSE.steps),
        "round": 1000 * written["seconds"] / _HOUR,
    }


class _Series:
    """One drawn series."""

    def __init__(self, family: str, labels: tuple[str, str], first: float, draw: Draw) -> None:
        self.family, self.labels, self.value, self.draw = family, labels, first, draw

    def next(self) -> Value:
        self.value = self.draw(self.value)
        return Value(self.family, self.labels, self.value)


def _same(value: float) -> float:
    return value


def _percent(value: float) -> float:
    return min(100.0, max(0.0, value + int(next(_POOL) * 9) - 4))


def _bytes(value: float) -> float:
    return max(0.0, value + int(next(_POOL) * 129 - 64) * 4096) if next(_POOL) < 0.5 else value


def _tenths(value: float) -> float:
    return round(value + (int(next(_POOL) * 3) - 1) / 10, 1)


def _counted(value: float) -> float:
    return value + int(next(_POOL) * 2**30)


def _fraction(value: float) -> float:
    return max(0.0, value + (next(_POOL) + next(_POOL) - 1) / 50)


def _seldom(value: float) -> float:
    return value if next(_POOL) < 0.99 else float(int(next(_POOL) * 65))


_OF_DEVICE: Final = (_percent, _bytes, _same, _tenths, _tenths, _seldom, _same, _counted, _counted)
_OF_NODE: Final = (*(_counted,) * 11, *(_fraction,) * 4, *(_bytes,) * 4, *(_same,) * 3)
_OF_TASK: Final = (_fraction, _bytes, _same, _percent, _bytes, _counted, _counted, _fraction)


def _cluster(one_in: int) -> list[_Series]:
    made = []
    for node in range(_NODES):
        for device in range(_DEVICES):
            busy = _CHANCE.random() < 0.9
            for at, draw in enumerate(_OF_DEVICE):
                made.append(_named(f"local/node{node:03}", f"device-{device}-figure-{at}", draw if busy else _same))
        made += [_named(f"local/node{node:03}", f"figure-{at}", draw) for at, draw in enumerate(_OF_NODE)]
    for queue in range(_QUEUES):
        made += [_named(f"queue-{queue}", f"amount-{at}", _seldom) for at in range(32)]
    for task in range(_TASKS):
        made += _task(task, 0)
    assert len(made) == SERIES
    return _CHANCE.sample(made, SERIES // one_in)


def _task(task: int, life: int) -> list[_Series]:
    return [_named(f"task-{task:03}-{life}", f"figure-{at}", draw) for at, draw in enumerate(_OF_TASK)]


def _named(one: str, other: str, draw: Draw) -> _Series:
    first = 3.4e10 if draw in (_bytes, _counted) else 50.0
    return _Series(_COUNTER if draw is _counted else _GAUGE, (one, other), first, draw)


def _steps(hours: int, one_in: int) -> Iterator[tuple[int, Samples]]:
    """The values of each step; tasks end one after the other and others begin."""
    series = _cluster(one_in)
    tasks = {each.labels[0] for each in series if each.labels[0].startswith("task-")}
    for step in range(hours * _HOUR):
        if step % max(1, _TASK_STEPS // max(1, len(tasks))) == 1 and tasks:
            for each in [each for each in series if each.labels[0] == min(tasks)]:
                each.labels = each.labels[0] + "+", each.labels[1]
            tasks.add(min(tasks) + "+")
            tasks.remove(min(tasks))
        yield _MIDNIGHT + step * FINE.seconds, Samples(tuple(each.next() for each in series))


def _write(path: Path, *, hours: int, one_in: int) -> dict[str, float]:
    """Write series as control does, and one step more so that the last hour is packed."""
    before, used, summing, steady = _memory(), 0.0, 0.0, [0.0]
    store, last, most = SeriesStore(path, steady=lambda: steady[0]), (0, Samples()), 0.0
    for at, samples in _steps(hours, one_in):
        begun = time.process_time()
        store.add(samples, at)
        if at % (3 * FINE.seconds) == 0:
            store.flush()
            while store.maintain():
                pass
        used += time.process_time() - begun
        steady[0] += FINE.seconds
        last = at, samples
    most = _memory() - before
    rest = _used(path) if hours == 1 else 0.0
    begun = time.process_time()
    for later in range(1, 4):
        store.add(last[1], last[0] + later * FINE.seconds)
    store.flush()
    while store.maintain():
        pass
    used += time.process_time() - begun
    store.close()
    if hours > 24:
        summing = _sum_seconds(path)
    return {
        "seconds": used, "sum_seconds": summing, "memory": most, "rest": rest,
        "fine": _bytes_of(path, "fine"), "coarse": _bytes_of(path, "coarse"),
    }  # fmt: skip


def _sum_seconds(path: Path) -> float:
    """Seconds of processor time to sum up the day once more."""
    database = Database(path)
    with database:
        database.set_mark("summed", 0)
    database.close()
    store = SeriesStore(path)
    begun = time.process_time()
    while store.maintain():
        pass
    used = time.process_time() - begun
    store.close()
    return used


def _page(path: Path) -> float:
    """Seconds to read ten series over a day in 300 steps, the best of five."""
    store, times = SeriesStore(path), []
    question = SeriesQuestion(_MIDNIGHT, _MIDNIGHT + 86_400, 300, (_GAUGE,))
    for _ in range(5):
        begun = time.perf_counter()
        found, _ = store.read(question, 10)
        times.append(time.perf_counter() - begun)
        if not found:
            raise RuntimeError("no series were found")
    store.close()
    return min(times)


def _bytes_of(path: Path, table: str) -> float:
    """Bytes of the pages of a table, over all its chunks."""
    database = Database(path)
    found = 0
    with contextlib.suppress(InterruptedError), database:
        before = database.used_bytes()
        database.drop_chunks(table, 0, 1 << 40)
        found = before - database.used_bytes()
        raise InterruptedError  # what was dropped is rolled back
    database.close()
    return float(found)


def _used(path: Path) -> float:
    database = Database(path, read_only=True)
    used = database.used_bytes()
    database.close()
    return float(used)


def _memory() -> float:
    return next(
        (each.value for each in ProcessFigures("bench").samples().values if each.family == Metric.PROCESS_MEMORY), 0.0
    )
