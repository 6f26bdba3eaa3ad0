"""Independent placement rules: a checker, and a linear program that decides whether any placement exists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import msgspec
import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from corral.kernel.ids import JobId
from corral.model.inventory import Device, Inventory, Node, Taint
from corral.model.placement import DeviceShare, Placement, TaskPlacement
from corral.model.requests import Expression, GangRequest, NodeRules, NodeSharing, RoleRequest, Toleration
from corral.scheduler import Cluster, GangPlaced, NodesSeen

WHOLE = 1_000_000
LEVELS = ("rack", "node", "device")
_MUCH = 10_000


@dataclass(frozen=True)
class Use:
    """What a task holds besides devices, and its job's rules about other jobs."""

    cpu_millis: int = 0
    memory_bytes: int = 0
    amounts: tuple[tuple[str, int], ...] = ()
    exclusive: bool = False
    tags: tuple[str, ...] = ()
    averse: tuple[str, ...] = ()
    averse_level: str = ""

    def request(self, job: JobId) -> GangRequest:
        """The request of a job of one such task."""
        role = RoleRequest("other", (0,), 1, self.cpu_millis, self.memory_bytes, resources=dict(self.amounts))
        sharing = NodeSharing(self.exclusive, averse=self.averse, averse_level=self.averse_level or "node")
        return GangRequest(job, 0, "ann", "default", 10, 0.0, (role,), tags=self.tags, company=sharing)


def use_of(request: GangRequest, role: RoleRequest) -> Use:
    """What a task of a role holds."""
    sharing = request.company or NodeSharing()
    level = sharing.averse_level if sharing.averse else ""
    amounts = tuple(sorted(role.resources.items()))
    mine = (role.cpu_millis, role.memory_bytes, amounts, sharing.exclusive)
    return Use(*mine, request.tags, sharing.averse, level)


@dataclass
class Other:
    """A task of another job."""

    node: str
    devices: tuple[int, ...] = ()
    share: tuple[int, int] | None = None
    use: Use = field(default_factory=Use)


@dataclass
class World:
    """Machines and the tasks of others on them."""

    nodes: tuple[Node, ...]
    others: list[Other]

    def cluster(self) -> Cluster:
        """The same state as the scheduler's cluster."""
        made = Cluster()
        made.apply(NodesSeen(Inventory("local", self.nodes, LEVELS)))
        for number, other in enumerate(self.others):
            share = DeviceShare(*other.share) if other.share else None
            task = TaskPlacement("other", 0, other.node, other.devices, 0, share)
            job = JobId(f"other{number}")
            made.apply(GangPlaced(other.use.request(job), Placement((task,))))
        return made

    def here(self, node: Node) -> list[Other]:
        """The tasks on a node."""
        return [other for other in self.others if other.node == node.name]


def rack(node: Node) -> str:
    """The rack of a node."""
    return dict(node.cells)["rack"]


def cell(node: Node, level: str) -> str:
    """The cell of a node at a level."""
    return {"": "", "engine": "", "rack": rack(node), "node": node.name}[level]


def welcome(world: World, request: GangRequest, role: RoleRequest, node: Node) -> bool:
    """Whether a node accepts tasks of a role at all."""
    rules = role.nodes or NodeRules()
    name = node.name.removeprefix("local/")
    return (
        node.ready
        and all(node.labels.get(key) == value for key, value in role.node_selector.items())
        and all(_holds(node.labels.get(each.key), each) for each in rules.expressions)
        and (not rules.include or name in rules.include)
        and name not in rules.exclude
        and all(any(_tolerated(t, taint) for t in rules.tolerations) for taint in node.taints)
    )


def in_peace(world: World, request: GangRequest, node: Node) -> bool:
    """Whether anti-affinity and exclusive nodes allow the gang beside the jobs on and near a node."""
    company = request.company or NodeSharing()
    here = world.here(node)
    if (company.exclusive and here) or any(other.use.exclusive for other in here):
        return False
    for other in world.others:
        there = next(each for each in world.nodes if each.name == other.node)
        if set(other.use.tags) & set(company.averse) and _same(there, node, company.averse_level):
            return False
        if set(other.use.averse) & set(request.tags) and _same(there, node, other.use.averse_level):
            return False
    return True


def _same(one: Node, two: Node, level: str) -> bool:
    return cell(one, level) == cell(two, level)


def _holds(value: str | None, each: Expression) -> bool:
    if each.operator == "Gt":
        return value is not None and int(value) > int(each.values[0])
    if each.operator == "Lt":
        return value is not None and int(value) < int(each.values[0])
    return {
        "In": value in each.values,
        "NotIn": value not in each.values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[each.operator]


def _tolerated(toleration: Toleration, taint: Taint) -> bool:
    same = toleration.key == taint.key or (toleration.operator == "Exists" and not toleration.key)
    return same and toleration.effect in ("", taint.effect) and (
        toleration.operator == "Exists" or toleration.value == taint.value
    )  # fmt: skip


def suits(role: RoleRequest, node: Node, device: Device) -> bool:
    """Whether a device fits a role's request, whoever holds it."""
    ask = role.devices
    if not device.healthy or (ask.kind and device.kind != ask.kind) or (ask.model and device.model != ask.model):
        return False
    if ask.ids:
        return str(device.index) in ask.ids
    parent = next((each for each in node.devices if each.index == device.parent), None)
    if parent is not None and not parent.healthy:
        return False
    return parent is None or bool((ask.kind and parent.kind != ask.kind) or (ask.model and parent.model != ask.model))


def part(role: RoleRequest, device: Device) -> tuple[int, int] | None:
    """The fraction of the device that a task of the role takes; None if the device has no such fraction."""
    share = role.devices.share
    assert share is not None
    memory = share.memory
    if share.memory_bytes:
        if share.memory_bytes > device.memory_bytes:
            return None
        memory = -(-share.memory_bytes * WHOLE // device.memory_bytes)
    compute = share.compute or memory
    return compute, memory or compute


def used_parts(world: World, node: Node, device: Device) -> tuple[int, int] | None:
    """The allocated fractions of a device; None when it cannot be shared."""
    total = [0, 0]
    for other in world.here(node):
        for held in other.devices:
            if held == device.index and other.share is None:
                return None
            if held == device.index and other.share:
                total = [total[0] + other.share[0], total[1] + other.share[1]]
            elif _rivals(node, held, device.index):
                return None
    return total[0], total[1]


def _rivals(node: Node, one: int, two: int) -> bool:
    parents = {device.index: device.parent for device in node.devices}
    return parents[one] == two or parents[two] == one


def left(world: World, node: Node) -> dict[str, int]:
    """The free amounts of everything but devices."""
    here = world.here(node)
    amounts: Counter[str] = Counter()
    for other in here:
        amounts.update(dict(other.use.amounts))
    found = {
        "cpu": node.cpu_millis - sum(other.use.cpu_millis for other in here),
        "memory": node.memory_bytes - sum(other.use.memory_bytes for other in here),
        "tasks": node.max_tasks - len(here),
    }
    return found | {name: amount - amounts[name] for name, amount in node.resources.items()}


def wants(role: RoleRequest) -> dict[str, int]:
    """One task's request of everything but devices; ports and disk are unlimited where a node gives no number."""
    return {"cpu": role.cpu_millis, "memory": role.memory_bytes, "tasks": 1} | role.resources


def broken(world: World, request: GangRequest, placement: Placement) -> list[str]:
    """Every rule that a placement breaks."""
    return list(_broken(world, request, placement))


def _broken(world: World, request: GangRequest, placement: Placement) -> Iterator[str]:
    nodes = {node.name: node for node in world.nodes}
    roles = {role.role: role for role in request.roles}
    taken: dict[tuple[str, int], list[tuple[int, int] | None]] = {}
    company = request.company or NodeSharing()
    for task in placement.tasks:
        node, role = nodes[task.node], roles[task.role]
        if not welcome(world, request, role, node) or not in_peace(world, request, node):
            yield f"{task.key} is not welcome on {node.name}"
        if len(task.devices) != role.devices.count:
            yield f"{task.key} has {len(task.devices)} devices"
        for index in task.devices:
            device = node.devices[index]
            if not suits(role, node, device):
                yield f"{task.key} has device {index}, which it did not ask for"
            given = (task.share.compute, task.share.memory) if task.share else None
            if role.devices.share and given != part(role, device):
                yield f"{task.key} has the part {given} of device {index}"
            taken.setdefault((node.name, index), []).append(given)
    for (name, index), parts in taken.items():
        node = nodes[name]
        before = used_parts(world, node, node.devices[index])
        whole = [given for given in parts if given is None]
        if before is None or (whole and (len(parts) > 1 or before != (0, 0))):
            yield f"device {index} of {name} has two owners"
        elif any(before[at] + sum(given[at] for given in parts if given) > WHOLE for at in (0, 1)):
            yield f"device {index} of {name} is given for more than the whole"
        if any(_rivals(node, index, other) for where, other in taken if where == name):
            yield f"device {index} of {name} is given whole and in slices"
    for node in world.nodes:
        here = [task for task in placement.tasks if task.node == node.name]
        total: Counter[str] = Counter()
        for task in here:
            total.update(wants(roles[task.role]))
        room = left(world, node)
        for name, amount in total.items():
            if amount > room.get(name, _endless(name)):
                yield f"{node.name} has {room.get(name, 0)} {name} and gives {amount}"
        if company.one_per_node and len(here) > 1:
            yield f"{node.name} has {len(here)} tasks"
    yield from _apart(world, request, placement, nodes)


def _endless(name: str) -> int:
    return 2**60 if name in ("ports", "disk") else 0


def _apart(world: World, request: GangRequest, placement: Placement, nodes: dict[str, Node]) -> Iterator[str]:
    """Broken rules about the tasks together: levels, models, spread, numbers."""
    everywhere = [nodes[task.node] for task in placement.tasks]
    if len({cell(node, request.topology.required) for node in everywhere}) > 1:
        yield "the job is in several cells"
    models = {_model(nodes, task, index) for task in placement.tasks for index in task.devices}
    if request.topology.same_model and len(models) > 1:
        yield f"the job has devices of {models}"
    for role in request.roles:
        mine = [task for task in placement.tasks if task.role == role.role]
        if not role.minimum <= len(mine) <= len(role.indexes):
            yield f"{role.role} has {len(mine)} tasks"
        if len({cell(nodes[task.node], role.topology.required) for task in mine}) > 1:
            yield f"{role.role} is in several cells"
        if role.topology.same_model and len({_model(nodes, t, d) for t in mine for d in t.devices}) > 1:
            yield f"{role.role} has several models"
        skew = role.topology.max_skew
        if role.topology.spread_level and skew and mine:
            for scope in scopes(request, role, world, nodes[mine[0].node]):
                counts = Counter(cell(nodes[task.node], role.topology.spread_level) for task in mine)
                spread = [counts[each] for each in eligible(world, request, role, scope)]
                if spread and max(spread) - min(spread) > skew:
                    yield f"{role.role} is spread {spread}"


def _model(nodes: dict[str, Node], task: TaskPlacement, index: int) -> str:
    return nodes[task.node].devices[index].model


def scopes(request: GangRequest, role: RoleRequest, world: World, member: Node) -> Iterator[list[Node]]:
    """The sets of nodes that a role's tasks must stay within, given one of them."""
    yield [
        node
        for node in world.nodes
        if _same(node, member, request.topology.required) and _same(node, member, role.topology.required)
    ]


def eligible(world: World, request: GangRequest, role: RoleRequest, scope: list[Node]) -> set[str]:
    """The cells that tasks spread over: those with a ready node that would accept such a task if it were empty."""
    level = role.topology.spread_level
    return {
        cell(node, level)
        for node in scope
        if welcome(world, request, role, node) and (not role.devices.count or _could(role, node))
    }


def _could(role: RoleRequest, node: Node) -> bool:
    """Whether the node has devices of the kind, healthy or not."""
    well = [msgspec.structs.replace(device, healthy=True) for device in node.devices]
    revived = msgspec.structs.replace(node, devices=tuple(well))
    found = {str(device.index) for device in well if suits(role, revived, device)}
    return found >= set(role.devices.ids) if role.devices.ids else bool(found)


class Program:
    """A mixed integer linear program, built row by row."""

    def __init__(self) -> None:
        self.upper: list[float] = []
        self.rows: list[dict[int, float]] = []
        self.low: list[float] = []
        self.high: list[float] = []
        self._names: dict[tuple[object, ...], int] = {}
        self._next = count()

    def variable(self, *name: object, most: float = _MUCH) -> int:
        """The integer variable of this name, from 0 to `most`."""
        if name not in self._names:
            self._names[name] = next(self._next)
            self.upper.append(most)
        return self._names[name]

    def has(self, name: tuple[object, ...]) -> bool:
        """Whether there is a variable of this name."""
        return name in self._names

    def row(self, terms: dict[int, float], low: float = -np.inf, high: float = np.inf) -> None:
        """Require that the sum of the terms is between the bounds."""
        self.rows.append(terms)
        self.low.append(low)
        self.high.append(high)

    def feasible(self) -> bool:
        """Whether there is a solution."""
        size = len(self.upper)
        entries = [(r, c, v) for r, row in enumerate(self.rows) for c, v in row.items()]
        matrix = csr_array(
            ([v for _, _, v in entries], ([r for r, _, _ in entries], [c for _, c, _ in entries])),
            shape=(len(self.rows), size),
        )
        found = milp(
            np.zeros(size),
            integrality=np.ones(size),
            bounds=Bounds(0, self.upper),
            constraints=LinearConstraint(matrix, self.low, self.high),
        )
        assert found.status in (0, 2), found.message
        return bool(found.status == 0)


def fits(world: World, request: GangRequest) -> bool:
    """Whether there is a placement for the gang's minimum of tasks."""
    models: list[str | None] = [None]
    if request.topology.same_model:
        models = [*sorted({device.model for node in world.nodes for device in node.devices})] or [None]
    return any(_program(world, request, model).feasible() for model in models)


def _program(world: World, request: GangRequest, model: str | None) -> Program:
    program, company = Program(), request.company or NodeSharing()
    for role in request.roles:
        if role.minimum:
            _role(program, world, request, role, model)
    for node in world.nodes:
        roles = [role for role in request.roles if role.minimum]
        tasks = {role.role: program.variable("x", role.role, node.name) for role in roles}
        room = left(world, node)
        for name in {name for role in roles for name in wants(role)}:
            terms = {tasks[role.role]: float(wants(role).get(name, 0)) for role in roles}
            program.row(terms, high=max(0, min(room.get(name, _endless(name)), 10**6)))
        if company.one_per_node:
            program.row(dict.fromkeys(tasks.values(), 1.0), high=1)
        _devices(program, world, node, roles)
    _inside_one(program, world, [role.role for role in request.roles if role.minimum], request.topology.required, "job")
    return program


def _role(program: Program, world: World, request: GangRequest, role: RoleRequest, model: str | None) -> None:
    """Add the number of a role's tasks on each node, and their devices."""
    ask = role.devices
    for node in world.nodes:
        fine = welcome(world, request, role, node) and in_peace(world, request, node)
        tasks = program.variable("x", role.role, node.name, most=role.minimum if fine else 0)
        if not ask.count:
            continue
        usable = [d for d in node.devices if suits(role, node, d) and model in (None, d.model)]
        if ask.share:
            usable = [d for d in usable if part(role, d) is not None]
        given = {program.variable("z", role.role, node.name, d.index, most=role.minimum): 1.0 for d in usable}
        each = 1.0 if ask.share else float(ask.count)
        program.row(given | {tasks: -each}, 0, 0)
        if role.topology.same_model:
            for d in usable:
                chosen = program.variable("model", role.role, d.model, most=1)
                program.row({program.variable("z", role.role, node.name, d.index): 1.0, chosen: -_MUCH}, high=0)
    if role.topology.same_model and ask.count:
        models = {d.model for node in world.nodes for d in node.devices}
        program.row({program.variable("model", role.role, each, most=1): 1.0 for each in models}, high=1)
    program.row({program.variable("x", role.role, node.name): 1.0 for node in world.nodes}, role.minimum, role.minimum)
    _inside_one(program, world, [role.role], role.topology.required, f"role {role.role}")
    if role.topology.spread_level and role.topology.max_skew:
        _evenly(program, world, request, role)


def _devices(program: Program, world: World, node: Node, roles: list[RoleRequest]) -> None:
    """No device has two owners, or more than the whole of it allocated."""
    for device in node.devices:
        before = used_parts(world, node, device)
        named = [(role, ("z", role.role, node.name, device.index)) for role in roles]
        asking = [(role, name) for role, name in named if program.has(name)]
        wholes = {program.variable(*name): 1.0 for role, name in asking if not role.devices.share}
        parts = [(role, program.variable(*name)) for role, name in asking if role.devices.share]
        owner = program.variable("whole", node.name, device.index, most=0 if before != (0, 0) else 1)
        cut = program.variable("cut", node.name, device.index, most=0 if before is None else 1)
        program.row(wholes | {owner: -1.0}, high=0)
        program.row({owner: 1.0, cut: 1.0}, high=1)
        for at in (0, 1):
            terms = {variable: float((part(role, device) or (0, 0))[at]) for role, variable in parts}
            room = 0 if before is None else WHOLE - before[at]
            program.row(terms | {cut: -float(room)}, high=0)
    for device in node.devices:
        if device.parent >= 0:
            names = [(kind, node.name, index) for kind in ("whole", "cut") for index in (device.index, device.parent)]
            for one in names[::2]:
                for two in names[1::2]:
                    program.row({program.variable(*one): 1.0, program.variable(*two): 1.0}, high=1)


def _inside_one(program: Program, world: World, roles: list[str], level: str, who: str) -> None:
    """All tasks of these roles are in one cell of the level."""
    cells = sorted({cell(node, level) for node in world.nodes})
    chosen = {each: program.variable("cell", who, each, most=1) for each in cells}
    program.row(dict.fromkeys(chosen.values(), 1.0), 1, 1)
    for node in world.nodes:
        for role in roles:
            program.row({program.variable("x", role, node.name): 1.0, chosen[cell(node, level)]: -float(_MUCH)}, high=0)


def _evenly(program: Program, world: World, request: GangRequest, role: RoleRequest) -> None:
    """No eligible cell inside the chosen scope exceeds another by more than the allowed skew."""
    level, skew = role.topology.spread_level, role.topology.max_skew
    order = ("", "engine", "rack", "node")
    scope = max((request.topology.required, role.topology.required), key=order.index)
    if order.index(scope) >= order.index(level):
        return
    for inside in {cell(node, scope) for node in world.nodes}:
        among = [node for node in world.nodes if cell(node, scope) == inside]
        cells = sorted(eligible(world, request, role, among))
        who = "job" if scope == request.topology.required else f"role {role.role}"
        here = program.variable("cell", who, inside, most=1)
        for one in cells:
            for two in cells:
                if one == two:
                    continue
                terms: dict[int, float] = {here: float(_MUCH)}
                for node in among:
                    sign = (cell(node, level) == one) - (cell(node, level) == two)
                    if sign:
                        terms[program.variable("x", role.role, node.name)] = float(sign)
                program.row(terms, high=skew + _MUCH)
