"""Every reason about node constraints, device fractions and affinity names the constraint and its numbers."""

from __future__ import annotations

import pytest

from corral.model.inventory import Device, Inventory, Node, Taint
from corral.model.plan import Reasons
from corral.model.requests import (
    DeviceRequest,
    Expression,
    FractionRequest,
    GangRequest,
    NodeRules,
    NodeSharing,
    RoleRequest,
    Toleration,
    TopologyRequest,
)
from corral.scheduler import Cluster, NodesSeen, Policy
from corral.scheduler.planners.builtin.planning import explain
from tests.scheduler.machines import gang, node, queue, role
from tests.scheduler.oracle import Other, Use, World

TAINT = (Taint("team", "vision"),)


def machines(*fields: dict[str, object], others: tuple[Other, ...] = ()) -> Cluster:
    """One node of two devices for each entry."""
    nodes = tuple(node(f"n{at}", 2, rack=f"r{at // 2}", **each) for at, each in enumerate(fields))  # type: ignore[arg-type]
    return World(nodes, list(others)).cluster()


def why(target: Cluster, request: GangRequest) -> Reasons:
    """The gang's reasons."""
    found = explain(target, queue(request), Policy(), request.job, 0.0)
    assert found is not None
    return found


HALF = DeviceRequest(1, share=FractionRequest(500_000, 500_000))
NOT_A = NodeRules((Expression("zone", "NotIn", ("a",)),))
APART = TopologyRequest(spread_level="rack", max_skew=1)
ONE_EACH: dict[str, object] = {"company": NodeSharing(one_per_node=True)}

WAITS: list[tuple[str, list[dict[str, object]], RoleRequest, dict[str, object], str]] = [
    (
        "not-enough-ports",
        [{"resources": {"ports": 3}}],
        role(2, resources={"ports": 2}),
        {},
        "ports for 2 tasks; there is enough for 1",
    ),
    ("not-enough-disk", [{"resources": {"disk": 5}}], role(1, resources={"disk": 6}), {}, "disk space for 1 task"),
    ("not-enough-resource", [{"resources": {"key": 1}}], role(2, resources={"key": 1}), {}, "key for 2 tasks"),
    ("tainted", [{"taints": TAINT}], role(), {}, "taints, which it does not tolerate (team=vision:NoSchedule)"),
    ("node-names", [{}, {}], role(nodes=NodeRules(include=("n7",))), {}, "among those that it includes by name (n7)"),
    ("node-names", [{}], role(nodes=NodeRules(exclude=("n0",))), {}, "excludes every suitable node by name"),
    ("node-selector", [{"labels": {"zone": "a"}}], role(nodes=NOT_A), {}, "No node has the labels zone NotIn a."),
    (
        "no-device-share",
        [{}],
        role(5, ask=HALF),
        {},
        "50 % of the computing power and 50 % of the memory of a device for 5 tasks; there is enough for 4",
    ),
    (
        "no-device-share",
        [{}],
        role(ask=DeviceRequest(1, share=FractionRequest(memory_bytes=2**30))),
        {},
        "1Gi of the memory",
    ),
    ("one-task-per-node", [{}, {}], role(3, 0), ONE_EACH, "each of its 3 tasks; 2 nodes can take one"),
    (
        "spread",
        [{}, {}, {"cpu_millis": 1}],
        role(4, 0, cpu_millis=100, topology=APART),
        {},
        "4 tasks spread over racks with a skew of at most 1; 1 of 2 racks have room",
    ),
]


@pytest.mark.parametrize(("code", "nodes", "asked", "fields", "words"), WAITS)
def test_what_never_can_be_says_so(
    code: str, nodes: list[dict[str, object]], asked: RoleRequest, fields: dict[str, object], words: str
) -> None:
    found = why(machines(*nodes), gang("job", asked, **fields))  # type: ignore[arg-type]
    assert not found.possible
    assert found.binding.code == code, found
    assert words in found.binding.message
    assert found.binding.counts


def test_one_model_for_all_says_which_came_nearest() -> None:
    devices = tuple(Device(at, f"d{at}", model="big" if at < 3 else "small") for at in range(5))
    target = Cluster()
    target.apply(NodesSeen(Inventory("local", (Node("local/n", devices=devices),))))
    found = why(target, gang("job", role(4, topology=TopologyRequest(same_model=True))))
    assert found.binding.code == "same-model"
    assert "the best, big, has room for 3 of 4 tasks" in found.binding.message


def test_a_job_that_wants_its_nodes_for_itself_hears_how_many_are_empty() -> None:
    target = machines({}, {}, others=(Other("local/n0"),))
    found = why(target, gang("job", role(2, 2), company=NodeSharing(exclusive=True)))
    assert (found.binding.code, found.possible) == ("exclusive-nodes", True)
    assert "1 of 2 are empty, with room for 1 of 2 tasks" in found.binding.message


def test_a_job_kept_out_by_one_that_shares_with_nobody_hears_of_it() -> None:
    target = machines({}, others=(Other("local/n0", use=Use(exclusive=True)),))
    found = why(target, gang("job", role(1, 0)))
    assert (found.binding.code, found.binding.counts["exclusive"]) == ("too-many-tasks", 1)
    assert "1 node held by exclusive jobs" in found.binding.message


@pytest.mark.parametrize("theirs", [Use(tags=("noisy",)), Use(averse=("mine",), averse_level="rack")])
def test_jobs_that_keep_apart_hear_of_each_other(theirs: Use) -> None:
    target = machines({}, {}, {}, others=(Other("local/n0", use=theirs),))
    company = NodeSharing(averse=("noisy",), averse_level="rack")
    found = why(target, gang("job", role(2, 2), company=company, tags=("mine",)))
    assert (found.binding.code, found.possible) == ("anti-affinity", True)
    assert "1 of 3 nodes are left, with room for 1 of 2 tasks" in found.binding.message


def test_a_toleration_lets_it_start() -> None:
    rules = NodeRules(tolerations=(Toleration("team", "Equal", "vision"),))
    assert why(machines({"taints": TAINT}), gang("job", role(nodes=rules))).binding.code == "starts-now"
