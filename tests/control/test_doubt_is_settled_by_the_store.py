"""When a commit or a lease is in doubt, control asks the store and goes on from its answer."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from corral.control.control_api import ControlApi
from corral.control.lease import LEASE_SECONDS, Leadership
from corral.control.loop import Control
from corral.kernel.errors import CorralError, Unavailable
from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.launcher import LaunchPolicy
from corral.model.launch import TaskLaunch
from corral.model.records import ENDED_PHASES
from corral.model.store_writes import CommitResult, ControlBatch, IntentKind, LiveJob
from corral.scheduler import find_policy
from corral.store import LeadershipLost
from corral.store.leadership import Renewal
from tests.control.harness import House, PaperEngine, short
from tests.control.test_what_control_shows import Asked


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path, PaperEngine())
    await house.open()
    yield house
    await house.close()


def doubtful(house: House, *, stored: bool, times: int) -> None:
    """Make the next commits fail: after they were stored, or before."""
    real = house.control_store.commit
    left = times

    async def commit(batch: ControlBatch) -> CommitResult:
        nonlocal left
        if left and (batch.jobs or batch.outbox_done):
            left -= 1
            if stored:
                await real(batch)
            raise Unavailable("store-outcome-unknown", "The connection broke.")
        return await real(batch)

    house.control_store.commit = commit  # type: ignore[method-assign]


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "not stored"])
@pytest.mark.parametrize("times", [1, 3])
async def test_a_commit_whose_answer_was_lost_starts_and_ends_every_task_once(
    house: House, stored: bool, times: int
) -> None:
    await house.begin()
    doubtful(house, stored=stored, times=times)
    jobs = [await house.submit(short(f"job-{number}", replicas=2, devices=1, end_with=0)) for number in range(3)]
    for job in jobs:
        assert (await house.until(job, *ENDED_PHASES)).phase == "succeeded"
    assert len(house.engine.started) == 6
    assert all(most == 1 for most in house.engine.most_instances.values())


async def test_an_end_that_was_seen_while_the_store_was_away_is_not_lost(house: House) -> None:
    await house.begin()
    job = await house.submit(short("kept"))
    await house.until(job, "running")
    doubtful(house, stored=False, times=5)
    [attempt] = house.engine.running
    house.engine.end(attempt, 9)
    record = await house.until(job, *ENDED_PHASES)
    assert record.summary.exit is not None
    assert record.summary.exit.code == 9


async def test_a_task_that_its_machine_forgot_is_lost_and_tried_again(house: House) -> None:
    await house.begin()
    job = await house.submit(short("forgotten"))
    await house.until(job, "running")
    await house.abandon()
    house.engine.running.clear()
    await house.begin()
    async with asyncio.timeout(120):
        while not house.engine.running:
            await house.store.wakeup.wait(0.05)
    [again] = house.engine.running
    assert again == f"{job}.0.worker.0.1"


async def test_a_framework_that_raises_fails_its_own_job_and_no_other(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = await house.begin()
    real = control._render

    async def render(attempt: AttemptId) -> TaskLaunch | None:
        if control.world.jobs[parse_attempt_id(attempt).job].document.name == "bad":
            raise ZeroDivisionError("a plug-in's mistake")
        return await real(attempt)

    monkeypatch.setattr(control.dispatcher, "_render", render)
    bad = await house.submit(short("bad"))
    ended = await house.until(bad, *ENDED_PHASES)
    assert ended.phase == "failed"
    assert ended.summary.exit is not None
    assert "a plug-in's mistake" in ended.summary.exit.message
    good = await house.submit(short("good", end_with=0))
    assert (await house.until(good, *ENDED_PHASES)).phase == "succeeded"


async def test_an_engine_that_raises_at_a_start_fails_the_task_and_at_a_stop_is_asked_again(house: House) -> None:
    faults: list[str] = ["start"]

    def fault(call: str) -> None:
        if call in faults:
            faults.remove(call)
            raise ZeroDivisionError("an engine's mistake")

    await house.begin()
    house.engine.fault = fault
    ended = await house.until(await house.submit(short("bad")), *ENDED_PHASES)
    assert ended.phase == "failed" and ended.summary.exit is not None
    assert ended.summary.exit.message.startswith("The engine failed to start the task (ZeroDivisionError)")
    job = await house.submit(short("good"))
    await house.until(job, "running")
    faults += ["stop", "forget"]
    await house.store.add_intent(job, IntentKind.STOP, {}, actor="ada", at=house.clock.now())
    assert (await house.until(job, *ENDED_PHASES)).phase == "stopped"
    async with asyncio.timeout(120):
        while house.engine.ended or faults:
            await house.store.wakeup.wait(0.05)


async def test_a_second_control_waits_until_the_first_lets_go(house: House) -> None:
    await house.begin()
    store = await house._store("control")
    second = Leadership(store)
    second._holder = msgspec.structs.replace(second._holder, host="elsewhere")
    asking = asyncio.create_task(second.acquire())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.6):
            await asyncio.shield(asking)
    await house.control._leadership.release()
    async with asyncio.timeout(120):
        lease = await asking
    assert lease.epoch == 2
    with pytest.raises(LeadershipLost):
        await house.control_store.put_nodes(1, "local", [], 0.0)
    await store.close()


async def test_a_control_whose_machine_was_suspended_may_not_act(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most steady clocks and timers stop during suspend; the store's lease does not."""
    now = 1000.0
    monkeypatch.setattr("time.clock_gettime", lambda clock: {time.CLOCK_BOOTTIME: now}[clock])
    store = await house._store("control")
    leadership = Leadership(store)
    await leadership.acquire()
    assert leadership.left() == LEASE_SECONDS
    now += 1.0
    assert leadership.left() == LEASE_SECONDS - 1.0
    now += 60.0
    assert leadership.left() == 0.0
    await leadership.renew()
    assert leadership.left() == LEASE_SECONDS
    await store.close()


async def test_a_control_whose_loop_is_busy_keeps_its_lease(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two thousand tasks that start at once kept the loop busy for longer than the lease lasts."""
    monkeypatch.setattr("corral.control.lease.LEASE_SECONDS", 60.0)  # a slow machine renews it in that time
    monkeypatch.setattr("corral.control.lease._RENEW_SECONDS", 0.05)
    leadership = (await house.begin())._leadership
    until, begun = leadership._until, time.monotonic()
    for _ in range(2):
        while leadership._until == until:
            assert time.monotonic() - begun < 120.0, "it was not renewed"
            time.sleep(0.01)  # nothing else of the loop runs
        until = leadership._until
    assert leadership.left()
    other = await house._store("front")
    asking = msgspec.structs.replace(Leadership(other)._holder, host="elsewhere")
    assert await other.lead(asking) is None
    await other.close()


async def test_a_control_whose_loop_hangs_gives_its_lease_up(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.control.lease._RENEW_SECONDS", 0.05)
    now = 1000.0
    store = await house._store("control")
    leadership = Leadership(store, steady=lambda: now)
    await leadership.acquire()
    keeping = asyncio.create_task(leadership.keep())
    await asyncio.sleep(0)
    renewed, hanging = asyncio.Event(), threading.Event()
    loop, real = asyncio.get_running_loop(), leadership._renew_with

    def renew(renewal: Renewal) -> None:
        real(renewal)
        loop.call_soon_threadsafe(renewed.set)
        hanging.wait(120)  # none is under way when the loop begins to hang

    leadership._renew_with = renew  # type: ignore[method-assign]
    async with house.patience():
        await renewed.wait()
    leadership._turned = now - 60.0
    renewed.clear()
    hanging.set()
    time.sleep(1.5)  # nothing else of the loop runs
    await asyncio.sleep(0)
    assert not renewed.is_set()
    keeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keeping
    await store.close()


async def test_a_control_that_was_deposed_ends_without_another_write(house: House) -> None:
    await house.begin()
    job = await house.submit(short("first"))
    await house.until(job, "running")
    usurper = await house._store("control")
    lease = await usurper.lead(Leadership(usurper)._holder, takeover=lambda holder: True)
    assert lease is not None
    await house.store.add_intent(job, IntentKind.STOP, {}, actor="ada", at=1.0)
    assert house._running is not None
    with pytest.raises(BaseExceptionGroup) as caught:
        async with asyncio.timeout(120):
            await house._running
    assert caught.group_contains(LeadershipLost, depth=1)
    assert house.engine.stopped == []
    await usurper.close()


async def test_a_deposed_control_leaves_the_lease_of_the_new_one_alone(house: House, tmp_path: Path) -> None:
    first = await house.begin()
    usurper = await house._store("control")
    lease = await usurper.lead(Leadership(usurper)._holder, takeover=lambda holder: True)
    assert lease is not None
    await first._leadership.release()
    renewed = await usurper.renew(lease)
    assert renewed.epoch == lease.epoch
    await usurper.close()


async def test_a_control_without_a_store_to_lead_in_says_so_only_once_it_may(house: House) -> None:
    store = await house._store("control")
    control = Control(
        store,
        {house.engine.name: house.engine},
        Leadership(store),
        clock=house.clock,
        launch_policy=LaunchPolicy(),
        policy=find_policy(),
    )
    assert not control.ready.is_set()
    with pytest.raises(LeadershipLost):
        _ = control._leadership.epoch
    await store.close()


async def test_nothing_is_answered_from_a_world_that_is_being_read_again(house: House) -> None:
    control = await house.begin()
    control_client = Asked(ControlApi(control, house.folder / "unused.sock"))
    job = await house.submit(short("before", replicas=1, devices=1))
    await house.until(job, "running")
    assert await control_client.request("/overview/line") is not None
    load, reading, go_on = house.control_store.load_live, asyncio.Event(), asyncio.Event()

    async def slow() -> list[LiveJob]:
        reading.set()
        await go_on.wait()
        return await load()

    house.control_store.load_live = slow  # type: ignore[method-assign]
    doubtful(house, stored=False, times=1)
    after = await house.submit(short("after", replicas=1, devices=1))
    async with house.patience():
        await reading.wait()
    with pytest.raises(CorralError) as refused:
        await control_client.request("/overview/line")
    assert refused.value.code == "control-starting"
    go_on.set()
    await house.until(after, "running")
    assert await control_client.request("/overview/line") is not None
