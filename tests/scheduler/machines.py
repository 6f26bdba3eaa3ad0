"""Builders of machines and gangs, and checks that every placement must pass."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from hypothesis import strategies as st

from corral.kernel.ids import JobId
from corral.model.inventory import Device, Inventory, Node
from corral.model.placement import Placement, TaskPlacement
from corral.model.requests import DeviceRequest, GangRequest, RoleRequest, TopologyRequest
from corral.scheduler import Cluster, GangPlaced, NodesSeen, Queue
from corral.scheduler.cluster.device_count import WHOLE_DEVICE
from corral.scheduler.cluster.device_layout import indexes
from corral.scheduler.events import GangQueued
from corral.scheduler.placement.trial import Trial

LEVELS = ("block", "rack", "node", "numa", "pcie-switch", "device")


def node(
    name: str,
    devices: int = 4,
    *,
    rack: str = "r1",
    block: str = "b1",
    per_switch: int = 2,
    switches_per_numa: int = 1,
    **fields: object,
) -> Node:
    """A node of the engine `local` whose devices sit in equal PCIe switches and NUMA nodes."""
    made = tuple(
        Device(
            index,
            f"{name}:{index}",
            cells=(
                ("numa", str(index // (per_switch * switches_per_numa))),
                ("pcie-switch", str(index // per_switch)),
            ),
        )
        for index in range(devices)
    )
    defaults: dict[str, object] = {"cpu_millis": 64_000, "memory_bytes": 2**40, "shm_bytes": 2**40}
    return Node(f"local/{name}", (("block", block), ("rack", rack)), made, **(defaults | fields))  # type: ignore[arg-type]


def inventory(*nodes: Node, engine: str = "local", levels: tuple[str, ...] = LEVELS) -> Inventory:
    """The inventory of one engine."""
    return Inventory(engine, nodes, levels)


def cluster(*nodes: Node) -> Cluster:
    """A cluster of one engine."""
    made = Cluster()
    made.apply(NodesSeen(inventory(*nodes)))
    return made


def role(
    count: int = 1,
    devices: int = 1,
    *,
    name: str = "worker",
    minimum: int | None = None,
    topology: TopologyRequest | None = None,
    ask: DeviceRequest | None = None,
    **fields: object,
) -> RoleRequest:
    """A role of `count` tasks with `devices` each."""
    return RoleRequest(
        name,
        tuple(range(count)),
        count if minimum is None else minimum,
        devices=ask or DeviceRequest(devices),
        topology=topology or TopologyRequest(),
        **fields,  # type: ignore[arg-type]
    )


def gang(
    job: str,
    *roles: RoleRequest,
    at: float = 0.0,
    priority: int = 10,
    required: str = "",
    preferred: str = "",
    queue: str = "default",
    user: str = "ada",
    **fields: object,
) -> GangRequest:
    """A gang submitted at time `at`."""
    return GangRequest(
        JobId(job), 0, user, queue, priority, at, roles or (role(),), TopologyRequest(required, preferred), **fields  # type: ignore[arg-type]
    )  # fmt: skip


def queue(*requests: GangRequest) -> Queue:
    """A queue with these gangs waiting."""
    made = Queue()
    for request in requests:
        made.apply(GangQueued(request))
    return made


def occupy(target: Cluster, name: str, *devices: int, job: str = "", ends_at: float = float("inf")) -> None:
    """Occupy these devices of a node."""
    tasks = tuple(TaskPlacement("other", index, f"local/{name}", (index,)) for index in devices)
    holder = JobId(job or f"other-{name}-{'-'.join(map(str, devices))}")
    target.apply(GangPlaced(unknown(holder), Placement(tasks), ends_at=ends_at))


def unknown(job: str) -> GangRequest:
    """A request of which only the job is known."""
    return GangRequest(JobId(job), 0, "", "default", 0, 0.0, ())


def place(target: Cluster, request: GangRequest) -> Placement | None:
    """The placement that the gang would get; the cluster stays unchanged."""
    with Trial(target).tentative():
        return Trial(target).place(request)


def cell_of(owner: Node, device: int | None, level: str) -> tuple[str, ...]:
    """The cell at a level around a device, or around the node without one."""
    if level in ("", "engine"):
        return ("local",)
    above = dict(owner.cells)
    if level in above:
        return (above[level],)
    if level == "node" or device is None:
        return (owner.name,)
    if level == "device":
        return (owner.name, str(device))
    return (owner.name, dict(owner.devices[device].cells)[level])


def cells_used(target: Cluster, tasks: Iterable[TaskPlacement], level: str) -> set[tuple[str, ...]]:
    """All cells of a level that the tasks touch."""
    nodes = {each.name: each for each in target.nodes()}
    return {cell_of(nodes[task.node], device, level) for task in tasks for device in (task.devices or (None,))}


def parts_held(target: Cluster) -> dict[tuple[str, int], tuple[int, int]]:
    """By node and device, the allocated part of its computing power and of its memory."""
    given: dict[tuple[str, int], tuple[int, int]] = {}
    for job in target.gangs.by_job:
        for hold in target.holds(job).values():
            parts = {part.device: (part.compute, part.memory) for part in (hold.extra.shares if hold.extra else ())}
            for device in indexes(hold.devices):
                compute, memory = given.get((hold.node, device), (0, 0))
                more = parts.get(device, (WHOLE_DEVICE, WHOLE_DEVICE))
                given[hold.node, device] = (compute + more[0], memory + more[1])
    return given


def check(target: Cluster, request: GangRequest, placement: Placement) -> None:
    """Check every rule of placements, without the scheduler's own code."""
    nodes = {each.name: each for each in target.nodes()}
    held = target.holders()
    asks = {ask.role: ask for ask in request.roles}
    given = parts_held(target)
    assert len({task.key for task in placement.tasks}) == len(placement.tasks)
    for task in placement.tasks:
        assert task.index in asks[task.role].indexes
        assert len(task.devices) == asks[task.role].devices.count
        for device in task.devices:
            assert nodes[task.node].devices[device].healthy
            assert task.share or device not in held.get(task.node, {})
            part = (task.share.compute, task.share.memory) if task.share else (WHOLE_DEVICE, WHOLE_DEVICE)
            compute, memory = (
                was + more for was, more in zip(given.get((task.node, device), (0, 0)), part, strict=True)
            )
            assert compute <= WHOLE_DEVICE and memory <= WHOLE_DEVICE
            given[task.node, device] = (compute, memory)
    for name, owner in nodes.items():
        here = [task for task in placement.tasks if task.node == name]
        assert not here or owner.ready
        assert sum(asks[task.role].cpu_millis for task in here) <= owner.cpu_millis
    for ask in request.roles:
        mine = [task for task in placement.tasks if task.role == ask.role]
        assert ask.minimum <= len(mine) <= len(ask.indexes)
        assert [task.index for task in sorted(mine, key=lambda task: task.index)] == list(ask.indexes[: len(mine)])
        assert len(cells_used(target, mine, ask.topology.required)) <= 1
        size = ask.topology.group_size
        if size:
            for number in {task.index // size for task in mine}:
                block = [task for task in mine if task.index // size == number]
                assert len(cells_used(target, block, ask.topology.group_required)) == 1
    assert len(cells_used(target, placement.tasks, request.topology.required)) <= 1


def brute_force(target: Cluster, request: GangRequest) -> bool:
    """Whether any assignment keeps the required levels of the job, the roles and their blocks, by trying all."""
    held = target.holders()
    free = {
        each.name: {d.index for d in each.devices if d.healthy} - set(held.get(each.name, {}))
        for each in target.nodes()
        if each.ready
    }
    cpu = {each.name: each.cpu_millis for each in target.nodes()}
    nodes = {each.name: each for each in target.nodes()}
    tasks = [(ask, number) for ask in request.roles for number in range(ask.minimum)]
    scopes: dict[tuple[str, str], tuple[str, ...]] = {}

    def fits(at: int) -> bool:
        if at == len(tasks):
            return True
        ask, number = tasks[at]
        size = ask.topology.group_size
        tried = set()
        for name in free:
            if cpu[name] < ask.cpu_millis:
                continue
            for chosen in combinations(sorted(free[name]), ask.devices.count):
                wanted = {("", request.topology.required), (ask.role, ask.topology.required)}
                if size:
                    wanted.add((f"{ask.role}/{number // size}", ask.topology.group_required))
                cells = {
                    key: {cell_of(nodes[name], device, key[1]) for device in (chosen or (None,))} for key in wanted
                }
                if any(len(found) > 1 or scopes.get(key, min(found)) not in found for key, found in cells.items()):
                    continue
                sign = (name, tuple(sorted(tuple(v)[0] for v in cells.values())), _kinds(nodes[name], chosen))
                if sign in tried:
                    continue
                tried.add(sign)
                fresh = [key for key in cells if key not in scopes]
                for key in fresh:
                    scopes[key] = min(cells[key])
                free[name] -= set(chosen)
                cpu[name] -= ask.cpu_millis
                if fits(at + 1):
                    return True
                free[name] |= set(chosen)
                cpu[name] += ask.cpu_millis
                for key in fresh:
                    del scopes[key]
        return False

    return fits(0)


def _kinds(owner: Node, chosen: tuple[int, ...]) -> tuple[object, ...]:
    """A key under which device sets that differ only within a switch are equal."""
    return tuple(sorted(owner.devices[device].cells for device in chosen))


@st.composite
def busy_clusters(draw: st.DrawFn, *, most_nodes: int = 5) -> Cluster:
    """Small clusters over racks and blocks, some devices taken, some sick, some nodes not ready."""
    made = []
    for at in range(draw(st.integers(1, most_nodes))):
        rack = draw(st.integers(0, 2))
        made.append(
            node(
                f"n{at}",
                draw(st.sampled_from([0, 1, 2, 4, 6])),
                rack=f"r{rack}",
                block=f"b{rack // 2}",
                switches_per_numa=draw(st.integers(1, 2)),
                cpu_millis=draw(st.sampled_from([1000, 2000, 64_000])),
                ready=draw(st.integers(0, 9)) > 0,
            )
        )
    target = cluster(*made)
    for each in made:
        for device in each.devices:
            if draw(st.integers(0, 2)) == 0:
                occupy(target, each.name.removeprefix("local/"), device.index)
    return target
