"""The head's reservation is found from the last one where all came as expected, and is the one that a search finds."""

from __future__ import annotations

from math import inf

import pytest

from corral.kernel.draw import draw_integer
from corral.kernel.ids import JobId
from corral.model.requests import GangRequest
from corral.scheduler import Policy, find_policy
from corral.scheduler.backfill import Reservation, reserve, reserve_as_foreseen
from corral.scheduler.cluster.future_record import FutureRecord
from corral.scheduler.placement.trial import Trial
from corral.scheduler.planners.builtin import queue_head
from corral.scheduler.planners.builtin.planning import Memory
from tests.examples import at_least
from tests.scheduler import compared_lives
from tests.scheduler.compared_lives import machines
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, role

SECONDS = 60


class Forgetful(FutureRecord):
    """A record in which nothing came as expected."""

    def note(self, unchanged_from: float) -> None:
        self.early += 1
        super().note(unchanged_from)


def drawn(seed: int, second: int, at: int) -> GangRequest:
    """A gang of one to twenty devices, which mostly has a bounded duration."""
    tasks, devices = [(1, 1), (1, 4), (2, 8), (3, 4), (5, 4)][draw_integer(seed, second, at, 1) % 5]
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
    for seed in range(at_least(4, 8)):
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
