"""Check that queues' quotas add up, among themselves and against the cluster, before they are applied.

Every function is pure and returns (path, message) pairs; paths begin with a queue's name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from corral.kernel import units
from corral.spec import queue_amounts
from corral.spec.errors import Path, did_you_mean
from corral.spec.expanded_machines import DeviceDescription, NodeDescription
from corral.spec.queue import QueueDocument, QueueShape

if TYPE_CHECKING:
    from corral.spec.cluster import ClusterDocument

Shape = TypeVar("Shape", bound=QueueShape)
_Kind = tuple[str, str]
"""The model and the chain of a device."""


def in_order(queues: Mapping[str, Shape]) -> dict[str, Shape]:
    """The queues with parents before children; all parents must exist and form no cycle."""
    ordered: dict[str, Shape] = {}
    for name in queues:
        chain = [name]
        while (parent := queues[chain[-1]].parent) and parent not in ordered:
            chain.append(parent)
        for each in reversed(chain):
            ordered.setdefault(each, queues[each])
    return ordered


def queue_findings(queues: Mapping[str, QueueShape]) -> list[tuple[Path, str]]:
    """Errors among all queues of a cluster: unknown parents, sums of children, pinned cells."""
    found = [(("queues", name, *path), said) for name, shape in queues.items() for path, said in shape.own_findings()]
    rooted: set[str] = set()
    for name, shape in queues.items():
        path: Path = ("queues", name, "parent")
        if shape.parent and shape.parent not in queues:
            others = queues.keys() - {name}
            found.append((path, f'no queue is called "{shape.parent}"{did_you_mean(shape.parent, others)}'))
        chain = _ancestry(queues, name, rooted)
        if chain is None:
            found.append((path, "a queue cannot be part of itself"))
        else:
            rooted |= chain
    return found or [*_sums(queues), *_pins(queues)]


def quota_findings(cluster: ClusterDocument | None, queues: Iterable[QueueDocument]) -> list[tuple[Path, str]]:
    """All errors of these queues together, and against the cluster when one is given."""
    named = {queue.name: queue for queue in queues}
    found = queue_findings(named)
    if not found and cluster is not None:
        found = [*_above(cluster, named), *_cells_above(cluster, named)]
    return found


def _ancestry(queues: Mapping[str, QueueShape], name: str, rooted: set[str]) -> set[str] | None:
    """The queue and its ancestors up to the first in `rooted`; None when they form a cycle."""
    seen: set[str] = set()
    here = name
    while here and here in queues and here not in rooted:
        if here in seen:
            return None
        seen.add(here)
        here = queues[here].parent
    return seen


def _promised(
    queues: Mapping[str, QueueShape], promise: str
) -> tuple[dict[str, Counter[str]], dict[str, Counter[str]]]:
    """The promise of each queue (its own amount, else the sum of its children's), and the sums of children."""
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    promised: dict[str, Counter[str]] = {}
    for name, shape in reversed(in_order(queues).items()):
        promised[name] = Counter(sums[name] | Counter())
        promised[name].update({key: value - promised[name][key] for key, value in _own(shape, promise).items()})
        sums[shape.parent].update(promised[name])
    return promised, sums


def _own(shape: QueueShape, field: str) -> dict[str, int]:
    """An amount of a queue; guaranteed resources count as deserved too."""
    own = queue_amounts.count(getattr(shape, field))
    return queue_amounts.count(shape.guaranteed) | own if field == "deserved" else own


def _sums(queues: Mapping[str, QueueShape]) -> Iterator[tuple[Path, str]]:
    """Queues whose children are promised more together than the queue is, or than its limit."""
    for promise in ("guaranteed", "deserved"):
        _, sums = _promised(queues, promise)
        for name, shape in queues.items():
            own, limit = _own(shape, promise), _own(shape, "limit")
            for resource, asked in sums[name].items():
                field = promise if resource in own else "limit"
                bound = own.get(resource, limit.get(resource))
                if bound is not None and asked > bound:
                    has = queue_amounts.spoken_amount(resource, bound)
                    yield (
                        ("queues", name, field, resource),
                        f"its children are promised {queue_amounts.spoken_amount(resource, asked)} together ({promise}), "
                        f"more than these {has}",
                    )


def _pins(queues: Mapping[str, QueueShape]) -> Iterator[tuple[Path, str]]:
    owner: dict[str, str] = {}
    for name, shape in queues.items():
        for at, cell in enumerate(shape.pinned_cells):
            if cell in owner:
                yield ("queues", name, "pinnedCells", at), f'"{cell}" already belongs to the queue {owner[cell]}'
            owner.setdefault(cell, name)


def _above(cluster: ClusterDocument, queues: Mapping[str, QueueDocument]) -> Iterator[tuple[Path, str]]:
    """Top-level queues that are promised more together than the cluster has.

    A resource without an amount in the cluster document is not checked.
    """
    has = capacity(cluster)
    for promise in ("guaranteed", "deserved"):
        promised, _ = _promised(queues, promise)
        total: Counter[str] = Counter()
        for name in queues:
            if queues[name].parent:
                continue
            for resource, amount in promised[name].items():
                total[resource] += amount
                most = has.get(resource, 0 if has and resource.startswith("devices") else None)
                if most is not None and total[resource] > most >= total[resource] - amount:
                    asked, there = (queue_amounts.spoken_amount(resource, each) for each in (total[resource], most))
                    yield (
                        ("queues", name, promise, resource),
                        f"with it queues are promised {asked} of {resource} ({promise}), and the cluster has {there}",
                    )


def capacity(cluster: ClusterDocument) -> dict[str, int]:
    """The total of all nodes by resource name, in counted units; {} for a document without nodes."""
    nodes = cluster.nodes
    total: Counter[str] = Counter()
    for devices, count in _alike(nodes):
        for device in devices:
            total["devices"] += count * units.DEVICE if device.parent < 0 else 0
            total[f"devices/{device.model}"] += count * units.DEVICE
    for resource, each_has in (("cpu", [n.cpu_millis for n in nodes]), ("memory", [n.memory_bytes for n in nodes])):
        if all(each_has):
            total[resource] = sum(each_has)
    return dict(total) if nodes else {}


def census(cluster: ClusterDocument) -> dict[tuple[str, str], int]:
    """The number of cells by (level or type, model).

    A cell has a model when all its devices have it; model "" counts every cell. CHAIN.TYPE counts a type within one
    chain.
    """
    types: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, rule in cluster.machines.types.items():
        types[rule.level, rule.model].append(name)
    counts: Counter[tuple[str, str]] = Counter()

    def add(level: str, kinds: set[_Kind], number: int) -> None:
        counts[level, ""] += number
        models = {model for model, _ in kinds}
        if len(models) != 1:
            return
        model = next(iter(models))
        counts[level, model] += number
        for name in types.get((level, model), ()):
            for what in {name, *(f"{chain}.{name}" for _, chain in kinds)} - {level}:
                counts[what, ""] += number
                counts[what, model] += number

    above: dict[tuple[str, str], set[_Kind]] = defaultdict(set)
    kinds_of = {id(devices): {(each.model, each.chain) for each in devices} for devices, _ in _alike(cluster.nodes)}
    for node in cluster.nodes:
        kinds = kinds_of[id(node.devices)]
        for cell in node.cells:
            above[cell] |= kinds
    for devices, number in _alike(cluster.nodes):
        inside: dict[tuple[str, str], set[_Kind]] = defaultdict(set)
        for device in devices:
            for cell in (("node", ""), *device.cells, ("device", str(device.index))):
                inside[cell].add((device.model, device.chain))
        for (level, _), kinds in inside.items():
            add(level, kinds, number)
    for (level, _), kinds in above.items():
        add(level, kinds, 1)
    return dict(counts)


def _alike(nodes: Sequence[NodeDescription]) -> list[tuple[tuple[DeviceDescription, ...], int]]:
    """The distinct tuples of devices, each with the number of nodes that share it."""
    counts = Counter(id(node.devices) for node in nodes)
    return [(devices, counts[key]) for key, devices in {id(node.devices): node.devices for node in nodes}.items()]


def _cells_above(cluster: ClusterDocument, queues: Mapping[str, QueueDocument]) -> Iterator[tuple[Path, str]]:
    """Queues that own more cells of one kind together than the cluster has.

    Whether cells owned at several levels fit together is checked by the scheduler.
    """
    if not cluster.nodes:
        return
    there = census(cluster)
    pins = cluster.machines.pinned
    owned: Counter[tuple[str, str]] = Counter()
    for name, queue in queues.items():
        for at, cells in enumerate(queue.cells):
            what = ".".join(filter(None, chain_and_type(cells.what)))
            key = (what, cells.model)
            path: Path = ("queues", name, "cells", at)
            most = there.get(key, 0)
            owned[key] += cells.count
            what = f"{what} of {cells.model}" if cells.model else what
            if not most:
                yield path, f"the cluster has no {what}{did_you_mean(cells.what, {known for known, _ in there})}"
            elif owned[key] > most >= owned[key] - cells.count:
                yield path, f"with it queues own {owned[key]} cells ({what}), and the cluster has {most}"
        for at, pin in enumerate(queue.pinned_cells):
            if pin not in pins:
                yield ("queues", name, "pinnedCells", at), f'no cell is pinned as "{pin}"{did_you_mean(pin, pins)}'


def chain_and_type(written: str) -> tuple[str, str]:
    """Split the type of quota cells into chain ("" for any) and type or level.

    HiveD writes every type between the two; only the first and the last matter.
    """
    first, dot, rest = written.partition(".")
    return (first, rest.rpartition(".")[2]) if dot else ("", first)
