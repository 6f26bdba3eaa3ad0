"""A question about one job is answered on a copy that shares the queue: as on a whole copy, and without a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from msgspec import structs

from corral.kernel.ids import JobId, TaskKey
from corral.model.plan import Plan, Reasons
from corral.model.requests import GangRequest
from corral.scheduler import GangQueued, Queue, find_policy
from corral.scheduler.cells.owned_placement import place_best
from corral.scheduler.placement.room_check import RoomCheck
from corral.scheduler.planners.builtin.planning import foresee
from corral.scheduler.preemption import victim_search
from corral.scheduler.preemption.victim import Victim
from corral.scheduler.preemption.victim_search import Preemption
from tests.examples import examples
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role
from tests.scheduler.test_the_smallest_change_is_told import changes, lives


def waiting(life: Life) -> list[JobId]:
    """The jobs of which no task runs."""
    return [JobId(job) for job in sorted(life.requests) if job not in life.running and life.queue.first(JobId(job))]


def held(queue: Queue) -> Any:
    """Everything that a queue holds, down to its very entries."""
    groups = [
        (name, [*group.keys], {each: [*keys] for each, keys in group.durations.items()}, set(group.fresh))
        for name, group in queue.groups.items()
    ]
    caches = [(group.verdict, group.reported) for group in queue.groups.values()]
    entries = [
        (key, id(entry), entry.key, entry.reported) for g in queue.groups.values() for key, entry in g.entries.items()
    ]
    return queue.digest(), groups, caches, entries, [*queue._keys], dict(queue._jobs), queue.expected


def decided(plan: Plan) -> Any:
    """What a plan decides, without when evicted gangs return."""
    return plan.placements, [structs.replace(eviction, back_at=None) for eviction in plan.evictions]


def told(reasons: Reasons | None) -> Any:
    return reasons and (reasons.binding, reasons.others, reasons.possible)


@settings(max_examples=examples(12), deadline=None)
@given(lives())
def test_plans_and_answers_are_those_of_a_whole_copy(life: Life) -> None:
    for job in waiting(life):
        before = held(life.queue)
        whole, why = foresee(life.cluster, life.queue.fork(), life.policy, job, life.now)
        shared, reason = foresee(life.cluster, life.queue.fork_about(job, 64), life.policy, job, life.now)
        assert (decided(shared), told(reason)) == (decided(whole), told(why))
        assert shared.reasons.keys() <= {job}
        answers = life.planner.explain(job, life.now), changes(life, job)
        assert held(life.queue) == before
        with pytest.MonkeyPatch.context() as whole_copies:
            whole_copies.setattr(Queue, "fork_about", lambda queue, job, most: queue.fork())
            assert (life.planner.explain(job, life.now), changes(life, job)) == answers


def test_an_order_that_changes_with_time_leaves_the_keys_of_the_queue() -> None:
    life = Life([node("n1")], policy=find_policy("gandiva-fair"))
    life.submit(gang("runs", role(1, 4)))
    life.cycle(1.0)
    life.submit(*(gang(f"j{at}", role(1, 4), at=float(at), user=f"u{at}") for at in range(4)))
    life.cycle(2.0)
    life.now = 5000.0
    before = held(life.queue)
    assert all(life.planner.explain(job, life.now) for job in waiting(life))
    assert held(life.queue) == before


def test_a_copy_keeps_the_first_of_each_shape_and_the_job_that_asks() -> None:
    life = Life([node("n1")])
    life.submit(*(gang(f"j{at}", role(1, 4), at=float(at)) for at in range(9)))
    twin = life.queue.fork_about(JobId("j7"), 2)
    assert [entry.request.job for group in twin.groups.values() for entry in group.entries.values()] == [
        "j0",
        "j1",
        "j7",
    ]
    twin.apply(GangQueued(gang("j7", role(1, 3), at=7.0)))
    assert len(twin.groups) == 2 and len(life.queue.groups) == 1 and len(life.queue) == 9


def one_by_one(
    preemption: Preemption, request: GangRequest, victims: Sequence[Victim], has_room: RoomCheck
) -> int | None:
    """How many of the first victims suffice, found by a look after each."""
    gone = dict[JobId, set[TaskKey]]()
    with preemption.trial.tentative():
        for count, victim in enumerate(victims, 1):
            known = gone.setdefault(victim.gang.job, set())
            preemption.trial.lift({victim.gang.job: set(victim.tasks) - known})
            known.update(victim.tasks)
            if has_room() and not preemption._bounded(request, victims[:count], place_best):
                return count
    return None


@pytest.mark.parametrize("at_once", [1, 3])
def test_the_fewest_victims_are_those_that_a_look_after_each_finds(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[int] = []
    by_batches = Preemption._first_with_room

    def both(
        preemption: Preemption, request: GangRequest, victims: Sequence[Victim], has_room: RoomCheck
    ) -> int | None:
        expected = one_by_one(preemption, request, victims, has_room)
        assert by_batches(preemption, request, victims, has_room) == expected
        found.append(expected or 0)
        return expected

    monkeypatch.setattr(Preemption, "_first_with_room", both)
    monkeypatch.setattr(victim_search, "_AT_ONCE", at_once)

    @settings(max_examples=examples(15), deadline=None)
    @given(lives())
    def answered(life: Life) -> None:
        for job in waiting(life):
            life.planner.explain(job, life.now)
            changes(life, job)

    answered()
    life = Life([node(f"n{at}") for at in range(4)])
    life.submit(*(gang(f"low{at}", role(1, 1 + at % 2), at=float(at)) for at in range(10)))
    life.cycle(20.0)
    for tasks in range(1, 5):
        life.submit(gang("high", role(tasks, 4), at=30.0, priority=100))
        life.planner.explain(JobId("high"), 40.0)
    assert len({count for count in found if count}) > 2, "several numbers of victims were found"
