"""With a half-life, past usage counts against a queue; the stored usage is complete."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.kernel.draw import draw_integer
from corral.kernel.ids import JobId
from corral.kernel.units import DEVICE
from corral.model.queues import QueueSpec, QueueUsage
from corral.scheduler import (
    BuiltinPlanner,
    Checkpointed,
    Cluster,
    GangNominated,
    GangQueued,
    NodesSeen,
    QueuesConfigured,
    TasksLeaving,
    UsageRecalled,
    gang_placed,
)
from corral.scheduler.cluster.cluster import placed_again
from tests.examples import examples
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, inventory, node, role

QUEUES = (
    QueueSpec("top", half_life_seconds=400.0),
    QueueSpec("a", "top", half_life_seconds=100.0),
    QueueSpec("b", "top", half_life_seconds=100.0, weight=2.0),
    QueueSpec("c", half_life_seconds=30.0, deserved={"devices": 2}),
)
MACHINES = [node(f"n{at}") for at in range(3)]


def written(cluster: Cluster) -> tuple[QueueUsage, ...]:
    """The usage that control would store."""
    return tuple(cluster.queues.past_use(node) for node in cluster.queues.decaying)


def restart(life: Life) -> None:
    """Rebuild the state from the stored usage alone, as control does."""
    old, waiting, nominated = life.cluster, life.queue, sorted(life.queue.nominated)
    usage = written(old)
    life.planner = BuiltinPlanner(policy=life.policy)
    life.configure(*old.queues.specs.values())
    life.planner.fold(NodesSeen(inventory(*MACHINES)))
    for job, running in sorted(old.gangs.by_job.items()):
        assert running.request is not None
        life.planner.fold(
            gang_placed(running.request, placed_again(running, old.holds(job)).placement, running.placed_at)
        )
        if running.checkpointed_at:
            life.planner.fold(Checkpointed(job, running.attempt, running.checkpointed_at))
        if running.leaving:
            life.planner.fold(TasksLeaving(job, tuple(sorted(running.leaving))))
    life.planner.fold(UsageRecalled(usage))
    for job in sorted(life.requests):
        for request in waiting.waiting(JobId(job)):
            life.planner.fold(GangQueued(request))
    for job in nominated:
        life.planner.fold(GangNominated(job))


def live(seed: int, *, restarts: bool) -> tuple[list[object], list[tuple[QueueUsage, ...]]]:
    """The decisions in a life of random events, and the usage stored meanwhile."""
    life, decided, past = Life(MACHINES, QUEUES), [], []
    for step in range(120):
        kind = draw_integer(seed, step, "kind") % 8
        if kind < 3:
            size, queue = 1 + draw_integer(seed, step, "size") % 4, "abc"[draw_integer(seed, step, "queue") % 3]
            life.submit(gang(f"job{step:03}", role(size), at=float(step), queue=queue))
        elif kind == 3 and life.running:
            life.end(sorted(life.running)[draw_integer(seed, step, "ends") % len(life.running)])
        elif kind == 4:
            life.yielded()
        elif kind == 5 and life.running:
            job = sorted(life.running)[draw_integer(seed, step, "saves") % len(life.running)]
            life.planner.fold(Checkpointed(JobId(job), 0, float(step * 10)))
        else:
            if restarts and draw_integer(seed, step, "restart") % 2:
                restart(life)
            found = life.cycle(float(step * 10))
            decided.append((found.placements, found.evictions, sorted(found.reasons)))
            past.append(written(life.cluster))
    return decided, past


@pytest.mark.parametrize("seed", range(6))
def test_restarts_in_between_change_no_decision_and_nothing_of_the_past(seed: int) -> None:
    plain, past = live(seed, restarts=False)
    again, past_again = live(seed, restarts=True)
    assert [decision[:2] for decision in again] == [decision[:2] for decision in plain]
    assert past_again == past


def standing(life: Life, now: float) -> list[str]:
    """The queues, the most under-served first."""
    queues = life.cluster.queues
    return sorted(("a", "b"), key=lambda name: queues.standing(queues.find(name), now))


def used_by(queue: str) -> Life:
    """An idle machine that one queue alone has used before."""
    life = Life([node("n1")], [QueueSpec("a", half_life_seconds=100.0), QueueSpec("b", half_life_seconds=100.0)])
    life.submit(gang("long", role(4), queue=queue))
    life.cycle(0.0)
    life.now = 500.0
    life.end("long")
    return life


@pytest.mark.parametrize("user", ["a", "b"])
def test_who_had_the_machines_before_comes_second_also_after_a_restart(user: str) -> None:
    life = used_by(user)
    other = "ab".replace(user, "")
    twin = Cluster()
    twin.apply(QueuesConfigured(tuple(life.cluster.queues.specs.values())))
    twin.apply(NodesSeen(inventory(node("n1"))))
    forgotten = twin.queues.average(twin.queues.find(user), 600.0)
    assert not any(forgotten)
    twin.apply(UsageRecalled(written(life.cluster)))
    for target in (life.cluster, twin):
        life.planner = BuiltinPlanner(target, life.queue, life.policy)
        assert standing(life, 600.0) == [other, user]
    assert twin.queues.average(twin.queues.find(user), 600.0)[0] == pytest.approx(4 * DEVICE / 2, rel=0.05)
    life.submit(gang(f"of-{user}", role(4), at=1.0, queue=user), gang(f"of-{other}", role(4), at=2.0, queue=other))
    life.cycle(600.0)
    assert set(life.running) == {f"of-{other}"}


def test_a_new_configuration_forgets_nothing_and_a_queue_without_a_half_life_has_no_past() -> None:
    life = used_by("a")
    before = written(life.cluster)
    half = {"half_life_seconds": 100.0}
    life.configure(QueueSpec("a", weight=3.0, **half), QueueSpec("b", limit={"devices/A100": 1}, **half))
    assert written(life.cluster) == before
    life.configure(QueueSpec("a"), QueueSpec("b", half_life_seconds=50.0))
    assert [usage.queue for usage in written(life.cluster)] == ["b"]
    life.configure(QueueSpec("a", half_life_seconds=100.0))
    assert written(life.cluster) == (QueueUsage("a", 0.0),)


@given(st.lists(st.tuples(st.floats(0.1, 500), st.integers(0, 4)), min_size=1, max_size=8), st.floats(1, 1000))
@settings(max_examples=examples(60), deadline=None)
def test_looking_in_between_changes_no_average(changes: list[tuple[float, int]], half_life: float) -> None:
    specs = (QueueSpec("a", half_life_seconds=half_life),)
    often, seldom = Cluster(), Cluster()
    for target in (often, seldom):
        target.apply(QueuesConfigured(specs))
    now = 0.0
    for seconds, amount in changes:
        for target in (often, seldom):
            target.queues.remember("a", "", now)
            held = target.queues.find("a").used[0]
            target.queues.charge("a", "", (), [amount * DEVICE - held, 0, 0])
        now += seconds
        often.queues.remember("a", "", now - seconds / 2)
        often.apply(UsageRecalled(written(often)))
    averages = [target.queues.average(target.queues.find("a"), now)[0] for target in (often, seldom)]
    assert averages[0] == pytest.approx(averages[1], rel=1e-9, abs=1e-6)
    assert 0 <= averages[0] <= 4 * DEVICE + 1e-6, "but for rounding it is between what was held at any time"
