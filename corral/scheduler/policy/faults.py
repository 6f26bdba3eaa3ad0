"""Errors in the parts of a policy: found, counted, and replaced by the default parts.

What parts of installed packages answer is checked as well. Of built-in *order* and *allot* parts only errors are caught:
no input that they did not expect may end the scheduler.

A plan is made without a part that fails in it. After `MOST_FAULTS` such plans the part is switched off until another
policy is configured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Final

import msgspec

from corral.kernel.ids import JobId, TaskKey
from corral.model.plan import PartFault, Rule
from corral.model.requests import GangRequest
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.node_room import NodeRoom
from corral.scheduler.cluster.shape_slots import SECOND
from corral.scheduler.placement.shape import TaskShape
from corral.scheduler.policy.allot import Allot, AsManyAsFit, ElasticGang, Target
from corral.scheduler.policy.call_guard import TookTooLong, guarded
from corral.scheduler.policy.history import History
from corral.scheduler.policy.order import JointOrder, Order, OrderKey, PriorityOrder
from corral.scheduler.policy.place import Place, Tightest, Waiting
from corral.scheduler.policy.policy import Policy
from corral.scheduler.policy.preempt import Preempt
from corral.scheduler.preemption.rules import ByRules
from corral.scheduler.preemption.victim import Victim
from corral.scheduler.preemption.view import PreemptionView

MOST_FAULTS: Final = 3
"""The plans in which a part may fail before it is switched off."""
_MOST_NUMBERS: Final = 8
"""The most numbers in a key."""
_MOST_TEXT: Final = 200
"""Characters of an error that are reported."""
_MODEL: Final = 63
"""Characters of a device model's name."""
_RULES: Final = frozenset({Rule.OPPORTUNISTIC, Rule.SHRINK, Rule.RECLAIM, Rule.PRIORITY, Rule.ORDER})
"""The rules by which a part may name victims; the planner itself applies the others."""


class PartFailed(Exception):
    """A part of the policy raised an error or gave an impossible answer; the plan must be made without it."""

    def __init__(self, part: str, name: str, message: str) -> None:
        super().__init__(f"The {part} {name!r} {message}.")
        self.fault = PartFault(part, name, message)


def _raised(part: str, name: str, error: BaseException) -> PartFailed:
    if isinstance(error, TookTooLong):
        return PartFailed(part, name, "took too long for one plan")
    return PartFailed(part, name, f"raised {type(error).__name__}: {' '.join(str(error).split())[:_MOST_TEXT]}")


def failed(part: str, used: object, error: Exception) -> PartFailed:
    """Return the failure of a part that raised an error; a built-in part has the name of its class."""
    return error if isinstance(error, PartFailed) else _raised(part, type(used).__name__, error)


def key_of(order: Order, gang: GangRequest, history: History, now: float) -> OrderKey:
    """Return the key of an order; raises PartFailed where the order raises an error."""
    try:
        return order.key(gang, history, now)
    except Exception as error:
        raise failed("order", order, error) from error


def _gave(part: str, name: str, what: str) -> PartFailed:
    return PartFailed(part, name, f"gave {' '.join(what.split())[:_MOST_TEXT]}")


@dataclass(frozen=True)
class CheckedOrder:
    """An order of an installed package; `key` raises PartFailed where that fails."""

    name: str
    order: Order
    changes_with_time: bool
    _widths: list[int] = field(default_factory=list, compare=False)
    """How many numbers its keys have; empty before the first key."""

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        """Return the key; raises PartFailed if it is not as `Order.key` says."""
        try:
            key = guarded(self.order.key, gang, history, now)
        except (Exception, TookTooLong) as error:
            raise _raised("order", self.name, error) from error
        if type(key) is not tuple or not 0 < len(key) <= _MOST_NUMBERS or not all(map(_is_number, key)):
            raise _gave("order", self.name, f"the key {key!r} to job {gang.job}, not a tuple of 1 to 8 numbers")
        if not self._widths:
            self._widths.append(len(key))
        if len(key) != self._widths[0]:
            what = f"a key of {len(key)} numbers to job {gang.job} and keys of {self._widths[0]} to other jobs"
            raise _gave("order", self.name, what)
        return key


@dataclass(frozen=True)
class CheckedJointOrder(CheckedOrder):
    """A `JointOrder` of an installed package; `prepare` raises PartFailed where that fails."""

    def prepare(self, gangs: Sequence[GangRequest], devices: float, history: History, now: float) -> object:
        """Return what the order prepares for a plan; raises PartFailed."""
        assert isinstance(self.order, JointOrder)
        try:
            return guarded(self.order.prepare, gangs, devices, history, now)
        except (Exception, TookTooLong) as error:
            raise _raised("order", self.name, error) from error


@dataclass(frozen=True)
class CheckedAllot:
    """An *allot* part of an installed package; `targets` raises PartFailed where that fails."""

    name: str
    allot: Allot
    changes_with_time: bool
    every_gang: bool = False

    def targets(self, cluster: Cluster, gangs: Iterable[ElasticGang], now: float) -> Mapping[JobId, Target]:
        """Return the targets; raises PartFailed if one is impossible."""
        elastic = tuple(gangs)
        try:
            found = guarded(_targets, self.allot, cluster, elastic, now)
        except (Exception, TookTooLong) as error:
            raise _raised("allot", self.name, error) from error
        known = {gang.request.job: gang for gang in elastic}
        for job, target in found.items():
            gang = known.get(job)
            if gang is None:
                raise _gave("allot", self.name, f"a target to {job!r}, not an elastic job")
            tasks, model = target
            paused = self.every_gang and tasks == 0
            if type(tasks) is not int or not (paused or gang.least <= tasks <= gang.most):
                raise _gave(
                    "allot", self.name, f"{tasks!r} tasks to job {job}, which can have {gang.least} to {gang.most}"
                )
            if type(model) is not str or len(model) > _MODEL:
                raise _gave("allot", self.name, f"job {job} devices of the model {model!r}, not the name of a model")
        return found


@dataclass(frozen=True)
class CheckedPreempt:
    """A *preempt* part of an installed package; its methods raise PartFailed where that fails."""

    name: str
    preempt: Preempt
    changes_with_time: bool

    def may_have(self, gang: GangRequest, ask: Sequence[int] | None, view: PreemptionView) -> bool:
        """Return whether there may be candidates; raises PartFailed."""
        try:
            return guarded(_may_have, self.preempt, gang, ask, view)
        except (Exception, TookTooLong) as error:
            raise _raised("preempt", self.name, error) from error

    def candidates(self, gang: GangRequest, ask: Sequence[int], view: PreemptionView) -> Sequence[Victim]:
        """Return the candidates; raises PartFailed if one must not be evicted for this gang."""
        try:
            found = guarded(_candidates, self.preempt, gang, ask, view)
        except (Exception, TookTooLong) as error:
            raise _raised("preempt", self.name, error) from error
        seen: set[tuple[JobId, TaskKey, bool]] = set()
        for victim in found:
            wrong = _why_not(victim, gang, view, seen)
            if wrong:
                raise _gave("preempt", self.name, f"a victim for job {gang.job} that {wrong}")
        return found


@dataclass(frozen=True)
class CheckedPlace:
    """A *place* part of an installed package; its methods raise PartFailed where that fails."""

    name: str
    place: Place
    changes_with_time: bool
    fills: bool = False

    def prepare(self, cluster: Cluster, waiting: Waiting, now: float) -> object:
        """Return what the part prepared for a plan; raises PartFailed."""
        try:
            return guarded(self.place.prepare, cluster, waiting, now)
        except (Exception, TookTooLong) as error:
            raise _raised("place", self.name, error) from error

    def rank(self, shape: TaskShape, node: NodeRoom, context: object) -> int:
        """Return the rank; raises PartFailed if it is not as `Place.rank` says."""
        try:
            rank = guarded(self.place.rank, shape, node, context)
        except (Exception, TookTooLong) as error:
            raise _raised("place", self.name, error) from error
        if type(rank) is not int or not 0 <= rank < SECOND:
            raise _gave("place", self.name, f"node {node.node} the rank {rank!r}, not a whole number below 2**24")
        return rank

    def device(self, shape: TaskShape, node: NodeRoom, context: object) -> Sequence[int]:
        """Return the devices in the part's order, none if it has no such method; raises PartFailed."""
        choose = getattr(self.place, "device", None)
        if choose is None:
            return ()
        try:
            found = guarded(_devices, choose, shape, node, context)
        except (Exception, TookTooLong) as error:
            raise _raised("place", self.name, error) from error
        if len(set(found)) != len(found) or not set(found) <= {device.number for device in node.devices}:
            raise _gave("place", self.name, f"the devices {found!r}, which are not all of node {node.node}, each once")
        return found


def _devices(
    choose: Callable[[TaskShape, NodeRoom, object], Sequence[int]], shape: TaskShape, node: NodeRoom, context: object
) -> list[int]:
    return list(choose(shape, node, context))


def _targets(allot: Allot, cluster: Cluster, elastic: tuple[ElasticGang, ...], now: float) -> dict[JobId, Target]:
    return {job: Target(*target) for job, target in allot.targets(cluster, elastic, now).items()}


def _may_have(preempt: Preempt, gang: GangRequest, ask: Sequence[int] | None, view: PreemptionView) -> bool:
    return bool(preempt.may_have(gang, ask, view))


def _candidates(preempt: Preempt, gang: GangRequest, ask: Sequence[int], view: PreemptionView) -> list[Victim]:
    return list(preempt.candidates(gang, ask, view))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and value == value  # a NaN differs from itself


def _why_not(victim: object, gang: GangRequest, view: PreemptionView, seen: set[tuple[JobId, TaskKey, bool]]) -> str:
    """Return why a victim must not be evicted for a gang; "" if it may.

    `seen` gets its tasks; a gang may be a victim for spare tasks and also as a whole.
    """
    if not isinstance(victim, Victim):
        return f"is no Victim but {type(victim).__name__}"
    running = victim.gang
    if view.cluster.gangs.by_job.get(running.job) is not running:
        return "does not run"
    if running.job == gang.job:
        return "is the job itself"
    if not running.preemptible:
        return f"is not preemptible: job {running.job}"
    if victim.rule not in _RULES:
        return f"goes by the rule {victim.rule!r}, which is the planner's own"
    if not isfinite(victim.cost):
        return f"costs {victim.cost}"
    tasks = set(victim.tasks)
    if not tasks or len(tasks) != len(victim.tasks):
        return f"names no task, or one twice: job {running.job}"
    named = {(running.job, task, victim.rule is Rule.SHRINK) for task in tasks}
    if named & seen:
        return f"is named before: job {running.job}"
    seen |= named
    if victim.rule is Rule.SHRINK:
        if running.guaranteed and running.queue != gang.queue:
            return f"runs in cells of its own queue: job {running.job}"
        return "" if tasks <= set(running.spare()) & view.left(running) else f"is no spare task: job {running.job}"
    if running.guaranteed:
        return f"runs in cells of its own queue: job {running.job}"
    return "" if tasks == view.left(running) else f"is not all that is left of job {running.job}"


def with_default(policy: Policy, part: str) -> Policy:
    """Return the policy with the default part in place of its own; `part` is `order`, `allot`, `preempt` or `place`."""
    match part:
        case "order":
            return replace(policy, order=PriorityOrder())
        case "allot":
            return replace(policy, allot=AsManyAsFit())
        case "place":
            return replace(policy, place=Tightest())
        case _:
            return replace(policy, preempt=ByRules())


class PolicyInForce:
    """A configured policy, without the parts that were switched off because they failed too often."""

    def __init__(self, policy: Policy) -> None:
        self.configured = policy
        self.policy = policy
        """The policy to plan by."""
        self._faults: dict[str, int] = {}
        """For each part, the plans in which it failed."""

    def configure(self, policy: Policy) -> None:
        """Plan by a policy from now on; another one than before begins without faults."""
        if policy != self.configured:
            self.configured, self.policy, self._faults = policy, policy, {}

    def counted(self, faults: Sequence[PartFault]) -> tuple[PartFault, ...]:
        """Return the faults of a plan, each with whether it switches its part off."""
        return tuple(
            msgspec.structs.replace(fault, last=self._faults.get(fault.part, 0) + 1 >= MOST_FAULTS) for fault in faults
        )

    def fold(self, fault: PartFault) -> None:
        """Count a fault of a plan that is carried out."""
        self._faults[fault.part] = self._faults.get(fault.part, 0) + 1
        if fault.last:
            self.policy = with_default(self.policy, fault.part)

    def copy(self) -> PolicyInForce:
        """Return an independent copy."""
        twin = PolicyInForce(self.configured)
        twin.policy, twin._faults = self.policy, dict(self._faults)
        return twin

    def columns(self) -> list[tuple[str, int]]:
        """Return the counts, for hashing."""
        return sorted(self._faults.items())
