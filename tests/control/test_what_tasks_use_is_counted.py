"""What tasks are measured to use is added up for their attempts, once, and stored now and then."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import CoroutineType

import pytest

from corral.control.control_api import ControlApi
from corral.control.health.keeper import HealthKeeper
from corral.control.metrics.measured_use import EVERY_SECONDS, STORED_EVERY, Figures, MeasuredUse, used
from corral.control.watchers import ReportSettings, watchers
from corral.kernel.errors import Unavailable
from corral.kernel.ids import AttemptId, JobId
from corral.model.health.ledger import HealthTerms
from corral.model.metrics.samples import Value
from corral.model.usage import GIB, By, Measured, Use
from corral.store.measured_use import MeasuredUse as Records
from tests.control.harness import House, short


class Watched:
    """A job of one task, whose figures a test says, and a steady clock."""

    def __init__(self, house: House, job: JobId) -> None:
        self.house, self.job = house, job
        self.now = 1000.0
        self.figures: dict[str, float] = {}
        self.devices: list[float] = []
        self.use = MeasuredUse(house.control, self.measured, lambda: self.now)

    def measured(self) -> list[Value]:
        labels = ("ada", "ada~digits", "worker", "0", self.job, "default")
        other = ("eve", "eve~other", "worker", "0", "0000000000000", "default")
        devices = [Value("task_gpu_percent", (*labels, str(at)), use) for at, use in enumerate(self.devices)]
        return [*devices, *(Value(name, who, value) for name, value in self.figures.items() for who in (labels, other))]

    async def look(self, cores: float, cpu_seconds: float, gib: float = 2.0, watts: float = 0.0) -> None:
        self.figures = {
            "task_cpu_percent": 100 * cores, "corral_task_cpu_seconds_total": cpu_seconds,
            "task_mem_usage_byte": gib * GIB, "corral_task_power_watts": watts,
        }  # fmt: skip
        try:
            await self.use.look()
        finally:
            self.now += EVERY_SECONDS

    async def counted(self) -> Use:
        """All that the store counts of the job."""
        await self.use.store()
        now = self.house.clock.now() + 1e6
        return (await self.house.store.usage_between(0.0, now, By.JOB, now=now)).total


async def watched(house: House) -> Watched:
    await house.begin()
    job = await house.submit(short("digits", devices=1))
    await house.until(job, "running")
    return Watched(house, job)


def amounts(use: Use) -> tuple[float, ...]:
    measured = use.measured_task_seconds, use.used_cpu_seconds, use.used_memory_gib_seconds, use.energy_joules
    return tuple(round(each, 3) for each in measured)


async def test_what_a_task_uses_between_looks_is_added_up(house: House) -> None:
    task = await watched(house)
    await task.look(cores=2.0, cpu_seconds=500.0, watts=300.0)
    assert amounts(await task.counted()) == (15.0, 30.0, 30.0, 4500.0)
    await task.look(cores=9.0, cpu_seconds=560.0, gib=1.0)  # the counter tells more than the last percent
    assert amounts(await task.counted()) == (30.0, 90.0, 45.0, 4500.0)
    await task.look(cores=1.0, cpu_seconds=3.0)  # an agent began anew
    assert amounts(await task.counted()) == (45.0, 105.0, 75.0, 4500.0)
    task.now += 3600  # the machine slept
    await task.look(cores=1.0, cpu_seconds=1e12)
    assert amounts(await task.counted()) == (105.0, 165.0, 195.0, 4500.0)


async def test_a_task_without_figures_is_not_measured_and_one_that_ended_no_more(house: House) -> None:
    task = await watched(house)
    await task.use.look()
    assert amounts(await task.counted()) == (0.0, 0.0, 0.0, 0.0)
    await task.look(cores=1.0, cpu_seconds=10.0)
    house.engine.end(next(iter(house.engine.running)), 0)
    await house.until(task.job, "succeeded")
    await task.look(cores=1.0, cpu_seconds=25.0)
    assert amounts(await task.counted()) == (15.0, 15.0, 30.0, 0.0)


async def test_the_use_of_a_tasks_devices_is_added_up_also_where_nothing_else_is_known(house: House) -> None:
    task = await watched(house)
    for use in (50.0, 2.0):
        task.devices = [use]
        await task.use.look()
        task.now += EVERY_SECONDS
    task.devices = []
    await task.use.look()
    found = await task.counted()
    assert (found.measured_device_seconds, found.used_device_seconds) == pytest.approx((30.0, 7.8))
    assert found.idle_device_seconds == pytest.approx(15.0)
    assert amounts(found) == (30.0, 0.0, 0.0, 0.0)


async def test_sums_are_stored_now_and_then_and_kept_while_the_store_is_away(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await watched(house)
    stored: list[Mapping[AttemptId, Measured]] = []
    code = "store-away"

    async def add(records: Records, epoch: int, found: Mapping[AttemptId, Measured]) -> None:
        stored.append(found)
        if code:
            raise Unavailable(code, "The database does not answer.")

    monkeypatch.setattr(Records, "add_measured", add)
    for at in range(STORED_EVERY - 1):
        await task.look(cores=1.0, cpu_seconds=15.0 * at)
    assert not stored
    with pytest.raises(Unavailable):
        await task.look(cores=1.0, cpu_seconds=0.0)
    await task.look(cores=1.0, cpu_seconds=0.0)
    with pytest.raises(Unavailable):
        await task.use.store()
    assert [next(iter(each.values())).seconds for each in stored] == [60.0, 75.0]
    code = "store-outcome-unknown"  # it may be stored: nothing is counted twice
    with pytest.raises(Unavailable):
        await task.use.store()
    code = ""
    await task.use.store()
    assert len(stored) == 3


async def test_it_runs_beside_a_control(house: House, tmp_path: Path) -> None:
    await house.begin()
    api = ControlApi(house.control, tmp_path / "unused.sock")
    health = HealthKeeper(house.control.store, house.clock, HealthTerms())
    loops = watchers(house.control, api, ReportSettings("root", "", "", "monday 07:00", tmp_path), health=health)
    names = [each.cr_code.co_qualname for each in loops if isinstance(each, CoroutineType)]
    for each in loops:
        each.close()
    assert "MeasuredUse.run" in names
    assert health.on_hanging.__qualname__ == "HangKeeper.stopped", "tasks that stop alone have their evidence kept"


def test_odd_figures_count_as_nothing() -> None:
    odd = {"task_cpu_percent": -5.0, "task_mem_usage_byte": -1.0, "corral_task_power_watts": -3.0}
    assert used(Figures(odd), 15.0, None) == Measured(15.0, 0.0, 0.0, 0.0)
    assert used(Figures({}), 15.0, 3.0) == Measured(15.0, 0.0, 0.0, 0.0)
    nothing = Figures({}, (-3.0, float("nan")), held=2, devices=2.0)
    assert used(nothing, 15.0, None) == Measured(15.0)
    more = Figures({}, (3e9,), held=1, devices=1.0)
    assert used(more, 15.0, None).used_device_seconds == 15.0


def test_devices_are_used_by_their_mean_and_idle_below_five_percent() -> None:
    seconds = 10.0
    some_tell = Figures({}, (80.0, 4.9), held=4, devices=4.0)
    assert used(some_tell, seconds, None)[-3:] == pytest.approx((20.0, 8.49, 10.0))
    a_part = Figures({}, (4.0,), held=1, devices=0.25)
    assert used(a_part, seconds, None)[-3:] == pytest.approx((2.5, 0.1, 2.5))
    also_of_others = Figures({}, (100.0, 0.0), held=1, devices=1.0)
    assert used(also_of_others, seconds, None)[-3:] == pytest.approx((10.0, 5.0, 5.0))
    without = Figures({}, (100.0,))
    assert used(without, seconds, None)[-3:] == (0.0, 0.0, 0.0)
