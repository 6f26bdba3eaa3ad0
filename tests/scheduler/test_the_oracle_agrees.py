"""The scheduler finds a placement wherever the linear program does, and no placement breaks a rule."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import pytest

from corral.kernel.ids import JobId, TaskKey
from corral.model.inventory import Device, Node, Taint
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
from corral.scheduler import TasksReleased, gang_placed
from tests.examples import at_least
from tests.scheduler.machines import place
from tests.scheduler.oracle import WHOLE, Other, Use, World, broken, fits, use_of, used_parts

MODELS = ("big", "small")
SLICE = "slice"
GangPlacer = Callable[[random.Random], tuple[tuple[RoleRequest, ...], dict[str, object]]]


def world(source: random.Random, *, sliced: bool = False, spare: bool = False) -> World:
    """Up to five nodes with some of everything, partly taken."""
    nodes = tuple(_node(source, at, sliced) for at in range(source.randint(2, 6)))
    made = World(nodes, [])
    for node in nodes:
        for device in node.devices:
            if source.random() < (0.05 if spare else 0.25):
                _take(source, made, node, device)
        if source.random() < 0.2:
            made.others.append(Other(node.name, (), None, _use(source)))
    return made


def _node(source: random.Random, at: int, sliced: bool) -> Node:
    count = source.choice([0, 1, 2, 4])
    mixed = source.random() < 0.4
    devices = [
        Device(i, f"n{at}:{i}", model=source.choice(MODELS) if mixed else MODELS[at % 2],
               memory_bytes=source.choice([10, 16]), healthy=source.random() > 0.1)
        for i in range(count)
    ]  # fmt: skip
    if sliced:
        for parent in range(count):
            for _ in range(source.choice([0, 2])):
                devices.append(
                    Device(len(devices), f"s{at}:{len(devices)}", model=SLICE, parent=parent, memory_bytes=4)
                )
    taints = (Taint("team", source.choice(["a", "b"])),), (Taint("old", "", "NoExecute"),)
    taint = source.choice([*taints, *[()] * 6])
    return Node(
        f"local/n{at}", (("rack", f"r{source.randint(0, 2)}"),), tuple(devices),
        cpu_millis=source.choice([1000, 3000, 3000, 9000]), memory_bytes=100, shm_bytes=100,
        max_tasks=source.choice([2, 3, 100, 100, 100]),
        resources=source.choice([{}, {"ports": 3}, {"ports": 5, "licence": 2}, {"licence": 1, "disk": 50}]),
        labels={"zone": source.choice(["a", "b"]), "size": str(source.randint(1, 4))}, taints=taint,
        ready=source.random() > 0.1,
    )  # fmt: skip


def _use(source: random.Random) -> Use:
    averse, level = source.choice([((), ""), ((), ""), (("mine",), "node"), (("mine",), "rack")])
    return Use(
        source.choice([0, 1000]),
        amounts=source.choice([(), (("ports", 1),)]),
        exclusive=source.random() < 0.15,
        tags=source.choice([(), (), ("noisy",), ("quiet",)]),
        averse=averse,
        averse_level=level,
    )


def _take(source: random.Random, made: World, node: Node, device: Device) -> None:
    """Occupy the device, or a fraction of it."""
    if used_parts(made, node, device) != (0, 0) or any(other.use.exclusive for other in made.here(node)):
        return
    if len(made.here(node)) >= node.max_tasks:
        return
    share = source.choice([None, None, (250_000, 250_000), (700_000, 100_000)])
    made.others.append(Other(node.name, (device.index,), share, Use(tags=source.choice([(), (), ("noisy",)]))))


def _counts(source: random.Random) -> tuple[int, int]:
    return source.randint(1, 4), source.choice([0, 1, 1, 2])


def _role(source: random.Random, name: str = "w", **fields: object) -> RoleRequest:
    tasks, devices = _counts(source)
    given: dict[str, object] = {
        "cpu_millis": source.choice([0, 500, 1000]),
        "devices": DeviceRequest(devices, model=source.choice(["", "", "big"])),
        "topology": TopologyRequest(required=source.choice(["", "", "", "rack", "node"])),
    }
    return RoleRequest(name, tuple(range(tasks)), tasks, **(given | fields))  # type: ignore[arg-type]


def _named(source: random.Random) -> tuple[tuple[RoleRequest, ...], dict[str, object]]:
    amounts = {name: source.randint(1, 2) for name in ("ports", "licence", "disk") if source.random() < 0.5}
    return (_role(source, resources=amounts),), {}


def _devices_by_name(source: random.Random) -> tuple[tuple[RoleRequest, ...], dict[str, object]]:
    ids = tuple(str(each) for each in sorted(source.sample(range(4), source.randint(1, 2))))
    return (_role(source, devices=DeviceRequest(len(ids), ids=ids)),), {}


def _chosen_nodes(source: random.Random) -> tuple[tuple[RoleRequest, ...], dict[str, object]]:
    expressions = [
        Expression("zone", "In", ("a",)), Expression("zone", "NotIn", ("a",)), Expression("size", "Gt", ("2",)),
        Expression("size", "Lt", ("3",)), Expression("size", "Exists"), Expression("none", "DoesNotExist"),
    ]  # fmt: skip
    tolerations = [
        Toleration("team", "Equal", "a"),
        Toleration("team", "Exists"),
        Toleration("", "Exists", "", "NoExecute"),
    ]
    rules = NodeRules(
        tuple(source.sample(expressions, source.randint(0, 1))),
        tuple(source.sample(tolerations, source.randint(0, 2))),
        source.choice([(), (), ("n0", "n1", "n2")]),
        source.choice([(), ("n1",)]),
    )
    return (_role(source, nodes=rules, node_selector=source.choice([{}, {"zone": "a"}])),), {}


def _company(source: random.Random) -> tuple[tuple[RoleRequest, ...], dict[str, object]]:
    company = NodeSharing(
        source.random() < 0.3, source.random() < 0.3, source.choice([(), ("noisy",)]), source.choice(["node", "rack"])
    )
    return (_role(source),), {"company": company, "tags": source.choice([(), ("mine",)])}


def _spread(source: random.Random) -> tuple[tuple[RoleRequest, ...], dict[str, object]]:
    topology = TopologyRequest(
        required=source.choice(["", "", "rack"]),
        spread_level=source.choice(["rack", "node"]),
        max_skew=source.randint(0, 2),
    )
    company = NodeSharing(one_per_node=source.random() < 0.3)
    return (_role(source, topology=topology),), {"company": company}


def _one_model(source: random.Random) -> tuple[tuple[RoleRequest, ...], dict[str, object]]:
    for_role = source.random() < 0.4
    devices = DeviceRequest(source.randint(1, 2))
    topology = TopologyRequest(same_model=for_role)
    return (_role(source, topology=topology, devices=devices),), {"topology": TopologyRequest(same_model=not for_role)}


def _parts(source: random.Random) -> tuple[tuple[RoleRequest, ...], dict[str, object]]:
    share = source.choice([
        FractionRequest(500_000, 500_000), FractionRequest(300_000, 0), FractionRequest(0, 0, 4),
        FractionRequest(100_000, 0, 8), FractionRequest(250_000, 250_000, spread=True), FractionRequest(0, WHOLE),
    ])  # fmt: skip
    return (_role(source, devices=DeviceRequest(1, model=source.choice(["", "big"]), share=share)),), {}


def _slices(source: random.Random) -> tuple[tuple[RoleRequest, ...], dict[str, object]]:
    return (_role(source, devices=DeviceRequest(source.randint(1, 2), model=source.choice(["", SLICE]))),), {}


ONE_ROLE, SEVERAL_ROLES, LIVES = at_least(20, 100), at_least(20, 70), at_least(6, 40)
"""Random clusters of the three tests."""
ALONE = [_named, _devices_by_name, _chosen_nodes, _company, _spread, _one_model, _parts, _slices]


@pytest.mark.parametrize("asking", ALONE)
def test_one_role_fits_if_and_only_if_the_oracle_says_so(asking: GangPlacer) -> None:
    both = 0
    for seed in range(ONE_ROLE):
        source = random.Random(f"{asking.__name__}{seed}")
        machines = world(source, sliced=asking is _slices)
        roles, fields = asking(source)
        both += _agree(machines, asked(roles, fields), seed)
    assert ONE_ROLE // 10 < both < ONE_ROLE - ONE_ROLE // 10


@pytest.mark.parametrize("asking", ALONE)
def test_several_roles_fit_if_the_oracle_says_so(asking: GangPlacer) -> None:
    both = 0
    for seed in range(SEVERAL_ROLES):
        source = random.Random(f"several{asking.__name__}{seed}")
        machines = world(source, sliced=asking is _slices, spare=True)
        (first,), fields = asking(source)
        others = tuple(_role(source, f"v{at}") for at in range(source.randint(1, 2)))
        both += _agree(machines, asked((first, *others), fields), seed)
    assert SEVERAL_ROLES // 20 < both < SEVERAL_ROLES - SEVERAL_ROLES // 20


def asked(roles: tuple[RoleRequest, ...], fields: dict[str, object]) -> GangRequest:
    """A gang of these roles."""
    return GangRequest(JobId("job"), 0, "ada", "default", 10, 0.0, roles, **fields)  # type: ignore[arg-type]


def _agree(machines: World, request: GangRequest, seed: int) -> bool:
    """Whether the gang fits; checks that scheduler and linear program agree."""
    target = machines.cluster()
    assert target.consistent()
    before = target.digest()
    placement = place(target, request)
    assert target.digest() == before
    if placement is not None:
        assert broken(machines, request, placement) == [], seed
    assert (placement is not None) == fits(machines, request), seed
    return placement is not None


def test_rules_hold_among_gangs_that_come_and_go() -> None:
    """Gangs of every kind start and end beside each other; each placement keeps all rules, also those of other jobs."""
    placed = 0
    for seed in range(LIVES):
        source = random.Random(f"life{seed}")
        machines = world(source, sliced=seed % 3 == 0, spare=True)
        target, held = machines.cluster(), list[tuple[str, TaskKey, Other]]()
        for number in range(12):
            if held and source.random() < 0.3:
                job, key, other = held.pop(source.randrange(len(held)))
                target.apply(TasksReleased(JobId(job), (key,)))
                machines.others.remove(other)
            roles, fields = source.choice(ALONE)(source)
            fields.setdefault("tags", source.choice([(), ("mine",), ("noisy",)]))
            request = msgspec.structs.replace(asked(roles, fields), job=JobId(f"job{number}"))
            placement = place(target, request)
            assert (placement is not None) == fits(machines, request), (seed, number)
            if placement is not None:
                placed += 1
                assert broken(machines, request, placement) == [], (seed, number)
                target.apply(gang_placed(request, placement, 0.0))
                uses = {role.role: use_of(request, role) for role in request.roles}
                for task in placement.tasks:
                    share = (task.share.compute, task.share.memory) if task.share else None
                    other = Other(task.node, task.devices, share, uses[task.role])
                    machines.others.append(other)
                    held.append((request.job, task.key, other))
            assert target.consistent(), (seed, number)
    assert placed > LIVES * 3 // 2
