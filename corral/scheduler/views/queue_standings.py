"""Show the shares, usage, lending and borrowing of every queue."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf

from corral.kernel.units import DEVICE, devices
from corral.model.queue_views import Amounts, CellShare, QueueStanding
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.running_gang import RunningGang
from corral.scheduler.queues.fair_share import Fairness
from corral.scheduler.queues.gang_resources import asked
from corral.scheduler.queues.lending import lending
from corral.scheduler.queues.queue_tree import QueueNode, QueueTree, shown
from corral.scheduler.queues.waiting_queue import Queue
from corral.scheduler.views.cell_owners import OwnersOf, quota_owners


def queue_standings(
    cluster: Cluster, queue: Queue, now: float, owners_of: OwnersOf | None = None
) -> list[QueueStanding]:
    """Return the standing of every queue in tree order: parents before children, siblings by name.

    `owners_of` is the planner's; without it, cells are owned by the quotas of queues.
    """
    return _Standings(cluster, queue, owners_of or partial(quota_owners, cluster)).all()


class _Tally:
    """The counts of one queue itself, without the queues below it."""

    __slots__ = ("guests", "running", "waiting", "wanted")

    def __init__(self, size: int) -> None:
        self.running = self.guests = self.waiting = 0
        self.wanted = [0] * size

    def add(self, other: _Tally) -> None:
        self.running += other.running
        self.guests += other.guests
        self.waiting += other.waiting
        self.wanted = [a + b for a, b in zip(self.wanted, other.wanted, strict=True)]


class _Standings:
    def __init__(self, cluster: Cluster, queue: Queue, owners_of: OwnersOf) -> None:
        self.cluster = cluster
        self.tree: QueueTree = cluster.queues
        for name in {*cluster.gangs.by_queue, *(group.queue for group in queue.groups.values())}:
            self.tree.find(name)
        hungry = frozenset(group.queue for group in queue.groups.values())
        fairness = Fairness(cluster, hungry)
        parents = [self.tree.root, *(node for node in self.tree.nodes.values() if node.children)]
        self.fair = {name: part for parent in parents for name, part in fairness.parts(parent).items()}
        every = ((engine, owners_of(engine)) for engine in cluster.engines)
        self.owners = {engine: found for engine, found in every if found is not None}
        self.cells: dict[str, list[CellShare]] = {}
        for owner, share in (each for found in self.owners.values() for each in found.shares()):
            self.cells.setdefault(owner, []).append(share)
        self.owned = {
            name: sum(round(each.owned * each.devices * DEVICE) for each in shares)
            for name, shares in self.cells.items()
        }
        """For each queue, the devices of its owned cells, in thousandths."""
        self.lending = lending(self.tree, self.owned)
        deserved = (node.deserved for node in self.tree.nodes.values())
        self.deserved = [any(amounts) for amounts in zip(*deserved, strict=True)] or [False] * len(self.tree.names)
        self.deserved[0] |= bool(self.owned)
        """For each resource, whether any queue deserves some of it; otherwise no queue borrows it."""
        self.tallies = {name: _Tally(len(self.tree.names)) for name in self.tree.nodes}
        self._count_running()
        self._count_waiting(queue)

    def _count_running(self) -> None:
        for name, levels in self.cluster.gangs.by_queue.items():
            tally, owns = self.tallies[name], any(node.name in self.cells for node in self.tree.find(name).chain())
            for gang in (gang for members in levels.values() for gang in members.values()):
                tally.running += 1
                tally.guests += owns and self._is_guest(gang)

    def _is_guest(self, gang: RunningGang) -> bool:
        """Return whether some task of it holds devices outside its queue's cells, on an engine with owners."""
        for task, hold in self.cluster.holds(gang.job).items():
            owners = self.owners.get(hold.node.partition("/")[0])
            if hold.devices and owners is not None and not owners.guaranteed(gang, task, hold):
                return True
        return False

    def _count_waiting(self, queue: Queue) -> None:
        jobs: dict[str, set[str]] = {}
        for group in queue.groups.values():
            if group.starts:
                tally, count = self.tallies[group.queue], len(group.keys)
                jobs.setdefault(group.queue, set()).update(each.request.job for each in group.entries.values())
                each = asked(group.entries[group.keys[0]].request, self.tree)
                tally.wanted = [was + count * amount for was, amount in zip(tally.wanted, each, strict=True)]
        for name, waiting in jobs.items():
            self.tallies[name].waiting = len(waiting)

    def all(self) -> list[QueueStanding]:
        out: list[QueueStanding] = []
        for child in _by_name(self.tree.root):
            self._walk(child, 0, out)
        return out

    def _walk(self, node: QueueNode, depth: int, out: list[QueueStanding]) -> _Tally:
        at = len(out)
        out.append(QueueStanding(node.name))
        tally = self.tallies[node.name]
        for child in _by_name(node):
            tally.add(self._walk(child, depth + 1, out))
        out[at] = self._standing(node, depth, tally)
        return tally

    def _standing(self, node: QueueNode, depth: int, tally: _Tally) -> QueueStanding:
        spec, name = node.spec, node.name
        lent_to = {other: n for (lender, other), n in self.lending.items() if lender == name}
        borrowed_from = {lender: n for (lender, other), n in self.lending.items() if other == name}
        return QueueStanding(
            name=name,
            parent=spec.parent,
            depth=depth,
            weight=spec.weight,
            guaranteed=dict(spec.guaranteed),
            deserved=self._named(node.deserved),
            limit=dict(spec.limit),
            borrowing_limit=dict(spec.borrowing_limit),
            used=self._named(node.used),
            fair=self._named(self.fair[name]),
            borrowed=self._borrowed(node),
            lent={"devices": devices(sum(lent_to.values()))} if lent_to else {},
            lent_to={other: devices(n) for other, n in lent_to.items()},
            borrowed_from={lender: devices(n) for lender, n in borrowed_from.items()},
            cells=tuple(self.cells.get(name, ())),
            pinned=spec.pinned_cells,
            owned_devices=devices(self.owned.get(name, 0)),
            running=tally.running,
            guests=tally.guests,
            waiting=tally.waiting,
            wanted=self._named(tally.wanted),
        )

    def _borrowed(self, node: QueueNode) -> Amounts:
        """Return its usage beyond its deserved and owned amounts, for resources that some queue deserves."""
        own = [node.deserved[0] + self.owned.get(node.name, 0), *node.deserved[1:]]
        amounts = zip(node.used, own, self.deserved, strict=True)
        return self._named([max(0, used - mine) if counts else 0 for used, mine, counts in amounts])

    def _named(self, vector: Sequence[float]) -> Amounts:
        pairs = zip(self.tree.names, vector, strict=True)
        return {name: shown(name, amount) for name, amount in pairs if amount and amount < inf}


def _by_name(node: QueueNode) -> list[QueueNode]:
    return sorted(node.children, key=lambda child: child.name)
