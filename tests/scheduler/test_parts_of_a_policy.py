"""The planner decides by the parts of a policy: the order's keys, the sizes allotted, and who may be preempted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan

import pytest
from msgspec import structs

from corral.kernel.ids import JobId, TaskKey
from corral.model.inventory import Node
from corral.model.plan import Rule
from corral.model.requests import GangRequest
from corral.scheduler import (
    BuiltinPlanner,
    Checkpointed,
    Cluster,
    ElasticGang,
    EndedRecalled,
    GangQueued,
    History,
    HistoryRecalled,
    JobOver,
    Policy,
    PreemptionView,
    PriorityOrder,
    Target,
    Victim,
    WorkReported,
)
from corral.scheduler.policy.allot import AsManyAsFit
from corral.scheduler.policy.faults import MOST_FAULTS, CheckedAllot, CheckedOrder, CheckedPreempt, PartFailed
from corral.scheduler.policy.future_fairness import FutureFairness
from corral.scheduler.policy.history import SETTLING_SECONDS
from corral.scheduler.policy.order import OrderKey
from corral.scheduler.policy.service_orders import LeastAttainedService
from corral.scheduler.policy.themis_sizes import ThemisSizes
from tests.scheduler.life import Life
from tests.scheduler.machines import cluster, gang, node, role


@dataclass(frozen=True)
class Turning:
    """Earlier submission first before `at`, later submission first from then on."""

    at: float = 100.0
    changes_with_time = True

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        return (gang.submitted_at if now < self.at else -gang.submitted_at,)


@dataclass(frozen=True)
class LeastServed:
    """Least device-seconds received first."""

    changes_with_time = False

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        return (history.of(gang.job, now).device_seconds, gang.submitted_at)


@dataclass(frozen=True)
class Sized:
    """The sizes, and models, given."""

    sizes: tuple[tuple[str, Target], ...]
    changes_with_time = False

    def targets(self, cluster: Cluster, gangs: Iterable[ElasticGang], now: float) -> Mapping[JobId, Target]:
        return {JobId(job): target for job, target in self.sizes}


@dataclass(frozen=True)
class Anyone:
    """Every running gang may go, the one that started last first."""

    changes_with_time = False

    def may_have(self, gang: GangRequest, ask: Sequence[int] | None, view: PreemptionView) -> bool:
        return True

    def candidates(self, gang: GangRequest, ask: Sequence[int], view: PreemptionView) -> Sequence[Victim]:
        running = sorted(view.cluster.gangs.by_job.values(), key=lambda each: -each.placed_at)
        return [victim for each in running if (victim := view.evictable(each, Rule.PRIORITY)) is not None]


class Given:
    """A part whose methods all do what a function says."""

    changes_with_time = False

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        return self._asked(gang)  # type: ignore[return-value]

    def targets(self, cluster: Cluster, gangs: Iterable[ElasticGang], now: float) -> Mapping[JobId, Target]:
        return self._asked([*gangs])  # type: ignore[return-value]

    def may_have(self, gang: GangRequest, ask: Sequence[int] | None, view: PreemptionView) -> bool:
        return True

    def candidates(self, gang: GangRequest, ask: Sequence[int], view: PreemptionView) -> Sequence[Victim]:
        return self._asked(view)  # type: ignore[return-value]

    def _asked(self, what: object) -> object:
        return self.answer(what) if callable(self.answer) else self.answer


def test_an_order_that_changes_with_time_is_asked_at_each_plan_and_in_between() -> None:
    life = Life([node("n1")], policy=Policy("turning", Turning(), review_seconds=20.0))
    life.submit(gang("runs", role(4)))
    life.cycle(0.0)
    for number in range(3):
        life.submit(gang(f"w{number}", role(4), at=float(number)))
    assert life.cycle(1.0).again_at == 21.0
    assert [life.queue.position(JobId(f"w{number}")) for number in range(3)] == [0, 1, 2]
    life.cycle(120.0)
    assert [life.queue.position(JobId(f"w{number}")) for number in range(3)] == [2, 1, 0]
    life.end("runs")
    assert [placed.job for placed in life.cycle(121.0).placements] == ["w2"]
    life.end("w2")
    assert [placed.job for placed in life.cycle(122.0).placements] == ["w1"]
    life.end("w1", "w0")
    assert life.cycle(123.0).again_at is None, "nothing waits"


def test_an_order_may_ask_what_a_job_has_received() -> None:
    life = Life([node("n1")], policy=Policy("least", LeastServed(), preemption=True))
    life.submit(gang("old", role(4)))
    life.cycle(0.0)
    life.submit(gang("new", role(4), at=1.0, priority=20))
    life.cycle(10.0)
    life.now = 30.0
    life.end("old")
    life.submit(gang("old", role(4)))
    assert life.queue.position(JobId("new")) == 0, "old was submitted first, but has received 120 device-seconds"
    life.cycle(30.0)
    assert set(life.running) == {"new"}


def test_a_gang_gets_no_more_tasks_than_its_target_and_gives_up_those_beyond_it() -> None:
    policy = Policy("sized", allot=Sized((("el", Target(2)),)))
    life = Life([node("n1")], policy=policy)
    life.submit(gang("el", role(4, minimum=1)))
    life.cycle(0.0)
    assert life.sizes() == {"el": 2}
    life.cycle(1.0)
    assert life.sizes() == {"el": 2} and life.why("el") == "allotted"
    life.planner.policy = replace(policy, allot=Sized((("el", Target(4)),)))
    life.cycle(2.0)
    assert life.sizes() == {"el": 4}
    life.planner.policy = replace(policy, allot=Sized((("el", Target(1)),)))
    life.cycle(3.0)
    (receipt,) = life.receipts
    assert (receipt.rule, receipt.by) == (Rule.SHRINK, None)
    assert receipt.tasks == tuple(TaskKey("worker", index) for index in (1, 2, 3))
    life.yielded()
    life.settle(4.0)
    assert life.sizes() == {"el": 1}


def test_room_that_a_target_frees_is_given_to_a_gang_that_waits() -> None:
    life = Life([node("n1")], policy=Policy("sized", preemption=True))
    life.submit(gang("el", role(4, minimum=1)))
    life.cycle(0.0)
    life.submit(gang("waits", role(2), at=1.0))
    life.planner.policy = Policy("sized", preemption=True, allot=Sized((("el", Target(2)),)))
    life.settle(1.0)
    assert life.sizes() == {"el": 2, "waits": 2}
    assert len(life.receipts) == 1, "nobody else had to yield"


def test_each_gang_of_a_shape_gets_devices_of_the_model_that_it_is_allotted() -> None:
    def of(name: str, model: str) -> Node:
        made = node(name)
        return structs.replace(made, devices=tuple(structs.replace(each, model=model) for each in made.devices))

    sizes = (("el0", Target(2, "old")), ("el1", Target(2, "new")), ("el2", Target(2, "old")))
    life = Life([of("n1", "new"), of("n2", "old")], policy=Policy("models", allot=Sized(sizes)))
    life.submit(*(gang(f"el{number}", role(2, minimum=1), at=float(number)) for number in range(3)))
    life.settle(0.0)
    nodes = {job: {hold.node for hold in life.cluster.holds(JobId(job)).values()} for job in life.running}
    assert nodes == {"el0": {"local/n2"}, "el1": {"local/n1"}, "el2": {"local/n2"}}


def test_the_preempt_part_says_who_may_go_and_the_planner_takes_the_fewest() -> None:
    life = Life([node("n1"), node("n2")], policy=Policy("anyone", preemption=True, preempt=Anyone()))
    for number, count in enumerate((4, 2, 2)):
        life.submit(gang(f"r{number}", role(count), priority=50))
        life.cycle(float(number))
    life.submit(gang("low", role(2), at=5.0, priority=0))
    life.cycle(5.0)
    assert life.rules() == [("r2", Rule.PRIORITY)], "whatever its priority"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda gang: 1 / 0, "raised ZeroDivisionError: division by zero"),
        ([1.0], r"gave the key \[1.0\] to job "),
        ((), "not a tuple of 1 to 8 numbers"),
        ((1.0,) * 9, "not a tuple of 1 to 8 numbers"),
        ((nan,), "not a tuple of 1 to 8 numbers"),
        (("a",), "not a tuple of 1 to 8 numbers"),
        (lambda gang: (0.0,) * (1 + (gang.job == "second")), "a key of [12] numbers to job"),
    ],
)
def test_a_plan_is_made_without_an_order_that_fails_and_says_so(answer: object, said: str) -> None:
    life = Life([node("n1")], policy=Policy("bad", CheckedOrder("bad", Given(answer), False)))
    life.submit(gang("second", role(2), at=1.0), gang("first", role(3), at=0.0))
    found = life.cycle(1.0)
    (fault,) = found.faults
    assert (fault.part, fault.name, fault.last) == ("order", "bad", False)
    assert re.search(said, fault.message), fault.message
    assert list(life.running) == ["first"] and life.why("second")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda gangs: [], "raised AttributeError"),
        ({JobId("nobody"): Target(1)}, "a target to 'nobody', not an elastic job"),
        ({JobId("el"): Target(5)}, "gave 5 tasks to job el, which can have 1 to 4"),
        ({JobId("el"): Target(0)}, "gave 0 tasks to job el"),
        ({JobId("el"): Target(2.0)}, "gave 2.0 tasks"),
        ({JobId("el"): Target(2, "m" * 64)}, "not the name of a model"),
    ],
)
def test_a_plan_is_made_without_sizes_that_cannot_be(answer: object, said: str) -> None:
    life = Life([node("n1")], policy=Policy("bad", allot=CheckedAllot("bad", Given(answer), False)))
    life.submit(gang("el", role(4, minimum=1)))
    (fault,) = life.cycle(0.0).faults
    assert fault.part == "allot" and said in fault.message
    assert life.sizes() == {"el": 4}


def _victim(view: PreemptionView, job: str, rule: Rule = Rule.PRIORITY, count: int = 99) -> Victim:
    running = view.cluster.gangs.by_job[JobId(job)]
    return Victim(running, rule, 0.0, tuple(sorted(running.charges))[:count])


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda view: [None], "is no Victim but NoneType"),
        (lambda view: [_victim(view, "kept")], "is not preemptible: job kept"),
        (lambda view: [_victim(view, "runs", Rule.GUARANTEE)], "goes by the rule"),
        (lambda view: [_victim(view, "runs", count=0)], "names no task, or one twice"),
        (lambda view: [_victim(view, "runs", count=1)], "is not all that is left of job runs"),
        (lambda view: [_victim(view, "runs"), _victim(view, "runs")], "is named before: job runs"),
        (lambda view: [_victim(view, "runs", Rule.SHRINK)], "is no spare task: job runs"),
        (lambda view: [replace(_victim(view, "runs"), cost=nan)], "costs nan"),
        (lambda view: 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_nobody_is_evicted_who_must_not_be(answer: object, said: str) -> None:
    bad = CheckedPreempt("bad", Given(answer), False)
    life = Life([node("n1")], policy=Policy("bad", preemption=True, preempt=bad))
    life.submit(gang("kept", role(2), preemptible=False), gang("runs", role(2)))
    life.cycle(0.0)
    life.submit(gang("urgent", role(2), priority=50))
    found = life.cycle(1.0)
    (fault,) = found.faults
    assert fault.part == "preempt" and said in fault.message
    assert life.rules() == [("runs", Rule.PRIORITY)], "by the default rules"
    assert found.reasons[JobId("urgent")].binding.code == "others-yield", "the plan given up reported nothing"


@pytest.mark.parametrize("part", ["order", "allot", "prepare"])
def test_a_built_in_part_that_fails_ends_no_plan(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> object:
        raise OverflowError("figures that nothing expected")

    of = {
        "order": (LeastAttainedService, "key"),
        "allot": (ThemisSizes, "targets"),
        "prepare": (FutureFairness, "prepare"),
    }
    order = FutureFairness() if part == "prepare" else LeastAttainedService()
    planner = BuiltinPlanner(cluster(node("n1")), policy=Policy("built-in", order, allot=ThemisSizes()))
    monkeypatch.setattr(*of[part], failing)
    planner.fold(GangQueued(gang("job", role(4, minimum=1))))
    found = planner.plan(0.0)
    (fault,) = found.faults
    assert (fault.part, fault.name) == ("allot" if part == "allot" else "order", of[part][0].__name__)
    assert fault.message == "raised OverflowError: figures that nothing expected"
    assert [(each.job, len(each.placement.tasks)) for each in found.placements] == [("job", 4)]


def test_a_default_part_that_fails_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life([node("n1")])
    life.submit(gang("job", role(1)))
    monkeypatch.setattr(AsManyAsFit, "targets", lambda *_: 1 / 0)
    with pytest.raises(PartFailed, match="AsManyAsFit"):
        life.planner.plan(0.0)


def test_a_part_that_fails_too_often_is_switched_off_until_another_policy_is_configured() -> None:
    def failing(what: object) -> object:
        raise RuntimeError("it never works")

    bad = Policy("bad", CheckedOrder("bad", Given(failing), False))
    life = Life([node("n1")], policy=bad)
    for number in range(MOST_FAULTS + 2):
        life.submit(gang(f"w{number}", role(1), at=float(number)))
        last = [fault.last for fault in life.cycle(float(number)).faults]
        assert last == ([number == MOST_FAULTS - 1] if number < MOST_FAULTS else [])
    assert life.policy.order == PriorityOrder() and len(life.running) == 4
    twin = life.planner.fork()
    assert twin.policy.order == PriorityOrder() and twin.digest() == life.planner.digest()
    life.planner.policy = bad
    assert life.policy.order == PriorityOrder(), "the same policy again changes nothing"
    life.planner.policy = replace(bad, name="other")
    assert life.policy.order == bad.order


def test_a_plan_in_which_a_part_fails_changes_nothing_before_it_is_carried_out() -> None:
    life = Life([node("n1")], policy=Policy("bad", CheckedOrder("bad", Given((nan,)), False)))
    life.submit(gang("job", role(1)))
    before = life.planner.digest()
    assert life.planner.plan(0.0).faults == life.planner.plan(0.0).faults
    assert life.planner.digest() == before


def test_history_counts_what_a_job_received_in_all_its_runs() -> None:
    life = Life([node("n1")])
    job = JobId("el")
    life.submit(gang("el", role(4, minimum=2)))
    life.cycle(10.0)
    history = life.cluster.history
    assert history.of(job, 15.0)[:3] == (5.0, 20.0, 1)
    life.now = 20.0
    life.give_way(job, (TaskKey("worker", 2), TaskKey("worker", 3)))
    assert history.of(job, 25.0)[:3] == (15.0, 50.0, 1)
    fork = life.cluster.fork()
    life.now = 30.0
    life.end("el")
    assert history.of(job, 100.0)[:3] == (20.0, 60.0, 1) and fork.history.of(job, 100.0)[:2] == (90.0, 200.0)
    life.submit(gang("el", role(4, minimum=2)))
    life.cycle(40.0)
    assert history.of(job, 41.0)[:3] == (21.0, 64.0, 2)
    life.planner.fold(JobOver(job))
    assert history.of(job, 50.0)[:3] == (0.0, 0.0, 0)


def test_history_is_the_same_after_it_was_stored_and_recalled() -> None:
    lives = [Life([node("n1")]) for _ in range(2)]
    job = JobId("el")
    for life in lives:
        life.submit(gang("el", role(4, minimum=2)))
        life.cycle(10.0)
    first, second = lives
    first.now = 20.0
    first.give_way(job, (TaskKey("worker", 3),))
    served = first.cluster.history.served(job)
    assert served is not None
    second.now = 0.0
    second.give_way(job, (TaskKey("worker", 3),))
    second.planner.fold(HistoryRecalled(job, served))
    assert second.cluster.history.of(job, 31.0) == first.cluster.history.of(job, 31.0)


def test_a_job_that_waits_again_keeps_when_it_last_held_something() -> None:
    history, again, job = History(), History(), JobId("job")
    history.holds(job, 1000, 10.0)
    history.released(job, 0, 40.0, wholly=True)
    served = history.served(job)
    assert served is not None and served.until == 40.0
    again.recall(job, served)
    assert again.served(job) == served


def test_what_ended_jobs_attained_is_the_same_after_it_was_recalled() -> None:
    first, second = (Life([node("n1")]) for _ in range(2))
    for number, at in enumerate((0.0, 10.0, 25.0)):
        name = f"j{number}"
        first.submit(gang(name, role(1)))
        first.cycle(at)
        first.now = at + 5.0 + number
        first.end(JobId(name))
        first.planner.fold(JobOver(JobId(name)))
    known = first.cluster.history.ended
    assert known.count == 3
    second.planner.fold(EndedRecalled((5.0, 6.0, 7.0)))
    assert second.cluster.history.ended == known


def test_history_has_what_jobs_report_by_size_and_placement() -> None:
    life = Life([node("n1"), node("n2")])
    job = JobId("wide")
    life.planner.fold(WorkReported(job, 0.0, 0.5))
    life.submit(gang("wide", role(3, 2)))
    life.cycle(0.0)
    assert life.cluster.history.of(job, 1.0).progress is None, "it was not running when it reported"
    life.planner.fold(WorkReported(job, SETTLING_SECONDS, 0.25, 12.0))
    life.planner.fold(WorkReported(job, SETTLING_SECONDS, 0.5))
    life.planner.fold(Checkpointed(job, 0, 1.0))
    found = life.cluster.history.of(job, 1.0)
    assert (found.progress, dict(found.throughput)) == (0.5, {(6, 2): 12.0})
