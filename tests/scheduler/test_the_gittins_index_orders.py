"""The order `gittins`: the index by hand and by brute force, its special cases SRSF and LAS, and how it preempts."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import inf, isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.kernel.ids import JobId
from corral.model.plan import Rule
from corral.scheduler import History, JobOver, find_policy, find_preempt
from corral.scheduler.policy.gittins import GittinsIndex
from corral.scheduler.policy.grades import HIGHEST, grade, least
from corral.scheduler.policy.service_distribution import ServiceDistribution
from corral.scheduler.policy.service_orders import ShortestRemainingService
from tests.examples import examples
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role

SRSF = ShortestRemainingService()


def distribution(*attained: float) -> ServiceDistribution:
    """What these jobs had attained when they were over."""
    found = ServiceDistribution()
    for each in attained:
        found = found.with_jobs([each])
    return found


def history(ended: ServiceDistribution, **attained: float) -> History:
    """Jobs that received so many device-seconds on one device, and hold nothing now."""
    found = History()
    found.ended = ended
    for job, seconds in attained.items():
        found.holds(JobId(job), 1000, 0.0)
        found.released(JobId(job), 0, seconds, wholly=True)
    return found


def test_the_index_of_eight_short_and_two_long_jobs_by_hand() -> None:
    """Eight jobs ended after 4 device-seconds, two after 100.

    Of a new job, a quantum of 4 ends 8 in 10 and costs 4: 4 / 0.8 = 5 per end. A quantum of 100 ends all and costs
    0.8 x 4 + 0.2 x 100 = 23.2. After 5 only the long ones are left, 95 before their end. After 96 they need 4.
    """
    ended = distribution(*[4.0] * 8, *[100.0] * 2)
    assert [ended.service_per_end(attained) for attained in (0.0, 5.0, 96.0, 111.9)] == [5.0, 95.0, 4.0, 4.0]
    assert ended.service_per_end(112.0) == inf, "no job got that far"
    known = history(ended, nearly=96.0, middle=10.0, beyond=500.0)
    gangs = [gang(name, at=float(at)) for at, name in enumerate(("beyond", "middle", "new", "nearly"))]
    order = GittinsIndex(least_ended=10.0)
    assert [each.job for each in sorted(gangs, key=lambda each: order.key(each, known, 1000.0))] == [
        "nearly", "new", "middle", "beyond",
    ]  # fmt: skip


AMOUNTS = st.floats(0.0, 1e7, allow_nan=False)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(AMOUNTS, min_size=1, max_size=30), AMOUNTS)
def test_the_index_is_the_best_ratio_over_all_quanta(attained: list[float], begin: float) -> None:
    by_grade: dict[int, list[float]] = {}
    for each in attained:
        by_grade.setdefault(grade(each), []).append(each)
    ends = [sum(each) / len(each) for own, each in by_grade.items() for _ in each if own >= grade(begin)]
    begin_of = least(grade(begin))
    ratios = [
        sum(end <= quantum for end in ends) / sum(min(end, quantum) - begin_of for end in ends)
        for quantum in ends
        if quantum - begin_of > 1e-6
    ]
    found = distribution(*attained).service_per_end(begin)
    if any(end - begin_of <= 1e-6 for end in ends):
        assert found <= 1e-3 * len(ends)
    else:
        assert isclose(found, 1 / max(ratios), rel_tol=1e-6) if ratios else found == inf


@settings(max_examples=examples(100), deadline=None)
@given(st.floats(2.0, 1e6), st.lists(st.floats(0.0, 0.999), min_size=2, max_size=8))
def test_jobs_of_one_known_service_go_as_by_shortest_remaining_service(service: float, parts: list[float]) -> None:
    """A distribution without variance knows what is left."""
    attained = {f"job-{number}": least(grade(service * part)) for number, part in enumerate(parts)}
    known = history(distribution(*[service] * 40), **attained)
    gangs = [gang(name, role(1, 1), max_duration_seconds=round(service) + 1) for name in attained]
    keys = [
        (GittinsIndex().key(each, known, 0.0)[0], ShortestRemainingService().key(each, known, 0.0)[0]) for each in gangs
    ]
    by_index = [pair[1] for pair in sorted(keys)]
    assert by_index == sorted(by_index)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.floats(0.05, 0.95), min_size=2, max_size=30), st.integers(1, 80))
def test_jobs_go_as_by_least_attained_service_where_an_end_becomes_less_likely(
    chances: list[float], first: int
) -> None:
    """Of the jobs that reach a grade ever fewer end in it: the hazard decreases, and 2D-Gittins is 2D-LAS."""
    left, parts = 1000.0, []
    for number, chance in enumerate(sorted(chances, reverse=True)):
        own = first + number
        middle = (least(own) + least(own + 1)) / 2
        parts.append((own, left * chance, left * chance * middle))
        left *= 1 - chance
    far = first + len(parts) + 40
    ended = ServiceDistribution((*parts, (far, left, left * least(far))))
    indexes = [ended.service_per_end(least(own)) for own, _, _ in parts]
    assert all(one <= next_one * (1 + 1e-9) for one, next_one in pairwise(indexes))


@given(st.floats(0.0, 1e18))
def test_an_amount_is_in_its_grade(amount: float) -> None:
    own = grade(amount)
    assert 0 <= own <= HIGHEST and least(own) <= amount
    assert own == HIGHEST or amount < least(own + 1)
    assert [least(each) for each in range(10)] == [0.0, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0]


def test_the_distribution_is_bounded_and_forgets() -> None:
    ended = distribution(*[1.0] * 1999)
    assert ended.parts == ((1, 1999.0, 1999.0),)
    ended = ended.with_jobs([100.0])
    assert (ended.count, ended.parts) == (1000.0, ((1, 999.5, 999.5), (27, 0.5, 50.0)))
    for number in range(3000):
        ended = ended.with_jobs([1.5**number if number < 150 else 7.0])
    assert len(ended.parts) <= HIGHEST + 1 and 1000.0 <= ended.count < 2000.0


def test_jobs_that_are_over_make_the_distribution_of_their_cluster() -> None:
    life = Life([node("n1")])
    life.submit(gang("first", role(4)), gang("never", role(3), at=1.0))
    life.cycle(0.0)
    before = life.planner.digest()
    copy = life.cluster.fork()
    life.now = 10.0
    life.end("first")
    for job in ("first", "never"):
        life.planner.fold(JobOver(JobId(job)))
    assert life.cluster.history.ended.parts == ((grade(40.0), 1.0, 40.0),), "never did not run"
    assert life.cluster.history.copy().ended == life.cluster.history.ended
    assert copy.history.ended == ServiceDistribution() and life.planner.digest() != before


@pytest.mark.parametrize(("ended", "first"), [(29, "old"), (30, "new")])
def test_the_order_is_that_of_las_until_enough_jobs_are_over(ended: int, first: str) -> None:
    known = history(distribution(*[100.0] * ended), old=300.0)
    gangs = [gang("old", at=0.0), gang("new", at=1.0)]
    assert min(gangs, key=lambda each: GittinsIndex().key(each, known, 1000.0)).job == first


def test_a_running_job_yields_when_its_index_falls_and_not_when_it_is_near_its_end() -> None:
    policy = replace(find_policy("gittins"), preempt=find_preempt("order"), review_seconds=1e6)
    life = Life([node("n1")], policy=policy)
    life.cluster.history.ended = distribution(*[400.0] * 36, *[4000.0] * 4)
    life.submit(gang("long", role(4)))
    life.cycle(0.0)
    life.submit(gang("new", role(4), at=1.0))
    assert life.cycle(70.0).again_at == 112.001, "at 448 device-seconds most jobs are over"
    assert not life.receipts
    life.settle(112.001)
    assert life.rules() == [("long", Rule.ORDER)] and set(life.running) == {"new"}
    life.now = 150.0
    life.end("new")
    life.settle(150.0)
    life.submit(gang("newer", role(4), at=940.0))
    life.settle(940.0)
    assert set(life.running) == {"long"}, "3,608 device-seconds: 392 more end it, a new job costs 444 per end"
    assert len(life.receipts) == 1
