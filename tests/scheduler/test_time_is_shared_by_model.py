"""Gavel's parts give each job its fraction of time on each model of device, round after round."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from corral.kernel.errors import InvalidInput
from corral.kernel.ids import JobId
from corral.model.inventory import Node
from corral.model.plan import Rule
from corral.model.requests import DeviceRequest, GangRequest
from corral.scheduler import Policy, WorkReported, find_allot, find_policy
from corral.scheduler.policy.allot import Target
from corral.scheduler.policy.faults import CheckedAllot, PartFailed
from corral.scheduler.policy.gavel.choice import Choice, Running, choose
from corral.scheduler.policy.gavel.demand import Demand, demands, relative_speeds
from corral.scheduler.policy.gavel.part import TimeShares
from corral.scheduler.policy.history import History
from corral.scheduler.policy.size_targets import _every
from tests.examples import at_least, examples
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role

ROUND = 360.0
GAVEL = find_policy("gavel")
FAST, SLOW = "V100", "K80"


def of_model(name: str, model: str, devices: int = 1) -> Node:
    made = node(name, devices)
    return structs.replace(made, devices=tuple(structs.replace(each, model=model) for each in made.devices))


def job(name: str, fast: float = 1.0, slow: float = 1.0, at: float = 0.0, **fields: object) -> GangRequest:
    return gang(name, role(1), at=at, speeds=((SLOW, slow), (FAST, fast)), **fields)


def one_of_each(policy: Policy = GAVEL) -> Life:
    return Life([of_model("v", FAST), of_model("k", SLOW)], policy=policy)


def seconds(life: Life, name: str) -> dict[str, float]:
    return dict(life.cluster.history.of(JobId(name), life.now).model_seconds)


def test_fractions_of_time_converge_to_those_of_the_program() -> None:
    # As in test_gavels_programs_are_solved: both jobs get half of the time on each model.
    life = one_of_each()
    life.submit(job("a", 3.0, 1.0), job("b", 2.0, 1.0))
    rounds = 60
    for at in range(rounds):
        life.settle(at * ROUND)
    life.now = rounds * ROUND
    for name in ("a", "b"):
        held = seconds(life, name)
        assert held[FAST] / life.now == pytest.approx(0.5, abs=0.05)
        assert held[SLOW] / life.now == pytest.approx(0.5, abs=0.05)


def test_each_job_keeps_the_model_that_is_worth_most_to_it() -> None:
    life = one_of_each()
    life.submit(job("same", 1.0, 1.0), job("gains", 2.0, 1.0, at=1.0))
    for at in range(10):
        life.settle(at * ROUND)
    assert (life.cluster.model_of(JobId("same")), life.cluster.model_of(JobId("gains"))) == (SLOW, FAST)
    assert not life.receipts, "nobody has to move"


@pytest.mark.parametrize("name", ["gavel", "gavel-makespan", "gavel-finish-time", "gavel-cost"])
def test_what_is_prepared_gives_the_same_targets_as_time_passes(name: str) -> None:
    life, part = one_of_each(find_policy(name)), find_allot(name)
    assert isinstance(part, TimeShares)
    speeds = ((3.0, 1.0), (2.0, 1.0), (1.0, 1.0), (1.0, 4.0))
    life.submit(*(job(f"job-{at}", *each, at=float(at)) for at, each in enumerate(speeds)))
    life.settle(10.0)
    gangs = list(_every(life.cluster, life.queue))
    prepared, found = part.prepare(life.cluster, gangs), list[object]()
    for now in range(10, at_least(600, 3000), 30):
        targets = part.targets_of(prepared, life.cluster, float(now))
        assert targets == part.targets(life.cluster, gangs, float(now))
        found.append(targets)
    assert any(one is other for one, other in pairwise(found)), "unchanged targets are the same object"
    assert any(one != other for one, other in pairwise(found)), "the rounds end"


def test_a_job_moves_to_a_better_model_when_that_is_free_and_its_round_is_over() -> None:
    life = one_of_each()
    life.submit(job("first", 2.0, 1.0), job("second", 2.0, 1.0, at=1.0))
    life.settle(1.0)
    on_slow = next(name for name in ("first", "second") if life.cluster.model_of(JobId(name)) == SLOW)
    life.end("second" if on_slow == "first" else "first")
    life.settle(ROUND / 2)
    assert life.cluster.model_of(JobId(on_slow)) == SLOW, "a round is not over"
    life.settle(1.0 + ROUND)
    assert life.cluster.model_of(JobId(on_slow)) == FAST
    assert [(each.job, each.rule) for each in life.receipts] == [(on_slow, Rule.ORDER)]
    assert life.receipts[0].message == f"The policy gavel moves it to devices of the model {FAST}."


def test_jobs_take_turns_and_are_told_so() -> None:
    life = Life([of_model("v", FAST)], policy=GAVEL)
    life.submit(job("a"), job("b", at=1.0))
    life.settle(1.0)
    assert (list(life.running), life.why("b")) == (["a"], "allotted")
    life.settle(1.0 + ROUND)
    assert list(life.running) == ["b"]
    assert life.receipts[0].message == "The policy gavel gives its devices to other jobs for a time."


def test_a_job_that_must_not_be_preempted_keeps_its_devices() -> None:
    life = Life([of_model("v", FAST)], policy=GAVEL)
    life.submit(job("a", preemptible=False), job("b", at=1.0))
    for at in range(5):
        life.settle(at * ROUND)
    assert list(life.running) == ["a"] and not life.receipts


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 3)), min_size=1, max_size=12), st.integers(1, 6))
def test_on_equal_devices_the_least_attained_service_runs(jobs: list[tuple[int, int]], devices: int) -> None:
    found = [
        Demand(JobId(f"j{at:02}"), 1, 1, (1.0,), 1.0, at, 0.0, (float(received),), 0.0, 1.0)
        for at, (received, _) in enumerate(jobs)
    ]
    share = min(1.0, devices / len(found))
    chosen = choose(found, [[share]] * len(found), [devices], ROUND)
    by_service = sorted(found, key=lambda each: (each.received, each.job))
    assert set(chosen) == {each.job for each in by_service[:devices]}


def test_on_equal_devices_jobs_receive_equal_device_time() -> None:
    life = Life([of_model("v", FAST, 4)], policy=GAVEL)
    life.submit(*(gang(f"j{size}{copy}", role(size)) for size in (1, 2, 4) for copy in "ab"))
    for at in range(90):
        life.settle(at * ROUND)
    received = [life.cluster.history.device_seconds(JobId(name), 90 * ROUND) for name in life.requests]
    assert max(received) < 1.25 * min(received)


def test_a_job_without_a_profile_is_as_fast_everywhere() -> None:
    assert relative_speeds((), "", ((SLOW, 4), (FAST, 4)), 1) == (1.0, 1.0)
    assert relative_speeds(((SLOW, 2.0),), "", ((SLOW, 4), (FAST, 4)), 1) == (1.0, 1.0), "what is unknown is tried"
    assert relative_speeds((), FAST, ((SLOW, 4), (FAST, 4)), 1) == (0.0, 1.0), "it asks for one model"
    assert relative_speeds((), "", ((SLOW, 4), (FAST, 4)), 8) == (0.0, 0.0), "there are too few devices"


def test_speeds_are_learnt_from_reports() -> None:
    life = one_of_each()
    life.submit(gang("a", role(1)))
    life.settle(0.0)
    first = life.cluster.model_of(JobId("a"))
    life.planner.fold(WorkReported(JobId("a"), 100.0, throughput=10.0 if first == FAST else 2.0))
    for at in (ROUND, 2 * ROUND):
        life.settle(at)
    second = life.cluster.model_of(JobId("a"))
    life.planner.fold(WorkReported(JobId("a"), 2 * ROUND + 100, throughput=10.0 if second == FAST else 2.0))
    known = life.cluster.history.of(JobId("a"), life.now)
    assert known.model_speeds[first] == (10.0 if first == FAST else 2.0)
    twin = History()
    stored = life.cluster.history.served(JobId("a"))
    assert stored is not None and twin.recall(JobId("a"), stored)
    assert twin.of(JobId("a"), 0.0).model_speeds == known.model_speeds


def test_no_task_is_placed_on_a_model_where_the_job_cannot_run() -> None:
    life = one_of_each(find_policy("fifo"))
    never = gang("a", role(1, ask=DeviceRequest(1, without=(SLOW,))))
    life.submit(never, structs.replace(never, job=JobId("b"), submitted_at=1.0))
    life.settle(1.0)
    assert list(life.running) == ["a"] and life.cluster.model_of(JobId("a")) == FAST


def test_work_that_is_left_is_estimated_by_progress_or_by_the_slowest_model() -> None:
    life = one_of_each()
    life.submit(job("a", 1.0, 0.5, max_duration_seconds=1000), job("b", 1.0, 0.5, at=1.0))
    life.settle(1.0)
    life.planner.fold(WorkReported(JobId("b"), 50.0, 0.25))
    life.now = 101.0
    found = {
        each.job: each
        for each in demands(life.cluster, _every(life.cluster, life.queue), {SLOW: 1, FAST: 1}, 0.0, 101.0)
    }
    a, b = found[JobId("a")], found[JobId("b")]
    assert a.done + a.left == pytest.approx(500.0), "1000 s on the slowest model, which has half the speed"
    assert b.left == pytest.approx(3 * b.done)
    assert Counter([a.speeds, b.speeds]) == {(0.5, 1.0): 2}


class Pausing:
    changes_with_time = False

    def targets(self, cluster, gangs, now):  # type: ignore[no-untyped-def]
        return {each.request.job: Target(0) for each in gangs}


def test_only_a_part_for_every_gang_may_say_that_one_does_not_run() -> None:
    life = Life([of_model("v", FAST)], policy=GAVEL)
    life.submit(job("a"))
    life.settle(0.0)
    gangs = [*_every(life.cluster, life.queue)]
    assert CheckedAllot("mine", Pausing(), False, every_gang=True).targets(life.cluster, gangs, 0.0)
    with pytest.raises(PartFailed):
        CheckedAllot("mine", Pausing(), False).targets(life.cluster, gangs, 0.0)


def test_without_scipy_the_policies_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.scheduler.policy.registry.find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match="needs scipy"):
        find_policy("gavel")
    assert isinstance(TimeShares(), TimeShares) and find_allot("goodput")


SECONDS = st.integers(0, 40).map(lambda number: number * 97.0)


@st.composite
def choices(draw: st.DrawFn) -> Choice:
    """A choice among some jobs on two models, of which some run and receive time."""
    jobs = draw(st.integers(1, 9))
    found, fractions, running = list[Demand](), list[tuple[float, float]](), list[Running]()
    for number in range(jobs):
        speeds = draw(st.sampled_from([(1.0, 0.5), (0.5, 1.0), (1.0, 1.0), (1.0, 0.0)]))
        received = (draw(SECONDS), draw(SECONDS))
        devices, on = draw(st.sampled_from([1, 1, 2])), draw(st.sampled_from([-1, 0, 1]))
        found.append(Demand(JobId(f"j{number}"), 1, devices, speeds, 1.0, 0.0, 0.0, received, 0.0, 1.0, on))
        fractions.append(draw(st.sampled_from([(0.0, 0.0), (0.25, 0.5), (0.5, 0.5), (1.0, 0.0), (0.1, 0.0)])))
        if on >= 0:
            leased_until = draw(st.sampled_from([-1.0, 300.0, 900.0]))
            running.append(Running(number, draw(st.sampled_from([on, on, on, 1 - on, -1])), 0.0, leased_until))
    room = draw(st.lists(st.integers(0, 5), min_size=2, max_size=2))
    return Choice(found, fractions, room, ROUND, running)


@settings(max_examples=examples(400))
@given(choices(), SECONDS, st.lists(st.floats(0.0, 1.0, exclude_max=True), min_size=1, max_size=5))
def test_a_choice_holds_as_long_as_it_says(made: Choice, now: float, parts: list[float]) -> None:
    chosen = dict(made.at(now))
    until = min(made.until, now + 100_000.0)
    assert until >= now
    for moment in (now + part * (until - now) for part in parts):
        if moment < until:  # a part just below 1 may be rounded to the end
            assert made.at(moment) == chosen


def test_a_choice_says_when_a_waiting_job_comes_first() -> None:
    # a: 0.5 / (t + 180) is below b's 0.5 / (600 + 180) from t = 600 on.
    waits, runs = (
        Demand(JobId(name), 1, 1, (1.0,), 1.0, 0.0, 0.0, (had,), 0.0, 1.0) for name, had in (("b", 600.0), ("a", 0.0))
    )
    made = Choice([waits, runs._replace(on=0)], [(0.5,), (0.5,)], [1], ROUND, [Running(1, 0, 0.0, -1.0)])
    assert made.at(0.0) == {"a": 0}
    assert 590.0 < made.until < 600.0
    assert made.at(601.0) == {"b": 0}


def test_no_plan_is_made_while_the_choice_holds() -> None:
    life = one_of_each()
    life.submit(job("a", slow=0.5), job("b", slow=0.5))
    life.settle(0.0)
    again = life.plan().again_at
    assert again is not None and again >= 300.0, "both keep their devices for a round"
