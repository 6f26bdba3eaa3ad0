"""Evictions of running gangs by drains, bad hardware and suspension, each with a receipt."""

from __future__ import annotations

from math import inf
from typing import Any

import msgspec
import pytest

from corral.control.core.driver import Work
from corral.kernel.ids import JobId
from corral.launcher import LaunchPolicy
from corral.model.cordons import Cordon, Drain
from corral.model.inventory import Node
from corral.model.records import WaitingView
from corral.model.store_writes import IntentKind
from corral.scheduler import find_policy
from tests.control.core.virtual import BEGIN, Played
from tests.control.harness import short

POLICY = LaunchPolicy(conflict_delay=(0.0, 0.0), retry_first=0.0)


@pytest.fixture
def played() -> Played:
    return Played(policy=POLICY, usual=Work(inf))


def running(played: Played, name: str, **fields: Any) -> JobId:
    """Submit a job that starts at once, and let it run for a minute."""
    job = played.submit_file(short(name, **fields))
    assert state(played, job) == "running"
    played.driver.run(played.driver.now + 60.0)
    return job


def state(played: Played, job: JobId) -> str:
    return played.stored(job).summary.state


def waits(played: Played, job: JobId) -> WaitingView:
    """Why a job waits."""
    waiting = played.stored(job).summary.waiting
    assert state(played, job) == "waiting" and waiting is not None
    return waiting


def cordon(node: str, drain: Drain = Drain.NONE) -> Cordon:
    return Cordon(node, "root", "new cables", 0.0, drain, None)


def change(played: Played, name: str, **fields: Any) -> None:
    """Change the fields of one node."""
    played.see(msgspec.structs.replace(node_of(played, name), **fields))


def node_of(played: Played, name: str) -> Node:
    return next(node for node in played.machines.nodes if node.name == name)


def test_a_cordoned_node_takes_nothing_new_and_keeps_what_it_has(played: Played) -> None:
    played.close(cordon("local/node0"))
    first = running(played, "first", devices=4)
    assert played.nodes_of(first) == {0: "local/node1"}
    second = played.submit_file(short("second", devices=4))
    assert waits(played, second)
    played.close(cordon("local/node0"), cordon("local/node1"))
    waiting = waits(played, second)
    assert waiting.code == "cordoned" and "cordoned by root: new cables" in waiting.message
    played.close(cordon("local/node1"))
    assert state(played, second) == "running"
    assert played.nodes_of(second) == {0: "local/node0"}
    assert state(played, first) == "running" and played.stored(first).run.yields == 0


def test_a_drain_that_lets_jobs_end_ends_none(played: Played) -> None:
    job = running(played, "ends", devices=1)
    (node,) = played.nodes_of(job).values()
    played.close(cordon(node, Drain.AFTER_JOBS))
    other = running(played, "other", devices=1)
    assert node not in played.nodes_of(other).values()
    assert state(played, job) == "running" and played.stored(job).run.yields == 0


def test_an_elastic_gang_leaves_a_drained_node_with_its_tasks_there_only(played: Played) -> None:
    job = running(played, "elastic", replicas={"min": 2, "max": 8}, devices=1)
    before = played.nodes_of(job)
    assert len(before) == 8
    spared = next(node for node in set(before.values()) if node != before[0])
    played.close(cordon(spared, Drain.NOW))
    assert len(played.nodes_of(job)) == 4
    run = played.stored(job).run
    assert state(played, job) == "running" and run.attempt == 0 and run.roles["worker"].target == 8
    played.close()
    (receipt,) = played.receipts(job)
    assert receipt.returned_at is not None
    assert {key.index for key in receipt.tasks} == {index for index, node in before.items() if node == spared}
    assert len(played.nodes_of(job)) == 8


def test_the_node_of_task_0_costs_an_elastic_gang_its_attempt(played: Played) -> None:
    job = running(played, "elastic", replicas={"min": 1, "max": 8}, devices=1)
    before = played.nodes_of(job)
    played.close(cordon(before[0], Drain.NOW))
    (receipt,) = played.receipts(job)
    assert receipt.returned_at is not None
    assert receipt.tasks == () and receipt.devices == 8 and receipt.cost_device_seconds == 8 * 60.0
    assert state(played, job) == "running" and played.stored(job).run.attempt == 1
    assert before[0] not in played.nodes_of(job).values()


@pytest.mark.parametrize(("wanted", "moves"), [("auto", False), ("keep", False), ("replace", True)])
def test_an_unhealthy_device_is_left_by_jobs_that_say_so(played: Played, wanted: str, moves: bool) -> None:
    """Y9: a device with ECC errors is given to nobody; the job on it runs on unless it asked to be moved."""
    job = running(played, "ecc", devices=1, badHardware=wanted)
    (place,) = [task.placement for task in played.stored(job).tasks.values()]
    assert place is not None
    sick = [
        msgspec.structs.replace(device, healthy=False, health_reason="ECC") if device.index in place.devices else device
        for device in node_of(played, place.node).devices
    ]
    change(played, place.node, devices=tuple(sick))
    if moves:
        (receipt,) = played.receipts(job)
        assert receipt.rule == "bad-hardware" and "ECC" in receipt.message and receipt.returned_at is not None
    other = played.submit_file(short("other", replicas=7, devices=1))
    assert state(played, other) == ("waiting" if moves else "running")
    assert state(played, job) == "running" and played.stored(job).run.yields == (1 if moves else 0)
    (now,) = [task.placement for task in played.stored(job).tasks.values()]
    assert now is not None and ((now.node, now.devices) != (place.node, place.devices)) == moves


@pytest.mark.parametrize(("wanted", "moves"), [("auto", True), ("keep", False), ("replace", True)])
def test_a_lost_node_is_left_by_all_but_those_that_stay(wanted: str, moves: bool) -> None:
    played = Played(policy=POLICY, usual=Work(inf), not_ready_seconds=30.0)
    job = running(played, "lost", devices=1, badHardware=wanted)
    (node,) = played.nodes_of(job).values()
    change(played, node, ready=False, ready_reason="disk gone")
    played.driver.run(played.driver.now + 29.0)
    assert not played.receipts(job)
    played.driver.run(played.driver.now + 1.0)
    if moves:
        (receipt,) = played.receipts(job)
        assert receipt.rule == "bad-hardware" and "disk gone" in receipt.message and receipt.returned_at is not None
        assert node not in played.nodes_of(job).values()
    else:
        other = running(played, "other", devices=4)
        assert node not in played.nodes_of(other).values()
        assert state(played, job) == "running" and played.stored(job).run.yields == 0


def test_nobody_waits_for_a_node_that_its_engine_has_given_up() -> None:
    played = Played(policy=POLICY, usual=Work(inf), not_ready_seconds=3600.0)
    job = running(played, "moves", devices=1)
    (node,) = played.nodes_of(job).values()
    change(played, node, ready=False, ready_reason="it is silent")
    assert not played.receipts(job) and node in played.nodes_of(job).values()
    change(played, node, ready=False, ready_reason="YARN counts the node as lost", lost=True)
    (receipt,) = played.receipts(job)
    assert receipt.rule == "bad-hardware" and "YARN counts the node as lost" in receipt.message
    assert node not in played.nodes_of(job).values()


def test_a_node_that_is_back_soon_costs_nobody_anything() -> None:
    played = Played(policy=POLICY, usual=Work(inf), not_ready_seconds=3600.0)
    job = running(played, "stays", devices=1)
    (node,) = played.nodes_of(job).values()
    change(played, node, ready=False)
    other = running(played, "other", devices=4)
    assert node not in played.nodes_of(other).values()
    assert played.core.machines.next_loss(played.driver.now) is not None
    change(played, node, ready=True)
    running(played, "third", devices=3)
    assert played.core.machines.next_loss(played.driver.now) is None
    played.driver.run(played.driver.now + 7200.0)
    assert state(played, job) == "running" and played.stored(job).run.yields == 0


def test_a_suspended_job_stays_away_through_a_restart_until_it_is_resumed(played: Played) -> None:
    job = running(played, "asleep", devices=1)
    played.ask(job, IntentKind.SUSPEND)
    assert waits(played, job).code == "suspended" and played.stored(job).run.hold == "suspended"
    played.begin_anew()
    played.settle()
    assert not played.core.world.cluster.holds(job) and not played.core.world.queue.waiting(job)
    played.ask(job, IntentKind.RESUME)
    assert state(played, job) == "running"
    (receipt,) = played.receipts(job)
    assert (receipt.rule, receipt.by_user, receipt.returned_at is None) == ("suspended", "ada", False)


def test_a_job_that_ends_away_has_its_receipt_closed(played: Played) -> None:
    job = running(played, "stopped", devices=1)
    played.ask(job, IntentKind.SUSPEND)
    (receipt,) = played.receipts(job)
    assert receipt.returned_at is None and not receipt.over
    played.ask(job, IntentKind.STOP)
    assert state(played, job) == "stopped"
    (receipt,) = played.receipts(job)
    assert receipt.over and receipt.returned_at is None


def test_after_a_restart_a_place_is_kept_only_for_a_job_that_has_waited_since_others_yielded() -> None:
    played = Played(nodes=1, usual=Work(inf, stop_seconds=20.0), scheduling=find_policy("fair"))
    yields = running(played, "yields", devices=4, priority=0)
    now = played.driver.now - BEGIN
    work = Work(100.0, code=1)
    first = played.submit("first", now, devices=2, priority=10, retryPolicy={"maxRetries": 1}, work=work)
    played.run(now + 1.0)
    played.begin_anew()
    assert played.core.world.queue.nominated == {first}, "the other is still leaving"
    other = played.submit("other", now + 50.0, devices=4, priority=10)
    played.run(now + 150.0)
    assert state(played, other) == "running", "it took the place before the retry"
    assert waits(played, first) and waits(played, yields) and played.receipts(yields)[-1].returned_at is None
    played.begin_anew()
    assert played.core.world.queue.nominated == set()
