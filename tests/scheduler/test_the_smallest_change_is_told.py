"""A change proposed to a waiting gang really lets it start now; none is proposed when none helps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from corral.kernel.ids import JobId
from corral.model.inventory import Node
from corral.model.queues import CellQuota, QueueSpec
from corral.model.requests import DeviceRequest, FractionRequest, GangRequest, NodeRules, NodeSharing, TopologyRequest
from corral.model.start_estimates import Change
from corral.scheduler import GangQueued, Policy, QueuesConfigured, find_policy
from corral.scheduler.explain.relaxation import amounts, relaxations
from corral.scheduler.explain.smallest_change import MOST_CHANGES, smallest_changes
from corral.scheduler.planners.builtin.planning import plan
from tests.examples import examples
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role

BUSY = tuple(gang(f"busy{at}", role(1, count), at=float(at)) for at, count in enumerate((3, 2, 4)))


def changes(life: Life, job: str) -> tuple[Change, ...]:
    """The changes proposed to a waiting job; cluster and queue stay bit for bit the same."""
    before = life.cluster.digest(), life.queue.digest()
    reasons = life.planner.explain(JobId(job), life.now)
    assert reasons is not None
    found = smallest_changes(life.cluster, life.queue, life.policy, JobId(job), reasons, life.now)
    assert (life.cluster.digest(), life.queue.digest()) == before
    assert life.cluster.consistent()
    return found


def busy(*machines: Node, queues: tuple[QueueSpec, ...] = (), policy: Policy | None = None) -> Life:
    """Three nodes of four devices with 1, 2 and 0 of them free."""
    life = Life(machines or (node("n1"), node("n2", rack="r2"), node("n3", rack="r2")), queues, policy)
    life.submit(*BUSY)
    life.cycle()
    assert len(life.running) == len(BUSY)
    return life


@dataclass(frozen=True)
class Case:
    sentence: str
    request: GangRequest
    path: str
    before: str | int
    after: str | int
    message: str


CASES = (
    Case(
        "fewer devices a task",
        gang("job", role(1, 4)),
        "roles.worker.resources.devices",
        4,
        2,
        "It would start now with 2 devices a task instead of 4.",
    ),
    Case(
        "fewer tasks",
        gang("job", role(5, 1)),
        "roles.worker.replicas",
        5,
        3,
        "It would start now with 3 tasks instead of 5.",
    ),
    Case(
        "a smaller minimum of an elastic job",
        gang("job", role(8, 1, minimum=5)),
        "roles.worker.replicas.min",
        5,
        3,
        "It would start now with at least 3 tasks instead of 5.",
    ),
    Case(
        "a wider level",
        gang("job", role(3, 1), required="rack"),
        "topology.required",
        "rack",
        "block",
        "It would start now if all of it might be only inside one block, not only inside one rack.",
    ),
    Case(
        "a smaller part",
        gang("job", role(6, ask=DeviceRequest(1, share=FractionRequest(compute=600_000)))),
        "roles.worker.resources.devices.share.computePercent",
        60,
        50,
        "It would start now with 50 % of a device for each task instead of 60 %.",
    ),
    Case(
        "outside of a pinned cell",
        gang("job", role(), pinned_cell="PIN"),
        "pinnedCell",
        "PIN",
        "",
        "It would start now anywhere, not only in that pinned cell.",
    ),
    Case(
        "any model",
        gang("job", role(ask=DeviceRequest(1, model="H900"))),
        "roles.worker.resources.devices.model",
        "H900",
        "",
        "It would start now with devices of any model, not only H900.",
    ),
    Case(
        "any devices instead of named ones",
        gang("job", role(ask=DeviceRequest(ids=("n1:0",)))),
        "roles.worker.resources.devices",
        "n1:0",
        1,
        "It would start now with any 1 device of a node instead of n1:0.",
    ),
    Case(
        "without a label",
        gang("job", role(node_selector={"disk": "slow"})),
        "roles.worker.nodeSelector.disk",
        "slow",
        "",
        "It would start now on nodes without the label disk=slow.",
    ),
    Case(
        "without the rules for nodes",
        gang("job", role(nodes=NodeRules(include=("n3",)))),
        "roles.worker.nodes.include",
        "rules",
        "",
        "It would start now on nodes that its rules for nodes leave out.",
    ),
    Case(
        "on shared nodes",
        gang("job", role(), company=NodeSharing(exclusive=True)),
        "sharing.exclusive",
        "true",
        "",
        "It would start now on nodes that other jobs use too.",
    ),
    Case(
        "less memory",
        gang("job", role(memory_bytes=3 * 2**40)),
        "roles.worker.resources.memory",
        "3Ti",
        "960Gi",
        "It would start now with 960Gi of memory a task instead of 3Ti.",
    ),
    Case(
        "fewer processors",
        gang("job", role(cpu_millis=66_000)),
        "roles.worker.resources.cpu",
        "66",
        "64",
        "It would start now with 64 processors a task instead of 66.",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sentence)
def test_one_thing_less_is_told(case: Case) -> None:
    life = busy()
    life.submit(structs.replace(case.request, submitted_at=9.0))
    assert not life.cycle().placements
    first = changes(life, "job")[0]
    assert (first.path, first.before, first.after, first.message) == (case.path, case.before, case.after, case.message)


def test_a_bound_on_its_duration_lets_a_job_pass_the_first_that_waits() -> None:
    life = Life([node("n1")])
    life.submit(gang("long", role(1, 2), max_duration_seconds=5400))
    life.cycle()
    life.submit(gang("head", role(1, 4), at=1.0), gang("job", role(1, 2), at=2.0))
    life.cycle()
    (first, *_) = changes(life, "job")
    assert (first.path, first.before, first.after) == ("maxDuration", "", "1h30m")


def test_an_owner_may_pass_the_first_into_its_own_cells_whatever_was_remembered() -> None:
    """It may pass the head in its cells only if it ends before the head starts: each cycle gives the same result."""
    machines = [node("n1"), node("n2", labels={"disk": "fast"})]
    owner = QueueSpec("b", cells=(CellQuota("node", 1),), user_limit={"devices": 6})
    life, fast = Life(machines, [QueueSpec("a"), owner]), {"disk": "fast"}
    for at, (queue, ask, seconds_) in enumerate(
        [
            ("b", role(1, 1, node_selector=fast), 600),
            ("a", role(1, 4, node_selector=fast), 0),
            ("a", role(1, 1, node_selector=fast), 0),
            ("b", role(1, 3), 0),
            ("b", role(1, 3, node_selector=fast), 0),
        ]
    ):
        life.now = float(at)
        life.submit(gang(f"j{at}", ask, at=float(at), queue=queue, max_duration_seconds=seconds_))
        life.cycle()
    assert sorted(life.running) == ["j0", "j3"]
    (told,) = [change for change in changes(life, "j4") if change.path == "maxDuration"]
    asks = [applied(life, life.requests["j4"], told), life.requests["j4"]]
    for changed, starts in zip(asks, (True, False), strict=True):
        remembering, anew = life.queue.fork(), life.queue.fork()
        anew.apply(QueuesConfigured(tuple(life.cluster.queues.specs.values())))
        for queue_ in (remembering, anew):
            queue_.apply(GangQueued(changed))
            placed = plan(life.cluster, queue_, life.policy, life.now).placements
            assert [each.job for each in placed] == (["j4"] if starts else [])


def test_another_queue_and_a_higher_limit_are_told_where_a_limit_binds() -> None:
    life = Life([node("n1")], [QueueSpec("lab", limit={"devices": 1}), QueueSpec("other")])
    life.submit(gang("job", role(1, 2), queue="lab"))
    life.cycle()
    found = {change.path: (change.before, change.after) for change in changes(life, "job")}
    assert found == {
        "queue": ("lab", "other"),
        "Queue/lab: limit.devices": (1, 2),
        "roles.worker.resources.devices": (2, 1),
    }


def test_a_queue_with_room_in_its_own_cells_is_told() -> None:
    queues = (QueueSpec("lab", cells=(CellQuota("node", 1),)), QueueSpec("guest"))
    life = Life([node("n1"), node("n2")], queues)
    life.submit(gang("guest", role(2, 4), queue="guest"))
    life.cycle()
    life.submit(gang("job", role(1, 4), queue="guest", at=1.0))
    life.cycle()
    assert all(change.path != "queue" for change in changes(life, "job")), "the guest would have to yield first"


def test_the_lowest_priority_that_helps_is_told_with_who_would_yield() -> None:
    life = Life([node("n1")])
    life.submit(gang("low", role(1, 4), priority=10))
    life.cycle()
    life.submit(gang("job", role(1, 4), at=1.0, priority=10))
    life.cycle()
    found = {change.path: change for change in changes(life, "job")}
    assert (found["priority"].before, found["priority"].after) == (10, 11)
    assert "it would preempt job low" in found["priority"].message


@pytest.mark.parametrize(
    "request_",
    [gang("job", role(1, 4), at=9.0, preemptible=False), gang("job", role(ask=DeviceRequest(1)), at=9.0)],
    ids=["a whole node", "one device"],
)
def test_nothing_is_told_when_every_device_is_taken_by_who_may_not_yield(request_: GangRequest) -> None:
    life = Life([node("n1")])
    life.submit(gang("all", role(1, 4), preemptible=False))
    life.cycle()
    life.submit(request_)
    life.cycle()
    assert changes(life, "job") == ()


def test_nothing_is_told_to_a_job_that_starts_or_that_others_yield_to() -> None:
    life = Life([node("n1")])
    life.submit(gang("low", role(1, 4)))
    life.cycle()
    life.submit(gang("high", role(1, 4), priority=100))
    life.cycle()
    assert changes(life, "high") == ()


# -- every proposal is true -------------------------------------------------------------------------------------------


def applied(life: Life, request: GangRequest, change: Change) -> GangRequest:
    """The request, or the queues, as a user would write them after this change."""
    field = change.path.rpartition(".")[2]
    after = change.after
    if change.path.startswith("Queue/"):
        name, _, bound = change.path.removeprefix("Queue/").partition(": ")
        spec = life.cluster.queues.specs[name]
        of = {"limit": "limit", "borrowingLimit": "borrowing_limit", "userLimit": "user_limit"}[bound.split(".")[0]]
        raised = structs.replace(spec, **{of: getattr(spec, of) | {"devices": after}})
        others = [each for each in life.cluster.queues.specs.values() if each.name != name]
        life.configure(*others, raised)
        return request
    if change.path == "queue":
        return structs.replace(request, queue=str(after))
    if change.path == "priority":
        return structs.replace(request, priority=int(after))
    if change.path == "maxDuration":
        return structs.replace(request, max_duration_seconds=seconds(str(after)))
    if change.path == "topology.required":
        return structs.replace(request, topology=request.topology._replace(required=str(after)))
    if change.path.startswith("sharing."):
        assert request.company is not None
        of = {"exclusive": "exclusive", "oneTaskPerNode": "one_per_node"}[field]
        changed: dict[str, Any] = {of: False}
        return structs.replace(request, company=request.company._replace(**changed))
    roles = []
    for each in request.roles:
        if not change.path.startswith(f"roles.{each.role}."):
            roles.append(each)
        elif field == "replicas":
            roles.append(structs.replace(each, indexes=each.indexes[: int(after)], minimum=int(after)))
        elif field == "min":
            roles.append(structs.replace(each, minimum=int(after)))
        elif ".resources.devices" in change.path and field in ("devices", "count"):
            roles.append(structs.replace(each, devices=structs.replace(each.devices, count=int(after))))
        elif field == "model":
            roles.append(structs.replace(each, devices=structs.replace(each.devices, model="")))
        elif field == "cpu":
            text = str(after)
            millis = int(text[:-1]) if text.endswith("m") else int(text) * 1000
            roles.append(structs.replace(each, cpu_millis=millis))
        elif ".nodeSelector." in change.path:
            roles.append(structs.replace(each, node_selector={}))
        elif field == "required" and ".group." in change.path:
            roles.append(structs.replace(each, topology=each.topology._replace(group_required=str(after))))
        else:
            raise AssertionError(change.path)
    return structs.replace(request, roles=tuple(roles))


def seconds(text: str) -> int:
    """The seconds of a duration such as `1h30m`."""
    total, number = 0, ""
    for letter in text:
        if letter.isdigit():
            number += letter
        else:
            total, number = total + int(number) * {"d": 86400, "h": 3600, "m": 60, "s": 1}[letter], ""
    return total


@st.composite
def wanted(draw: st.DrawFn, job: str, at: float) -> GangRequest:
    """A gang with random constraints."""
    count, minimum = draw(st.integers(1, 4)), None
    if draw(st.booleans()):
        minimum = draw(st.integers(1, count))
    topology = TopologyRequest()
    if count % 2 == 0 and draw(st.integers(0, 3)) == 0:
        topology = TopologyRequest(group_size=2, group_required="node")
    fields: dict[str, object] = {}
    if draw(st.integers(0, 3)) == 0:
        fields["node_selector"] = {"disk": "fast"}
    asked = role(
        count,
        minimum=minimum,
        topology=topology,
        ask=DeviceRequest(draw(st.integers(1, 4)), model=draw(st.sampled_from(["", "", "A100"]))),
        cpu_millis=draw(st.sampled_from([0, 1000, 5000])),
        **fields,
    )
    company = draw(st.sampled_from([None, None, NodeSharing(exclusive=True), NodeSharing(one_per_node=True)]))
    return gang(
        job,
        asked,
        at=at,
        priority=draw(st.sampled_from([10, 10, 10, 50])),
        required=draw(st.sampled_from(["", "", "node", "rack"])),
        queue=draw(st.sampled_from(["a", "b"])),
        company=company,
        max_duration_seconds=draw(st.sampled_from([0, 600, 7200])),
        preemptible=draw(st.booleans()),
    )


@st.composite
def lives(draw: st.DrawFn) -> Life:
    """A small cluster with some running and some waiting gangs."""
    machines = []
    for at in range(draw(st.integers(1, 4))):
        labels = {"disk": "fast"} if draw(st.booleans()) else {}
        made = node(f"n{at}", 4, rack=f"r{at % 2}", cpu_millis=draw(st.sampled_from([4000, 64_000])), labels=labels)
        model = draw(st.sampled_from(["A100", "V100"]))
        devices = tuple(structs.replace(device, model=model) for device in made.devices)
        machines.append(structs.replace(made, devices=devices))
    limit = draw(st.sampled_from([{}, {"devices": 4}]))
    owned = draw(st.sampled_from([(), (CellQuota("node", 1),)]))
    queues = [
        QueueSpec("a", limit=limit),
        QueueSpec("b", cells=owned, user_limit=draw(st.sampled_from([{}, {"devices": 6}]))),
    ]
    life = Life(
        machines, queues, draw(st.sampled_from([find_policy("fair"), find_policy("priority"), find_policy("fifo")]))
    )
    for number in range(draw(st.integers(2, 9))):
        life.now = float(number)
        life.submit(draw(wanted(f"j{number}", float(number))))
        life.cycle()
    return life


@settings(max_examples=examples(120), deadline=None)
@given(lives())
def test_whatever_change_is_told_the_next_cycle_places_the_gang_with_it(life: Life) -> None:
    waiting = sorted({entry for job in life.requests if (entry := job) and life.queue.first(JobId(job))})
    queues = tuple(life.cluster.queues.specs.values())
    for job in waiting:
        if job in life.running:
            continue
        found = changes(life, job)
        assert len(found) <= MOST_CHANGES
        assert len({change.path for change in found}) == len(found)
        for change in found:
            changed = applied(life, life.requests[job], change)
            again = life.queue.fork()
            again.apply(GangQueued(changed))
            again.apply(QueuesConfigured(tuple(life.cluster.queues.specs.values())))
            next_plan = plan(life.cluster, again, life.policy, life.now)
            starts = any(placed.job == job for placed in next_plan.placements)
            yields = any(eviction.by == job for eviction in next_plan.evictions)
            assert starts or (change.path == "priority" and yields), change
            if change.path.startswith("Queue/"):
                life.configure(*queues)


def test_less_shared_memory_is_proposed_where_a_job_file_has_it() -> None:
    asked = gang("j", role(shm_bytes=4 * 2**30))
    assert {wish.change.path for series in amounts(asked) for wish in series} == {"roles.worker.shm"}


def test_a_gang_of_many_tasks_is_tried_with_few_other_numbers_of_them() -> None:
    def counts(tasks: int) -> list[int]:
        return [int(wish.change.after) for series in relaxations(gang("j", role(tasks, 0)), ()) for wish in series]

    assert counts(40) == list(range(39, 0, -1))
    many = counts(10_000)
    assert len(many) < 40 and many[-1] == 1 and many == sorted(set(many), reverse=True)
