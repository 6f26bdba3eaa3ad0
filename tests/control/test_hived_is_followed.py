"""Control under the hived preset: live, after a kill, and when a job with preemption-reserved cells is stopped."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from corral.control.forecast.courses import Forecasted, play_courses
from corral.kernel.ids import JobId
from corral.model.records import EventRecord
from corral.model.start_estimates import Basis, Estimate
from corral.model.store_writes import IntentKind
from corral.scheduler.planners.hived.algorithm.inspect_api import affinity_group
from corral.scheduler.planners.hived.planner import HivedPlanner
from corral.scheduler.planners.hived.state_fold import Hived
from tests.control.harness import House, PaperEngine, short
from tests.control.test_configuration import _apply

CELLS = """
kind: Cluster
cellTypes: {box: {child: gpu, count: 4, node: true}}
cells: [{type: box, name: 'node[0-1]'}]
"""
OWNERS = """
{kind: Queue, name: prod, cells: [{cellType: box, count: 1}]}
---
{kind: Queue, name: test, cells: [{cellType: box, count: 1}]}
---
{kind: Policy, preset: hived}
"""


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path, PaperEngine(nodes=2, devices=4))
    await made.open()
    await made.begin()
    await _apply(made, f"{CELLS}---\n{OWNERS}")
    while not isinstance(made.control.world.planner, HivedPlanner):
        await made.store.wakeup.wait(0.02)
    yield made
    await made.close()


def _hived(house: House) -> Hived:
    """HiveD's own account."""
    planner = house.control.world.planner
    assert isinstance(planner, HivedPlanner)
    return planner.hived


def _states(house: House) -> dict[str, str]:
    hived = _hived(house)
    return {name: group.label for name, group in hived.algorithm.groups.items()}


async def _guests(house: House) -> JobId:
    """A job that uses all devices opportunistically."""
    guests = await house.submit(short("guests", replicas=2, devices=4, queue="test", priority="oppo"))
    await house.until(guests, "running")
    return guests


async def test_an_owner_takes_its_cells_back_against_a_receipt(house: House) -> None:
    guests = await _guests(house)
    owner = await house.submit(short("owner", devices=4, queue="prod"))
    await house.until(owner, "running")
    await house.until(guests, "waiting")
    (receipt,) = await house.store.open_receipts()
    assert (str(receipt.rule), receipt.by_job) == ("opportunistic", owner)
    assert _states(house) == {owner: "Allocated"}


async def test_a_kill_changes_nothing_for_who_has_cells(house: House) -> None:
    owner = await house.submit(short("owner", devices=2, queue="prod"))
    await house.until(owner, "running")
    guest = await house.submit(short("guest", devices=4, queue="prod", priority="oppo"))
    await house.until(guest, "running")
    before = _hived(house)
    await house.abandon()
    await house.begin()
    assert _hived(house).digest() == before.digest()


async def test_a_preemptor_that_is_stopped_leaves_nothing_kept(house: House) -> None:
    guests = await _guests(house)

    house.engine.stop = _never  # type: ignore[method-assign]
    owner = await house.submit(short("owner", devices=4, queue="prod"))
    await house.until(guests, "stopping")
    assert _states(house)[owner] == "Preempting"
    await house.store.add_intent(owner, IntentKind.STOP, {}, actor="root", at=house.clock.now())
    await house.until(owner, "stopped")
    assert owner not in _states(house)


async def _never(*_: object, **__: object) -> None:
    """A task that ignores its stop signal."""


async def test_who_loses_the_guarantee_to_a_new_configuration_is_told(house: House) -> None:
    owner = await house.submit(short("owner", devices=4, queue="prod"))
    await house.until(owner, "running")
    await _apply(house, "{kind: Queue, name: prod, cells: []}")
    await house.until(await house.submit(short("later", end_with=0)), "succeeded")
    assert _states(house)[owner] == "Allocated+LazyPreempted"
    assert "job.guarantee-lost" in [event.kind for event in await house.store.events(0, job=owner)]


def _shown(house: House, job: JobId) -> dict[str, Any]:
    """HiveD's document of a job's affinity group."""
    status = affinity_group(_hived(house).algorithm.state, job)["status"]
    assert isinstance(status, dict)
    return status


def _later(house: House) -> None:
    """Advance the clock by two seconds."""
    now = house.clock.now
    house.clock.now = lambda: now() + 2  # type: ignore[method-assign]


async def _until_told(house: House, job: JobId) -> EventRecord:
    """The event that tells a job that it lost its guarantee."""
    while not (told := await house.store.events_of(job, kinds=("job.guarantee-lost",))):
        await house.store.wakeup.wait(0.02)
    return told[0]


async def test_a_lazy_preemption_is_shown_with_its_time_and_the_group_that_made_it(house: House) -> None:
    lazy = await house.submit(short("lazy", devices=4, queue="prod", lazyPreemption=True))
    await house.until(lazy, "running")
    _later(house)
    urgent = await house.submit(short("urgent", devices=4, queue="prod", priority="crit"))
    await house.until(urgent, "running")
    told = await _until_told(house, lazy)
    expected = {"preemptor": urgent, "preemptionTime": told.at[:19] + "Z"}
    assert _shown(house, lazy)["lazyPreemptionStatus"] == expected and told.data == {"preemptor": urgent}
    await house.abandon()
    _later(house)
    await house.begin()
    assert _shown(house, lazy)["lazyPreemptionStatus"] == expected


async def test_a_group_that_a_configuration_took_the_guarantee_is_shown_with_that_time(house: House) -> None:
    owner = await house.submit(short("owner", devices=4, queue="prod"))
    await house.until(owner, "running")
    _later(house)
    await _apply(house, "{kind: Queue, name: prod, cells: []}")
    told = await _until_told(house, owner)
    expected = {"preemptor": owner, "preemptionTime": told.at[:19] + "Z"}
    assert _shown(house, owner)["lazyPreemptionStatus"] == expected
    await house.abandon()
    _later(house)
    await house.begin()
    assert _shown(house, owner)["lazyPreemptionStatus"] == expected


async def test_cells_that_hived_has_no_words_for_leave_what_is_in_force(house: House) -> None:
    await _apply(house, "{kind: Queue, name: prod, cells: [{cellType: box, count: 7}]}")
    job = await house.submit(short("later", devices=4, queue="prod"))
    await house.until(job, "running")
    assert list(_states(house)) == [job]


async def test_starts_are_forecast_under_hived_too(house: House) -> None:
    house.engine.started_at = house.clock.now()
    owner = await house.submit(short("owner", devices=4, queue="prod", maxDuration="1h"))
    await house.until(owner, "running")
    next_one = await house.submit(short("next", devices=4, queue="prod"))
    await house.explained(next_one)
    now = house.clock.now()
    found = msgspec.msgpack.decode(play_courses(house.control.core, (), now), type=Forecasted)
    said = msgspec.msgpack.decode(found.estimates[next_one], type=Estimate)
    assert (said.basis, said.after) == (Basis.EXPECTED, (owner,))
    assert said.at is not None and 3000 < said.at - now < 3700
