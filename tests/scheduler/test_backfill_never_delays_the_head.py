"""Backfill starts later gangs early only where the first waiting gang loses nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.kernel.ids import JobId
from corral.model.requests import GangRequest
from corral.scheduler import BuiltinPlanner, Cluster, Policy, TasksReleased, execute_plan
from corral.scheduler.backfill import reserve
from corral.scheduler.placement.trial import Trial
from corral.scheduler.planners.builtin.planning import explain, plan
from tests.examples import examples
from tests.scheduler.machines import cluster, gang, node, occupy, queue, role

STRICT = Policy("strict", backfill=False)


@dataclass
class Run:
    """Runs a cluster whose gangs run exactly to their bounds; those without a bound never end."""

    target: Cluster
    policy: Policy
    starts: dict[str, float] = field(default_factory=dict)

    def play(self, requests: list[GangRequest], until: float = 1000.0) -> dict[str, float]:
        waiting = queue(*requests)
        now = 0.0
        while now < until:
            found = plan(self.target, waiting, self.policy, now)
            execute_plan(BuiltinPlanner(self.target, waiting), found, now)
            self.starts |= {placed.job: now for placed in found.placements}
            assert self.target.consistent()
            now = self.end_next()
        return self.starts

    def end_next(self) -> float:
        if not self.target.ends:
            return float("inf")
        now = self.target.ends[0][0]
        for _, job in [entry for entry in self.target.ends if entry[0] == now]:
            self.target.apply(TasksReleased(job, tuple(self.target.holds(job))))
        return now


@st.composite
def busy(draw: st.DrawFn) -> list[tuple[str, int, float]]:
    """The devices held at the start, and until when."""
    out = []
    for name in ("n1", "n2", "n3"):
        for device in range(4):
            end = draw(st.sampled_from([0.0, 5.0, 10.0, 30.0, float("inf")]))
            if end:
                out.append((name, device, end))
    return out


def made(held: list[tuple[str, int, float]]) -> Cluster:
    target = cluster(node("n1", cpu_millis=4000), node("n2", cpu_millis=4000), node("n3", rack="r2", cpu_millis=4000))
    for name, device, end in held:
        occupy(target, name, device, ends_at=end)
    return target


asks = st.tuples(
    st.integers(1, 4),
    st.integers(0, 3),
    st.sampled_from(["", "rack", "node", "pcie-switch"]),
    st.sampled_from([0, 3, 7, 20]),
    st.sampled_from([0, 1000, 2000]),
)


@settings(max_examples=examples(300), deadline=None)
@given(busy(), st.lists(asks, min_size=2, max_size=7))
def test_the_head_starts_no_later_than_if_nothing_passed_it(
    held: list[tuple[str, int, float]], wanted: list[tuple[int, int, str, int, int]]
) -> None:
    requests = [
        gang(
            f"job{at}",
            role(count, devices, cpu_millis=cpu),
            at=float(at),
            required=level if devices else "",
            max_duration_seconds=duration,
        )
        for at, (count, devices, level, duration, cpu) in enumerate(wanted)
    ]
    first_cycle = {p.job for p in plan(made(held), queue(*requests), STRICT, 0.0).placements}
    head = next((request.job for request in requests if request.job not in first_cycle), None)
    if head is None:
        return
    strict = Run(made(held), STRICT).play(requests)
    filled = Run(made(held), Policy()).play(requests)
    assert filled.get(head, float("inf")) <= strict.get(head, float("inf"))


@settings(max_examples=examples(100), deadline=None)
@given(busy(), st.lists(asks, min_size=1, max_size=8))
def test_what_passes_takes_nothing_that_an_endless_wait_needs(
    held: list[tuple[str, int, float]], wanted: list[tuple[int, int, str, int, int]]
) -> None:
    """Without time bounds, the head starts as soon as the first gangs have ended, whatever was backfilled."""
    endless = [(name, device, float("inf")) for name, device, _ in held]
    target = made(endless)
    head = gang("head", role(2, 4), at=0.0, required="rack", priority=100)
    others = [
        gang(f"job{at}", role(count, devices), at=at + 1.0, required=level if devices else "")
        for at, (count, devices, level, _, _) in enumerate(wanted)
    ]
    waiting = queue(head, *others)
    started: set[JobId] = set()
    for name, device, _ in [("", -1, 0.0), *endless]:
        if name:
            job = JobId(f"other-{name}-{device}")
            target.apply(TasksReleased(job, tuple(target.holds(job))))
        found = plan(target, waiting, Policy(), 0.0)
        execute_plan(BuiltinPlanner(target, waiting), found, 0.0)
        started |= {placed.job for placed in found.placements}
    assert "head" in started


def test_a_gang_that_ends_before_the_head_starts_may_use_its_place() -> None:
    target = cluster(node("n1"))
    occupy(target, "n1", 0, ends_at=100.0)
    waiting = queue(
        gang("head", role(4), at=0.0),
        gang("short", role(3), at=1.0, max_duration_seconds=100),
    )
    assert [placed.job for placed in plan(target, waiting, Policy(), 0.0).placements] == ["short"]


def test_a_gang_that_ends_after_the_head_starts_waits_and_is_told_behind_whom() -> None:
    target = cluster(node("n1"))
    occupy(target, "n1", 0, ends_at=100.0)
    waiting = queue(
        gang("head", role(4), at=0.0),
        gang("long", role(3), at=1.0, max_duration_seconds=101),
        gang("endless", role(3), at=2.0),
    )
    found = plan(target, waiting, Policy(), 0.0)
    assert not found.placements
    for job in ("long", "endless"):
        assert found.reasons[job].binding.code == "behind-head"
        assert "Behind job head" in found.reasons[job].binding.message
        assert explain(target, waiting, Policy(), JobId(job), 0.0) == found.reasons[job]


def test_a_gang_beside_the_reserved_rack_passes() -> None:
    target = cluster(node("n1", rack="r1"), node("n2", rack="r2"))
    occupy(target, "n1", 0)
    occupy(target, "n2", 0, 1)
    waiting = queue(gang("head", role(4), at=0.0, required="rack"), gang("small", role(2), at=1.0))
    (placed,) = plan(target, waiting, Policy(), 0.0).placements
    assert placed.job == "small"
    assert {task.node for task in placed.placement.tasks} == {"local/n2"}


def test_what_can_never_run_holds_nobody_up() -> None:
    waiting = queue(gang("huge", role(99), at=0.0), gang("small", role(4), at=1.0))
    found = plan(cluster(node("n1")), waiting, Policy(), 0.0)
    assert [placed.job for placed in found.placements] == ["small"]
    assert not found.reasons["huge"].possible


def test_growth_that_a_gang_can_do_without_holds_nobody_up() -> None:
    target = cluster(node("n1"))
    occupy(target, "n1", 0, 1, job="grower")
    grow = gang("grower", role(2, 4, minimum=0), at=0.0, beside=("local/n1",))
    found = plan(target, queue(grow, gang("small", role(2), at=1.0)), Policy(), 0.0)
    assert [placed.job for placed in found.placements] == ["small"]


def test_priority_comes_before_age_and_age_before_the_job_id() -> None:
    waiting = queue(
        gang("c", at=1.0),
        gang("b", at=1.0),
        gang("late", at=9.0, priority=99),
        gang("a", at=2.0),
    )
    placed = plan(cluster(node("n1", 3)), waiting, Policy(), 0.0).placements
    assert [each.job for each in placed] == ["late", "b", "c"]
    assert waiting.position(JobId("a")) == 3
    assert waiting.position(JobId("nobody")) is None


@pytest.mark.parametrize("tasks", range(1, 21))
def test_the_head_starts_at_the_first_end_after_which_it_has_room(tasks: int) -> None:
    target = cluster(*(node(f"n{number}") for number in range(20)))
    for number in range(20):
        occupy(target, f"n{number}", 0, 1, 2, 3, ends_at=100.0 + 10 * (number // 2))
    found = reserve(Trial(target), gang("head", role(tasks, 4)), 50.0)
    assert found is not None and found.start == 100.0 + 10 * ((tasks - 1) // 2)
    returned = {need.wanted.at: need.returned.devices for need in found.needs}
    assert len(returned) == tasks and set(returned.values()) == {0b1111}
