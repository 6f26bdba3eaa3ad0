"""Find guarantees of queues that a change of the configuration would break.

Two kinds count: guarantees that running jobs use now, and new ones that the nodes cannot satisfy. Everything is tried
on a fork of the live cluster, which is left unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import inf

from corral.model.configuration import Configuration
from corral.model.document_revisions import GuaranteeFinding
from corral.model.inventory import Inventory
from corral.scheduler import Cluster, NodesSeen, QueuesConfigured
from corral.scheduler.preemption.over_quota import bound_of, fragmenting, over_limit
from corral.scheduler.queues.queue_tree import counted, shown
from corral.spec.queue_amounts import spoken_amount


def broken_guarantees(
    cluster: Cluster, before: Configuration, after: Configuration, now: float, machines: Sequence[Inventory] = ()
) -> list[GuaranteeFinding]:
    """The guarantees that a change would break, each with the needed and the available amount.

    `machines` are the inventories of those engines that would present other nodes than now.
    """
    twin = cluster.fork()
    for inventory in machines:
        twin.apply(NodesSeen(inventory))
    twin.apply(QueuesConfigured(after.queue_specs()))
    return [
        *_missing_amounts(cluster, twin),
        *_missing_cells(twin),
        *_short_cells(cluster, twin, now),
        *_lost_cells(cluster, twin),
        *_lost_amounts(cluster, twin, before, after, now),
    ]


def _missing_amounts(cluster: Cluster, twin: Cluster) -> Iterator[GuaranteeFinding]:
    """Resources whose total over the top queues grows and exceeds what the nodes have."""
    earlier, later = _deserved(cluster), _deserved(twin)
    there = dict(zip(twin.queues.names, twin.queues.total, strict=True))
    for resource, amount in later.items():
        if amount > there[resource] and amount > earlier.get(resource, 0):
            needs, has = spoken_amount(resource, amount), spoken_amount(resource, there[resource])
            message = f"queues are promised {needs} of {resource} together, and the machines have {has}"
            yield GuaranteeFinding(
                message, level=resource, needed=shown(resource, amount), available=shown(resource, there[resource])
            )


def _deserved(cluster: Cluster) -> dict[str, int]:
    """The total that the queues without a parent deserve, by resource name."""
    tree = cluster.queues
    tops = [tree.find(name).deserved for name, spec in tree.specs.items() if not spec.parent]
    return {name: sum(amounts[at] for amounts in tops) for at, name in enumerate(tree.names)}


def _missing_cells(twin: Cluster) -> Iterator[GuaranteeFinding]:
    """Queues that own cells of a kind that no known node has."""
    for name, spec in sorted(twin.queues.specs.items()):
        wanted = sum(quota.count for quota in spec.cells) + len(spec.pinned_cells)
        found = sum(sum(cells.quotas.get(name, {}).values()) for cells in twin.ownership.cells.values())
        if found < wanted:
            message = f"the queue {name} owns {wanted} cells, and the machines have such cells only for {found} of them"
            yield GuaranteeFinding(message, name, needed=wanted, available=found)


def _short_cells(cluster: Cluster, twin: Cluster, now: float) -> Iterator[GuaranteeFinding]:
    """Levels at which queues are owed more cells than exist, or more than running jobs leave whole."""
    known = {(each.engine, each.level): each.owed - each.left for each in cluster.ownership.shortfalls()}
    never = {(each.engine, each.level) for each in twin.emptied(healed=True).ownership.shortfalls()}
    yielding = len(fragmenting(twin, now))
    for each in twin.ownership.shortfalls():
        place = (each.engine, each.level)
        if each.owed - each.left <= known.get(place, 0):
            continue
        message = f"queues are still owed {each.owed} cells ({each.level}) on {each.engine}, and {each.left} can be had"
        if place in never or not yielding:
            yield GuaranteeFinding(message, level=each.level, needed=each.owed, available=each.left)
        else:
            cost = f"{message}: {yielding} job{'' if yielding == 1 else 's'} would yield"
            yield GuaranteeFinding(cost, level=each.level, needed=each.owed, available=each.left, preemptible=True)


def _lost_cells(cluster: Cluster, twin: Cluster) -> Iterator[GuaranteeFinding]:
    """Queues whose jobs would become guests in cells that the queue owns now."""
    earlier, later = _bound(cluster), _bound(twin)
    for (queue, level), held in sorted(earlier.items()):
        kept = later[queue, level]
        if kept < held:
            message = (
                f"jobs of the queue {queue} are in {held} cells ({level}) that it owns, of which {kept} would stay its "
                "own: in the others they would run on as guests"
            )
            yield GuaranteeFinding(message, queue, level, needed=held, available=kept, preemptible=True)


def _bound(cluster: Cluster) -> Counter[tuple[str, str]]:
    """The number of cells in use under ownership, by owner and level."""
    return Counter(
        (bound.owner, cells.index.tree.levels[cell.depth])
        for cells in cluster.ownership.cells.values()
        for cell, bound in cells.bound.items()
    )


def _lost_amounts(
    cluster: Cluster, twin: Cluster, before: Configuration, after: Configuration, now: float
) -> Iterator[GuaranteeFinding]:
    """Queues whose jobs hold more than the queue would deserve, or more than its new limit."""
    old = {spec.name: spec for spec in before.queue_specs()}
    yielding = Counter(each.by_queue for each in over_limit(twin, now))
    for spec in after.queue_specs():
        was = old.get(spec.name)
        held = _held(cluster, spec.name) | _held(twin, spec.name)
        for resource, amount in sorted(held.items()):
            by_right = min(amount, counted(resource, was.deserved.get(resource, 0))) if was else 0
            owed = counted(resource, spec.deserved.get(resource, 0))
            if by_right > owed:
                yield _finding(spec.name, resource, by_right, owed, "what it deserves", "they may be reclaimed")
        earlier = _bounds(cluster, spec.name)
        for resource, bound in _bounds(twin, spec.name).items():
            if held[resource] > bound < earlier.get(resource, inf):
                jobs = yielding[spec.name]
                cost = f"{jobs} job{'' if jobs == 1 else 's'} would yield" if jobs else "no job of it can yield"
                yield _finding(spec.name, resource, held[resource], int(bound), "its limit", cost)


def _bounds(cluster: Cluster, queue: str) -> dict[str, float]:
    """The upper bound of a queue's usage, by resource name."""
    node = cluster.queues.nodes.get(queue)
    return dict(zip(cluster.queues.names, bound_of(node), strict=True)) if node else {}


def _held(cluster: Cluster, queue: str) -> dict[str, int]:
    """The usage of a queue and its descendants, by resource name."""
    tree = cluster.queues
    node = tree.nodes.get(queue)
    return dict(zip(tree.names, node.used, strict=True)) if node else {}


def _finding(queue: str, resource: str, needed: int, available: int, right: str, cost: str) -> GuaranteeFinding:
    needs, has = spoken_amount(resource, needed), spoken_amount(resource, available)
    message = f"jobs of the queue {queue} hold {needs} {resource}, and {right} would be {has}: {cost}"
    return GuaranteeFinding(
        message,
        queue,
        resource,
        needed=shown(resource, needed),
        available=shown(resource, available),
        preemptible=True,
    )
