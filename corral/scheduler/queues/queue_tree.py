"""The tree of queues: their deserved amounts, usage, limits, and the rules that depend on them.

Amounts are vectors: devices (thousandths), processors (thousandths), memory (bytes), then the device models that some
queue names (thousandths). Shares follow dominant-resource fairness (Ghodsi et al., NSDI 2011) over a hierarchy. The
deserved amount comes first, and the rest is divided by weight and demand (water-filling, as in KAI and Volcano).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import exp, inf, log
from operator import add
from typing import TYPE_CHECKING

from corral.kernel.units import DEVICE, devices, format_devices
from corral.model.queues import Amounts, QueueSpec, QueueUsage
from corral.scheduler.queues.user_usage import HALF_LIFE, Users

if TYPE_CHECKING:
    from corral.scheduler.cluster.topology_tree import Tree

BASE = ("devices", "cpu", "memory")
"""The resources at the start of every vector."""
ROOT = ""

Vector = list[int]
Refusal = tuple[str, str, dict[str, int | float]]
"""A stable code, a sentence, and its figures."""


class QueueNode:
    """One queue of the tree; `used` includes the gangs of the queues below it."""

    __slots__ = (
        "borrowing", "children", "deserved", "group_limit", "kept", "limit", "line", "name", "parent", "past", "seen",
        "spec", "used", "user_limit",
    )  # fmt: skip

    def __init__(self, spec: QueueSpec, parent: QueueNode | None, names: Sequence[str]) -> None:
        self.spec = spec
        self.name = spec.name
        self.parent = parent
        self.line: tuple[QueueNode, ...] = (self, *(parent.line if parent is not None else ()))
        """This queue and its ancestors, the root last."""
        self.children: list[QueueNode] = []
        self.limit = _bound(spec.limit, names)
        guaranteed = [counted(name, spec.guaranteed.get(name, 0)) for name in names]
        deserved = [counted(name, spec.deserved.get(name, 0)) for name in names]
        self.deserved = [max(amounts) for amounts in zip(deserved, guaranteed, strict=True)]
        self.borrowing = [
            deserved + bound for deserved, bound in zip(self.deserved, _bound(spec.borrowing_limit, names), strict=True)
        ]
        lending = _bound(spec.lending_limit, names)
        self.kept = [
            max(own, int(most - lend) if lend < inf else 0)
            for own, most, lend in zip(guaranteed, self.deserved, lending, strict=True)
        ]
        """The amounts that others may never use, even while they are idle."""
        self.user_limit = _bound(spec.user_limit, names)
        self.group_limit = _bound(spec.group_limit, names)
        self.used: Vector = [0] * len(names)
        self.past: list[float] = [0.0] * len(names)
        """The decaying average of `used` until `seen`."""
        self.seen = 0.0

    def chain(self) -> tuple[QueueNode, ...]:
        """Return this queue and its ancestors, without the root."""
        return self.line[:-1]


class QueueTree:
    """All queues with their usage and shares. Cluster events change it; trials charge it and undo the charges."""

    def __init__(self, specs: Iterable[QueueSpec] = ()) -> None:
        self.specs = {spec.name: spec for spec in specs}
        self.names = (*BASE, *sorted(_models(self.specs.values())))
        self.models = self.names[len(BASE) :]
        self.total: Vector = [0] * len(self.names)
        """The capacity of all machines."""
        self.trees: tuple[Tree, ...] = ()
        """The machines, which determine how much each device counts."""
        self.has_slices = False
        """Whether some device can be given in slices."""
        self.root = QueueNode(QueueSpec(ROOT), None, self.names)
        self.nodes: dict[str, QueueNode] = {}
        for spec in self.specs.values():
            self._add(spec.name)
        self.decaying = [node for _, node in sorted(self.nodes.items()) if node.spec.half_life_seconds]
        """The queues with a half-life, sorted by name."""
        self.people: dict[tuple[str, str, str], Vector] = {}
        """The amounts held by (queue, `user` or `group`, name); only for queues with such limits."""
        self.limited = limiting(self.specs.values())
        self.users = Users(self.names)
        """The current and past usage of each user of a queue."""
        self.keeping = any(any(node.kept) for node in self.nodes.values())
        self.deserving = any(node.deserved[0] for node in self.nodes.values())
        """Whether any queue deserves devices; one that is not configured deserves nothing."""
        self.plain = all(_is_plain(spec) for spec in self.specs.values())
        """Whether no queue has a bound that could keep a gang from starting."""

    def _add(self, name: str) -> QueueNode:
        found = self.nodes.get(name)
        if found is None:
            spec = self.specs.get(name) or QueueSpec(name)
            parent = self._add(spec.parent) if spec.parent else self.root
            found = self.nodes[name] = QueueNode(spec, parent, self.names)
            parent.children.append(found)
        return found

    def find(self, name: str) -> QueueNode:
        """Return the queue of this name; an unconfigured one owns nothing and has no limits."""
        return self.nodes.get(name) or self._add(name)

    def charge(self, queue: str, user: str, groups: Sequence[str], amounts: Sequence[int], sign: int = 1) -> None:
        """Add a gang's amounts (with `sign` -1: subtract) for its queue, the ancestors, its user and its groups."""
        if sign < 0:
            amounts = [-amount for amount in amounts]
        for node in self.find(queue).line:
            node.used[:] = map(add, node.used, amounts)
        if user:
            self.users.charge(queue, user, amounts)
        if self.limited:
            for key in self._persons(queue, user, groups):
                held = self.people.setdefault(key, [0] * len(self.names))
                held[:] = map(add, held, amounts)
                if not any(held):
                    del self.people[key]

    def _persons(self, queue: str, user: str, groups: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        for node in self.find(queue).chain():
            if node.name in self.limited:
                yield (node.name, "user", user)
                yield from ((node.name, "group", group) for group in groups)

    def remember(self, queue: str, user: str, now: float) -> None:
        """Update the decaying averages of a queue, its ancestors and its user to `now`, before their usage changes."""
        if user:
            self.users.remember(queue, user, self.half_life(queue), now)
        for node in self.find(queue).chain():
            if node.spec.half_life_seconds and now > node.seen:
                node.past, node.seen = self.average(node, now), now

    def half_life(self, queue: str) -> float:
        """Return the half-life, in seconds, of the usage of a queue's users; also for a queue that no longer exists."""
        node = self.nodes.get(queue)
        return (node.spec.half_life_seconds if node is not None else 0.0) or HALF_LIFE

    def user_standing(self, queue: str, user: str, now: float) -> float:
        """Return the sort key of a queue's users: the lowest current and past share of the capacity comes first."""
        return self.users.standing(queue, user, self.half_life(queue), self.total, now)

    def user_standings(self, holders: Iterable[tuple[str, str]], now: float) -> dict[tuple[str, str], float]:
        """Return `user_standing` of users, by queue and user."""
        by_queue: dict[str, list[tuple[str, str]]] = {}
        for holder in holders:
            by_queue.setdefault(holder[0], []).append(holder)
        found: dict[tuple[str, str], float] = {}
        for queue, keys in by_queue.items():
            standings = self.users.standings(keys, self.half_life(queue), self.total, now)
            found.update(zip(keys, standings, strict=True))
        return found

    def average(self, node: QueueNode, now: float) -> list[float]:
        """Return the exponentially decaying average of a queue's usage at `now`, with its half-life."""
        keep = exp(-log(2) * max(0.0, now - node.seen) / node.spec.half_life_seconds)
        return [past * keep + used * (1 - keep) for past, used in zip(node.past, node.used, strict=True)]

    def past_use(self, node: QueueNode) -> QueueUsage:
        """Return the stored form of a queue's past usage."""
        amounts = {name: amount for name, amount in zip(self.names, node.past, strict=True) if amount}
        return QueueUsage(node.name, node.seen, amounts)

    def recall(self, usages: Iterable[QueueUsage]) -> None:
        """Restore stored past usage of the queues with a half-life; queues not named have none."""
        known = {usage.queue: usage for usage in usages}
        for node in self.decaying:
            usage = known.get(node.name) or QueueUsage(node.name, 0.0)
            node.past, node.seen = [usage.amounts.get(name, 0.0) for name in self.names], usage.at

    def following(self, before: QueueTree) -> QueueTree:
        """Return this tree with the past usage that another tree remembers."""
        self.recall(before.past_use(node) for node in before.decaying)
        self.users.recall(before.users.usages())
        self.users.changed = set(before.users.changed)
        return self

    # -- order --------------------------------------------------------------------------------------------------------

    def standing(self, node: QueueNode, now: float) -> tuple[int, float]:
        """Return the sort key of siblings: first those below their deserved amount, then by dominant share over weight.

        With a half-life, the mean of current usage and decayed past usage counts.
        """
        used: Sequence[float] = node.used
        if node.spec.half_life_seconds:
            past = self.average(node, now)
            used = [(now_held + before) / 2 for now_held, before in zip(used, past, strict=True)]
        below = [held / deserved for held, deserved in zip(used, node.deserved, strict=True) if deserved]
        if below and max(below) < 1:
            return (0, max(below) / node.spec.weight)
        over = [
            (held - deserved) / total
            for held, deserved, total in zip(used, node.deserved, self.total, strict=True)
            if total
        ]
        return (1, max(over, default=0.0) / node.spec.weight)

    # -- admission ----------------------------------------------------------------------------------------------------

    def refusal(self, queue: str, user: str, groups: Sequence[str], ask: Sequence[int]) -> Refusal | None:
        """Return the code, sentence and figures of the first bound that forbids a gang to take `ask` now, or None."""
        return next(self.refusals(queue, user, groups, ask), None)

    def refusals(self, queue: str, user: str, groups: Sequence[str], ask: Sequence[int]) -> Iterator[Refusal]:
        """Yield the bounds that forbid a gang to take `ask` now, those of its queue first."""
        leaf = self.find(queue)
        for node in leaf.chain():
            for at, amount in enumerate(ask):
                if not amount:
                    continue
                used = node.used[at]
                if used + amount > node.limit[at]:
                    yield self._over("queue-limit", f"Queue {node.name} may hold", at, node.limit[at], used, amount)
                if used + amount > node.borrowing[at]:
                    who = f"With what it may borrow, queue {node.name} may hold"
                    yield self._over("borrowing-limit", who, at, node.borrowing[at], used, amount)
        yield from self._persons_over(leaf, user, groups, ask)
        kept = self._kept_by_others(leaf, ask)
        if kept is not None:
            yield kept

    def never(self, queue: str, ask: Sequence[int], groups: Sequence[str] = ()) -> Refusal | None:
        """Return the first refusal on an idle cluster, or None; a gang refused by this can never start."""
        return next(self.nevers(queue, ask, groups), None)

    def nevers(self, queue: str, ask: Sequence[int], groups: Sequence[str] = ()) -> Iterator[Refusal]:
        """Yield the lowest bound of each queue and resource that forbids a gang to start on an idle cluster."""
        for node in self.find(queue).chain():
            for at, amount in enumerate(ask):
                bounds = [
                    ("limit", node.limit[at]),
                    ("borrowingLimit", node.borrowing[at]),
                    ("userLimit", node.user_limit[at]),
                    *([("groupLimit", node.group_limit[at])] if groups else ()),
                ]
                field, most = min(bounds, key=lambda bound: bound[1])
                if amount > most:
                    allowed, needed = self._spoken(at, most), self._spoken(at, amount)
                    sentence = (
                        f"The {field} of queue {node.name} allows {allowed}, and this job needs {needed} to start."
                    )
                    yield "queue-limit", sentence, self._figures(at, limit=most, used=0, needed=amount)

    def _over(self, code: str, who: str, at: int, most: float, used: int, amount: int) -> Refusal:
        held, asked = self._spoken(at, used), self._spoken(at, amount)
        are = "is" if used == DEVICE and is_devices(self.names[at]) else "are"
        sentence = f"{who} {self._spoken(at, most)}; {held} {are} held, and this job needs {asked}."
        return code, sentence, self._figures(at, limit=most, used=used, needed=amount)

    def _figures(self, at: int, **amounts: float) -> dict[str, int | float]:
        """Return the amounts in display units: devices instead of thousandths."""
        return {what: shown(self.names[at], amount) for what, amount in amounts.items()}

    def _spoken(self, at: int, amount: float) -> str:
        name = self.names[at]
        if name == "cpu":
            return f"{amount / 1000:g} processors"
        if name == "memory":
            return f"{amount / 2**30:.4g} GiB of memory"
        model = name.partition("/")[2]
        number = format_devices(round(amount))
        return " ".join(filter(None, (number, model, "device" if amount == DEVICE else "devices")))

    def _persons_over(self, leaf: QueueNode, user: str, groups: Sequence[str], ask: Sequence[int]) -> Iterator[Refusal]:
        for key in self._persons(leaf.name, user, groups) if self.limited else ():
            queue, kind, name = key
            node = self.nodes[queue]
            bounds = node.user_limit if kind == "user" else node.group_limit
            held = self.people.get(key) or [0] * len(self.names)
            for at, amount in enumerate(ask):
                if amount and held[at] + amount > bounds[at]:
                    who = f"In queue {queue} the {kind} {name} may hold"
                    yield self._over(f"{kind}-limit", who, at, bounds[at], held[at], amount)

    def _kept_by_others(self, leaf: QueueNode, ask: Sequence[int]) -> Refusal | None:
        """Return a refusal if the gang would take amounts that other queues keep back and do not use yet."""
        if not self.keeping:
            return None
        self.charge(leaf.name, "", (), ask)
        try:
            for at, amount in enumerate(ask):
                kept = sum(_unmet(node, at) for node in self.root.children)
                free = self.total[at] - self.root.used[at]
                if amount and kept and free < kept:
                    names = ", ".join(node.name for node in self.root.children if _unmet(node, at))
                    sentence = (
                        f"{self._spoken(at, kept)} are kept for {names} and not lent; {self._spoken(at, free + amount)} "
                        f"are free, and this job needs {self._spoken(at, amount)}."
                    )
                    return "kept-for-others", sentence, self._figures(at, kept=kept, free=free + amount, needed=amount)
        finally:
            self.charge(leaf.name, "", (), ask, -1)
        return None

    # -- preemption ---------------------------------------------------------------------------------------------------

    def apart(self, one: str, other: str) -> tuple[QueueNode, QueueNode] | None:
        """Return the sibling ancestors (or selves) of two queues; None if one is the other or above it."""
        mine = list(self.find(one).chain())[::-1]
        theirs = list(self.find(other).chain())[::-1]
        for left, right in zip(mine, theirs, strict=False):
            if left is not right:
                return left, right
        return None

    def copy(self) -> QueueTree:
        """Return an independent copy with the same usage."""
        twin = QueueTree(self.specs.values())
        twin.total, twin.trees, twin.has_slices = self.total[:], self.trees, self.has_slices
        twin.root.used = self.root.used[:]
        for name, node in self.nodes.items():
            other = twin.find(name)
            other.used, other.past, other.seen = node.used[:], node.past[:], node.seen
        twin.people = {key: held[:] for key, held in self.people.items()}
        twin.users = self.users.copy()
        return twin

    def cleared(self) -> QueueTree:
        """Return a copy with the past usage, in which nothing is held now."""
        twin = self.copy()
        twin.people, twin.users = {}, self.users.copy(cleared=True)
        for node in (twin.root, *twin.nodes.values()):
            node.used = [0] * len(twin.names)
        return twin

    def columns(self) -> tuple[object, ...]:
        """Return everything held by queue, user and group, for hashing and comparing."""
        used = sorted((name, node.used) for name, node in self.nodes.items() if any(node.used))
        return (self.total, self.root.used, used, sorted(self.people.items()), self.users.columns())


def _unmet(node: QueueNode, at: int) -> int:
    """Return the amount that a queue, or the queues below it, keep back and do not hold yet."""
    return max(node.kept[at] - node.used[at], sum(_unmet(child, at) for child in node.children), 0)


def limiting(specs: Iterable[QueueSpec]) -> frozenset[str]:
    """Return the queues that have a limit per user or group, or inherit one from an ancestor."""
    by_name = {spec.name: spec for spec in specs}

    def limits(spec: QueueSpec | None) -> bool:
        return spec is not None and bool(spec.user_limit or spec.group_limit or limits(by_name.get(spec.parent)))

    return frozenset(spec.name for spec in by_name.values() if limits(spec))


def _is_plain(spec: QueueSpec) -> bool:
    bounds = (spec.limit, spec.borrowing_limit, spec.guaranteed, spec.lending_limit, spec.user_limit, spec.group_limit)
    return not any(bounds)


def _models(specs: Iterable[QueueSpec]) -> set[str]:
    found: set[str] = set()
    for spec in specs:
        for amounts in (
            spec.guaranteed, spec.deserved, spec.limit, spec.borrowing_limit, spec.lending_limit, spec.user_limit,
            spec.group_limit,
        ):  # fmt: skip
            found.update(name for name in amounts if name.startswith("devices/"))
    return found


def _bound(amounts: Amounts, names: Sequence[str]) -> list[float]:
    return [counted(name, amounts[name]) if name in amounts else inf for name in names]


def is_devices(name: str) -> bool:
    """Return whether a resource is counted in thousandths of devices in the tree, and in devices elsewhere."""
    return name == "devices" or name.startswith("devices/")


def counted(name: str, amount: float) -> int:
    """Convert an amount of a document to the units of the tree."""
    return round(amount * DEVICE) if is_devices(name) else int(amount)


def shown(name: str, amount: float) -> int | float:
    """Convert an amount of the tree to display units."""
    return devices(amount) if is_devices(name) else round(amount)


def divide(total: float, claims: Sequence[tuple[float, float, float]]) -> list[float]:
    """Divide `total` into fair shares for claims of (deserved, weight, demand): deserved first, the rest by weight.

    No claim gets more than its demand; unused parts go to the others (water-filling).
    """
    shares = [min(deserved, demand) for deserved, _, demand in claims]
    rest = total - sum(shares)
    hungry = [at for at, (_, weight, demand) in enumerate(claims) if weight > 0 and demand > shares[at]]
    while rest > 1e-9 and hungry:
        weights = sum(claims[at][1] for at in hungry)
        part = rest / weights
        filled = [at for at in hungry if claims[at][2] - shares[at] <= part * claims[at][1]]
        for at in filled or hungry:
            more = min(claims[at][2] - shares[at], part * claims[at][1])
            shares[at] += more
            rest -= more
        if not filled:
            break
        hungry = [at for at in hungry if at not in filled]
    return shares
