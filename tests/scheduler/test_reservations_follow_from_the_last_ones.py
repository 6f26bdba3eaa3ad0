"""The head's reservation is found from the last one where all came as expected, and is the one that a search finds."""

from __future__ import annotations

from collections.abc import Collection
from math import inf

import pytest

from corral.kernel.draw import draw_integer
from corral.kernel.ids import JobId
from corral.model.requests import GangRequest
from corral.scheduler import Policy, find_policy
from corral.scheduler.backfill import Reservation, reserve, reserve_as_foreseen
from corral.scheduler.cluster.future_record import FutureRecord, Place
from corral.scheduler.placement.trial import Trial
from corral.scheduler.planners.builtin import queue_head
from corral.scheduler.planners.builtin.planning import Memory
from tests.scheduler import compared_lives
from tests.scheduler.compared_lives import machines
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, occupy, role

SECONDS = 60


class Forgetful(FutureRecord):
    """A record in which nothing came as expected."""

    def note(self, unchanged_from: float, places: Collection[Place] | None = None) -> None:
        self.early += 1
        super().note(unchanged_from, places)


def drawn(seed: int, second: int, at: int) -> GangRequest:
    """A gang of one to twenty devices, which mostly has a bounded duration."""
    tasks, devices = [(1, 1), (1, 4), (6, 1), (2, 8), (3, 4), (5, 4)][draw_integer(seed, second, at, 1) % 6]
    return gang(
        f"job{second:03}-{at}",
        role(tasks, devices),
        at=float(second),
        user=f"user{draw_integer(seed, second, at, 4) % 3}",
        max_duration_seconds=[3, 5, 8, 13, 0][draw_integer(seed, second, at, 2) % (5 if seed % 2 else 4)],
    )


def reservation(life: Life) -> Reservation | None:
    memory = life.queue.memory
    return memory.reservation if isinstance(memory, Memory) else None


@pytest.mark.parametrize("policy", [find_policy("fifo"), find_policy("fair")], ids=["fifo", "fair"])
def test_a_reservation_is_the_one_that_a_search_finds(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    short_cuts: list[str] = []

    def bounded(trial: Trial, request: GangRequest, now: float, *, not_before: float = -inf) -> Reservation | None:
        short_cuts.extend(["bounded"] if not_before > -inf else [])
        return reserve(trial, request, now, not_before=not_before)

    def known(trial: Trial, job: JobId, last: Reservation) -> Reservation:
        short_cuts.append("foreseen")
        return reserve_as_foreseen(trial, job, last)

    monkeypatch.setattr(queue_head, "reserve", bounded)
    monkeypatch.setattr(queue_head, "reserve_as_foreseen", known)
    for seed in range(8):
        told, untold = Life(machines(), policy=policy), Life(machines(), policy=policy)
        untold.cluster.future = Forgetful()
        for second in range(SECONDS):
            plans = []
            for life in (told, untold):
                before = len(short_cuts)
                plan = compared_lives.second_of(life, seed, second, drawn, most=2, submits=second < SECONDS - 20)
                plans.append((plan.placements, plan.evictions, plan.lapsed))
                assert life is told or len(short_cuts) == before, "a life in which nothing is expected searches"
            assert plans[0] == plans[1]
            assert reservation(told) == reservation(untold)
    assert {*short_cuts} == {"bounded", "foreseen"}, "no reservation followed from the last one"


def test_holdings_are_unchanged_from_the_last_end_of_what_came() -> None:
    record = FutureRecord()
    begun = record.count
    assert record.unchanged_from(begun) == float("-inf")
    record.note(30.0)
    record.note(20.0)
    assert record.unchanged_from(begun) == 30.0
    assert record.unchanged_from(begun + 1) == 20.0
    twin = record.copy()
    twin.note_early()
    assert (twin.unchanged_from(begun + 1), twin.early) == (float("inf"), 1)
    assert (record.unchanged_from(begun + 1), record.early) == (20.0, 0)
    for _ in range(5000):
        record.note(1.0)
    assert record.unchanged_from(begun) == float("inf"), "what is not known any more may have been anything"
    assert record.unchanged_from(record.count - 1000) == 1.0


def test_what_is_held_beyond_a_time_is_known_by_its_nodes() -> None:
    record = FutureRecord()
    begun = record.count
    record.note(30.0, {("local", 1), ("local", 2)})
    record.note(-inf)
    record.note(inf, {("local", 3)})
    assert record.taken_beyond(20.0, begun) == {("local", 1), ("local", 2), ("local", 3)}
    assert record.taken_beyond(30.0, begun) == {("local", 3)}
    assert record.taken_beyond(20.0, record.count) == set()
    record.note_early()
    assert record.taken_beyond(30.0, begun) is None, "a release that came early may be anywhere"
    for _ in range(5000):
        record.note(1.0, set())
    assert record.taken_beyond(30.0, begun) is None, "what is not known any more may have been anywhere"


def test_a_long_gang_on_a_node_without_room_for_the_head_leaves_its_reservation_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searched: list[JobId] = []

    def counted(trial: Trial, request: GangRequest, now: float, *, not_before: float = -inf) -> Reservation | None:
        searched.append(request.job)
        return reserve(trial, request, now, not_before=not_before)

    monkeypatch.setattr(queue_head, "reserve", counted)
    life = Life(machines(), policy=find_policy("fifo"))
    occupy(life.cluster, "n0", 0, 1, 2, 3, ends_at=50.0)
    occupy(life.cluster, "n1", 0, 1, 2, 3, ends_at=100.0)
    occupy(life.cluster, "n2", 0, 1)
    life.submit(gang("large", role(2, 4), at=1.0), gang("first", at=2.0))
    life.cycle(10.0)
    assert [*life.running] == ["first"] and searched == ["large"]
    life.submit(gang("second", at=3.0))
    life.cycle(11.0)
    found = reservation(life)
    assert [*life.running] == ["first", "second"] and searched == ["large"], "no node for the head has changed"
    assert found is not None and (found.job, found.start) == ("large", 100.0)
    assert {need.wanted.at for need in found.needs} == {0, 1}
