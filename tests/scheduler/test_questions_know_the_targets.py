"""Changes and estimates of a waiting job are searched on the model of device that the policy gives it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from corral.kernel.ids import JobId
from corral.model.inventory import Node
from corral.model.queues import QueueSpec
from corral.model.requests import GangRequest
from corral.scheduler import Target, find_policy
from corral.scheduler.explain.planner_trial import PlannerTrial
from corral.scheduler.explain.smallest_change import smallest_changes
from corral.scheduler.explain.start_estimate import endless_estimate
from corral.scheduler.policy.faults import CheckedAllot
from corral.scheduler.policy.policy import BUILT_IN, Policy
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role

FAST, SLOW = "V100", "K80"


def of_model(name: str, model: str) -> Node:
    made = node(name)
    return structs.replace(made, devices=tuple(structs.replace(each, model=model) for each in made.devices))


class Wide:
    """The job named `job` runs on the fast model, and only with few enough devices a task; all others run anywhere."""

    changes_with_time = False
    every_gang = True

    def __init__(self, most: int = 4) -> None:
        self.most = most

    def targets(self, cluster, gangs, now):  # type: ignore[no-untyped-def]
        asked = {each.request.job: each.request.roles[0].devices.count for each in gangs if each.request.job == "job"}
        return {job: Target(1, FAST) if count <= self.most else Target(0) for job, count in asked.items()}


class Counting(Wide):
    """Counts how often it is asked."""

    asked = 0

    def targets(self, cluster, gangs, now):  # type: ignore[no-untyped-def]
        self.asked += 1
        return {}


class Failing(Wide):
    def targets(self, cluster, gangs, now):  # type: ignore[no-untyped-def]
        raise ValueError("no targets")


def policy(part: object, *, every_gang: bool = True) -> Policy:
    allot = CheckedAllot("wide", part, False, every_gang)  # type: ignore[arg-type]
    return replace(BUILT_IN["priority"], allot=allot)


def fast_one_nearly_full(part: object, *, used: int = 3, every_gang: bool = True) -> Life:
    """A node of four devices of each model; a job without an end uses `used` of the fast ones, an older one a slow one."""
    life = Life([of_model("v", FAST), of_model("k", SLOW)], policy=policy(part, every_gang=every_gang))
    for at, request in enumerate((on(SLOW, "another", 1), on(FAST, "busy", used, at=1.0))):
        life.submit(request)
        life.settle(float(at))
    return life


def on(model: str, name: str, devices: int, at: float = 0.0) -> GangRequest:
    return asking(gang(name, role(1, devices), at=at), model)


def asking(made: GangRequest, model: str) -> GangRequest:
    asked = structs.replace(made.roles[0].devices, model=model)
    return structs.replace(made, roles=(structs.replace(made.roles[0], devices=asked),))


def found(life: Life) -> list[tuple[str, object]]:
    reasons = life.planner.explain(JobId("job"), life.now)
    assert reasons is not None
    before = life.planner.digest()
    changes = smallest_changes(life.cluster, life.queue, life.policy, JobId("job"), reasons, life.now)
    assert life.planner.digest() == before
    return [(change.path, change.after) for change in changes]


@pytest.mark.parametrize("asks", [2, 3])
def test_the_change_is_as_large_as_its_model_needs(asks: int) -> None:
    life = fast_one_nearly_full(Wide())
    life.submit(gang("job", role(1, asks), at=2.0))
    life.settle(2.0)
    assert "job" not in life.running, "three devices of the slow model are free, but the policy gives it the fast one"
    assert ("roles.worker.resources.devices", 1) in found(life)


def test_a_change_with_which_the_policy_lets_it_run_is_found() -> None:
    life = fast_one_nearly_full(Wide(most=2), used=2)
    life.submit(gang("job", role(1, 4), at=2.0))
    life.settle(2.0)
    assert life.why("job") == "allotted"
    assert ("roles.worker.resources.devices", 2) in found(life)


def test_an_equal_job_without_a_target_is_placed_on_the_other_model() -> None:
    life = fast_one_nearly_full(Wide())
    life.submit(gang("job", role(1, 3), at=2.0), gang("other", role(1, 3), at=3.0))
    life.settle(3.0)
    assert life.cluster.model_of(JobId("other")) == SLOW and "job" not in life.running


def test_jobs_on_another_model_are_not_in_its_way() -> None:
    life = fast_one_nearly_full(Wide())
    life.submit(gang("job", role(1, 4), at=2.0))
    life.settle(2.0)
    entry = life.queue.first(JobId("job"))
    assert entry is not None
    estimate = endless_estimate(life.cluster, life.queue, entry, life.planner.explain(JobId("job"), 2.0), 2.0, ())
    assert estimate.after == ("busy",) and "waits for job busy" in estimate.message


def trial(life: Life) -> PlannerTrial:
    entry = life.queue.first(JobId("job"))
    assert entry is not None
    return PlannerTrial(life.cluster, life.queue, life.policy, entry, life.now)


def test_a_part_for_elastic_gangs_is_not_asked_about_another_one() -> None:
    part = Counting()
    life = fast_one_nearly_full(part, every_gang=False)
    life.submit(gang("job", role(2, 4), at=2.0))
    life.settle(2.0)
    stage, before = trial(life), part.asked
    assert stage.looks > 32 and not stage.fits(stage.request) and part.asked == before
    life.submit(gang("job", role(2, 4, minimum=1), at=2.0))
    stage = trial(life)
    assert stage.looks == 32 and stage.fits(stage.request) is False and part.asked == before + 1


def test_the_more_jobs_the_part_looks_at_the_less_often_it_is_asked() -> None:
    life = fast_one_nearly_full(Counting())
    life.submit(gang("job", role(2, 4), at=2.0))
    assert trial(life).looks == 32
    life.submit(*(gang(f"w{at:03}", role(1, 8), at=3.0, priority=at) for at in range(400)))
    assert trial(life).looks == 4096 // (1 + 2 + 401)
    life.submit(*(gang(f"x{at:04}", role(1, 8), at=3.0, priority=at) for at in range(2000)))
    assert trial(life).looks == 2


def test_a_bound_that_the_part_reads_is_raised_to_what_the_job_needs() -> None:
    pytest.importorskip("scipy")
    bounds = (QueueSpec("q", limit={f"devices/{FAST}": 1}),)
    life = Life([of_model("v", FAST)], bounds, find_policy("allox"))
    life.submit(gang("busy", role(), queue="q"))
    life.settle(0.0)
    life.submit(asking(gang("job", role(), at=1.0, queue="q"), FAST))
    life.settle(1.0)
    assert life.why("job") == "queue-limit"
    assert found(life) == [(f"Queue/q: limit.devices/{FAST}", 2)]


def test_without_an_answer_of_the_part_every_device_counts() -> None:
    life = fast_one_nearly_full(Failing())
    life.submit(gang("job", role(1, 5), at=2.0))
    life.settle(2.0)
    assert ("roles.worker.resources.devices", 3) in found(life)
