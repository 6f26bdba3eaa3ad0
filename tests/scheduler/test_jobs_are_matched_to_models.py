"""AlloX gives each job the model and the turn at which the mean completion time of all jobs is least."""

from __future__ import annotations

from itertools import permutations, product
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from corral.kernel.errors import InvalidInput
from corral.kernel.ids import JobId
from corral.model.inventory import Node
from corral.model.queues import QueueSpec
from corral.model.requests import DeviceRequest, GangRequest
from corral.scheduler import NodesSeen, WorkReported, find_allot, find_policy
from corral.scheduler.policy.baselines.allox import chosen
from corral.scheduler.policy.gavel.demand import Demand
from tests.examples import examples
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, inventory, node, role

pytest.importorskip("scipy")
from corral.scheduler.policy.baselines.matching import least_total

FAST, SLOW = "V100", "K80"


def of_model(name: str, model: str, devices: int = 1) -> Node:
    made = node(name, devices)
    return structs.replace(made, devices=tuple(structs.replace(each, model=model) for each in made.devices))


def job(name: str, seconds: int, slow: float, *, at: float = 0.0, devices: int = 1, **fields: object) -> GangRequest:
    """A job of so many seconds on the fast model; what it declares is for the slow one."""
    declared = int(seconds / slow)
    speeds = ((SLOW, slow), (FAST, 1.0))
    return gang(name, role(devices), at=at, speeds=speeds, max_duration_seconds=declared, **fields)


def models(life: Life) -> dict[str, str]:
    return {name: life.cluster.model_of(JobId(name)) for name in sorted(life.running)}


def test_the_job_that_loses_least_takes_the_slow_model() -> None:
    life = Life([of_model("v", FAST), of_model("k", SLOW)], policy=find_policy("allox"))
    life.submit(job("scales", 100, 0.1), job("same", 100, 0.9, at=1.0))
    life.settle(1.0)
    assert models(life) == {"same": SLOW, "scales": FAST}


def test_a_job_waits_for_the_fast_model_while_the_slow_one_is_idle() -> None:
    life = Life([of_model("v", FAST), of_model("k", SLOW)], policy=find_policy("allox"))
    life.submit(job("first", 100, 0.1))
    life.settle(0.0)
    # 100 s until the fast device is free and 100 s of its own are less than 1,000 s on the slow one.
    life.submit(job("second", 100, 0.1, at=1.0))
    life.settle(1.0)
    assert (models(life), life.why("second")) == ({"first": FAST}, "allotted")
    # A job of 1,500 s would have to wait behind both, so 1,700 s on the slow model end earlier.
    life.submit(job("third", 1500, 1500 / 1650, at=2.0))
    life.settle(2.0)
    assert models(life) == {"first": FAST, "third": SLOW}
    life.end("first")
    life.settle(100.0)
    assert models(life) == {"second": FAST, "third": SLOW}
    assert not life.receipts, "nothing is preempted"


def test_the_shortest_job_is_first_on_one_model() -> None:
    life = Life([of_model("v", FAST)], policy=find_policy("allox"))
    life.submit(*(job(name, seconds, 1.0) for name, seconds in (("a", 300), ("b", 100), ("c", 200))))
    started = []
    for now in range(3):
        life.settle(float(now))
        started += list(life.running)
        life.end(*life.running)
    assert started == ["b", "c", "a"]


def demand(name: str, seconds: float, *speeds: float, devices: int = 1, on: int = -1) -> Demand:
    nothing = (0.0,) * len(speeds)
    return Demand(JobId(name), 1, devices, speeds, 1.0, 0.0, 0.0, nothing, 0.0, seconds, on, on >= 0)


def test_a_wide_job_has_a_reservation_and_short_ones_start_before_it() -> None:
    running = [demand("runs", 100.0, 1.0, devices=2, on=0)]
    wide = demand("wide", 10.0, 1.0, devices=4)
    short, long = demand("short", 90.0, 1.0), demand("long", 110.0, 1.0)
    # The order is wide (40 device-seconds), short, long; the wide one can start in 100 s, on all four devices.
    assert chosen([wide, short, long], running, [4]) == {"short": 0}
    # Of five devices one is left then, so the long one may have it.
    assert chosen([wide, short, long], running, [5]) == {"short": 0, "long": 0}
    assert chosen([wide, long, demand("next", 111.0, 1.0)], running, [5]) == {"long": 0}


def test_a_job_that_fits_on_no_model_waits_and_is_in_nobody_s_way() -> None:
    assert chosen([demand("a", 10.0, 0.0, 1.0)], [], [2, 1]) == {"a": 1}
    assert chosen([], [], [2, 1]) == {}
    life = Life([of_model("v", FAST)], policy=find_policy("allox"))
    life.submit(job("wide", 10, 1.0, devices=2), job("narrow", 100, 1.0, at=1.0))
    life.settle(1.0)
    assert list(life.running) == ["narrow"]


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, 4), st.lists(st.integers(1, 2), min_size=1, max_size=2), st.randoms(use_true_random=False))
def test_no_schedule_has_a_smaller_sum_of_completion_times(jobs: int, counts: list[int], random) -> None:  # type: ignore[no-untyped-def]
    work = [[float(random.randint(1, 30)) for _ in counts] for _ in range(jobs)]
    for row in work:
        if len(row) > 1 and not random.randint(0, 3):
            row[random.randint(0, 1)] = inf
    free_in = [[float(random.choice((0, 0, random.randint(1, 40)))) for _ in range(count)] for count in counts]
    planned = least_total(work, free_in)
    assert sorted(each.job for each in planned) == list(range(jobs))
    found = sum(each.start + work[each.job][each.model] for each in planned)
    places = [(model, delay) for model, row in enumerate(free_in) for delay in row]

    def total(order: tuple[int, ...], where: tuple[int, ...]) -> float:
        clock, ends = [delay for _, delay in places], 0.0
        for each, at in zip(order, where, strict=True):
            clock[at] += work[each][places[at][0]]
            ends += clock[at]
        return ends

    spread = list(product(range(len(places)), repeat=jobs))
    assert found == pytest.approx(min(total(order, where) for order in permutations(range(jobs)) for where in spread))


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 500), st.integers(1, 4), st.integers(1, 10)), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(1, 500), st.integers(1, 3), st.booleans()), max_size=4),
)
def test_what_starts_fits_and_jobs_of_one_device_leave_none_idle(
    waiting: list[tuple[int, int, int]], busy: list[tuple[int, int, bool]]
) -> None:
    room = [6, 6]
    running = []
    for at, (seconds, devices, slow) in enumerate(busy):
        if sum(each.devices for each in running if each.on == int(slow)) + devices <= 6:
            running.append(demand(f"r{at}", seconds, 1.0, 0.5, devices=devices, on=int(slow)))
    found = [
        demand(f"w{at:02}", seconds, 1.0, slow / 10, devices=wide) for at, (seconds, wide, slow) in enumerate(waiting)
    ]
    starts = chosen(found, running, room)
    used = [sum(each.devices for each in running if each.on == model) for model in range(2)]
    for each in found:
        if each.job in starts:
            used[starts[each.job]] += each.devices
    assert all(count <= 6 for count in used)
    if all(each.devices == 1 for each in found) and len(starts) < len(found):
        assert used[0] == 6, "no job waits while a device of its fastest model is idle"


def test_only_the_oldest_jobs_are_matched() -> None:
    life = Life([of_model("v", FAST)], policy=find_policy("allox"))
    life.submit(*(job(f"j{at:03}", 1000, 1.0, at=float(at)) for at in range(256)), job("short", 1, 1.0, at=999.0))
    life.settle(999.0)
    assert list(life.running) == ["j000"]


def test_a_running_job_that_reports_no_work_keeps_its_device_and_others_run() -> None:
    life = Life([of_model("v", FAST), of_model("k", SLOW)], policy=find_policy("allox"))
    life.submit(gang("runs", role()))
    life.settle(0.0)
    (model,) = models(life).values()
    life.planner.fold(WorkReported(JobId("runs"), 100.0, throughput=0.0))
    life.submit(gang("waits", role(), at=101.0), gang("too", role(), at=102.0))
    life.settle(102.0)
    other = SLOW if model == FAST else FAST
    assert models(life) == {"runs": model, "waits": other}


def test_others_run_when_a_device_of_a_job_on_all_of_them_fails() -> None:
    fast, slow = [of_model(name, FAST, 4) for name in ("v1", "v2")], [of_model(name, SLOW, 4) for name in ("k1", "k2")]
    life = Life([*fast, *slow], policy=find_policy("allox"))
    wide = job("wide", 100, 0.01)
    life.submit(structs.replace(wide, roles=(role(2, 4),)))
    life.settle(0.0)
    assert models(life) == {"wide": FAST}
    first = fast[0].devices[0]
    failing = structs.replace(fast[0], devices=(structs.replace(first, healthy=False), *fast[0].devices[1:]))
    life.planner.fold(NodesSeen(inventory(failing, fast[1], *slow)))
    life.submit(job("waits", 100, 0.5, at=1.0))
    life.settle(1.0)
    assert models(life) == {"waits": SLOW, "wide": FAST}


def test_any_progress_above_zero_is_an_estimate() -> None:
    life = Life([of_model("v", FAST), of_model("k", SLOW)], policy=find_policy("allox"))
    life.submit(job("runs", 100, 0.01))
    life.settle(0.0)
    life.planner.fold(WorkReported(JobId("runs"), 100.0, progress=1e-320))
    only = gang("waits", role(), at=101.0, speeds=((SLOW, 0.0), (FAST, 1.0)))
    life.submit(only, job("other", 100, 0.5, at=102.0))
    life.settle(102.0)
    assert models(life) == {"other": SLOW, "runs": FAST}


def test_a_job_of_any_speeds_runs_where_there_is_room() -> None:
    life = Life([of_model("v", FAST), of_model("k", SLOW, 2)], policy=find_policy("allox"))
    both = [role(name=name, ask=DeviceRequest(1, model=name)) for name in (FAST, SLOW)]
    life.submit(gang("both", *both))
    life.settle(0.0)
    life.submit(gang("far", role(), at=1.0, speeds=((SLOW, 1e-300), (FAST, 1e12))))
    life.settle(1.0)
    assert models(life) == {"both": "", "far": SLOW}


FIGURES = st.sampled_from((0.0, 5e-324, 1e-320, 1e-300, 1e-9, 0.5, 1.0, 1e12, 1e300, 1.7e308))


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.tuples(FIGURES, FIGURES, FIGURES, FIGURES, st.integers(0, 4)), min_size=2, max_size=6))
@pytest.mark.parametrize("policy", ["allox", "gavel", "gavel-makespan", "gavel-finish-time", "gavel-cost"])
def test_no_figures_of_jobs_stop_the_plans(policy: str, said: list[tuple[float, float, float, float, int]]) -> None:
    life = Life([of_model("v", FAST, 2), of_model("k", SLOW, 2)], policy=find_policy(policy))
    for at, (slow, fast, progress, throughput, declared) in enumerate(said):
        now, name = 100.0 * at, f"j{at}"
        speeds = ((SLOW, slow), (FAST, fast)) if at % 2 else ()
        life.submit(gang(name, role(), at=now, speeds=speeds, max_duration_seconds=10**declared))
        life.cycle(now)
        if name in life.running:
            report = WorkReported(JobId(name), now + 90, progress=min(1.0, progress), throughput=throughput)
            life.planner.fold(report)
        life.cycle(now + 95)


def test_a_queue_at_its_limit_is_in_no_other_queue_s_way() -> None:
    bounds = (QueueSpec("full", limit={"devices": 1}), QueueSpec("other"))
    life = Life([of_model("v", FAST, 4)], bounds, find_policy("allox"))
    life.submit(job("runs", 1000, 1.0, queue="full"))
    life.settle(0.0)
    life.submit(*(job(f"j{at:03}", 1, 1.0, at=1.0, queue="full") for at in range(256)))
    life.submit(*(job(name, 100, 1.0, at=2.0, queue="other") for name in ("a", "b", "c", "d")))
    life.settle(2.0)
    assert sorted(life.running) == ["a", "b", "c", "runs"]
    assert (life.why("j000"), life.why("d")) == ("queue-limit", "allotted")
    life.end("runs")
    life.settle(3.0)
    assert sorted(life.running) == ["a", "b", "c", "j000"]


def test_jobs_that_fit_a_bound_only_one_by_one_leave_the_rest_to_other_queues() -> None:
    life = Life([of_model("v", FAST, 4)], (QueueSpec("small", limit={"devices": 2}),), find_policy("allox"))
    life.submit(*(job(f"j{at}", 1, 1.0, queue="small") for at in range(8)))
    life.submit(*(job(name, 100, 1.0, at=1.0) for name in ("a", "b")))
    life.settle(1.0)
    assert sorted(life.running) == ["a", "b", "j0", "j1"]


def test_a_job_is_matched_to_a_model_that_its_queue_may_still_have() -> None:
    bounds = (QueueSpec("q", limit={f"devices/{FAST}": 1}),)
    life = Life([of_model("v", FAST, 2), of_model("k", SLOW, 2)], bounds, find_policy("allox"))
    life.submit(*(job(name, 100, 0.9, at=float(at), queue="q") for at, name in enumerate(("a", "b", "c"))))
    life.settle(2.0)
    assert models(life) == {"a": FAST, "b": SLOW, "c": SLOW}


def test_nothing_is_matched_while_no_job_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.scheduler.policy.baselines.matching.linear_sum_assignment", None)
    running = [demand("runs", 100.0, 1.0, 0.5, devices=2, on=0)]
    waiting = [demand("wide", 10.0, 1.0, 0.0, devices=2), demand("slow", 10.0, 0.0, 1.0, devices=2)]
    assert chosen(waiting, running, [3, 1]) == {}


def test_without_scipy_the_policy_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.scheduler.policy.registry.find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match="The policy allox needs scipy"):
        find_allot("allox")
