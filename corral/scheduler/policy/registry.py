"""Find policies and their parts by name: built-in ones, and those of installed packages.

An installed package has `NAME = "MODULE:OBJECT"` under `[project.entry-points."corral.policies"]`. OBJECT is a `Policy`,
an *order*, *allot*, *preempt* or *place* part, or a class or function that returns one without arguments. A built-in
name cannot be replaced.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any, Final

from corral.kernel.errors import InvalidInput
from corral.kernel.plug_ins import broken, load
from corral.scheduler.policy.allot import Allot, AsManyAsFit
from corral.scheduler.policy.baselines.allox import AlloX
from corral.scheduler.policy.baselines.gandiva_fair import GandivaFair
from corral.scheduler.policy.baselines.random_fit import RandomFit
from corral.scheduler.policy.baselines.random_order import RandomOrder
from corral.scheduler.policy.baselines.size_orders import LargestFirst, SmallestFirst
from corral.scheduler.policy.faults import CheckedAllot, CheckedJointOrder, CheckedOrder, CheckedPlace, CheckedPreempt
from corral.scheduler.policy.finish_time_fairness import FinishTimeFairness
from corral.scheduler.policy.fragmentation import FragmentationGradient
from corral.scheduler.policy.future_fairness import FutureFairness
from corral.scheduler.policy.gavel.part import FairFinish, LowestCost, ShortestMakespan, TimeShares
from corral.scheduler.policy.gittins import GittinsIndex
from corral.scheduler.policy.goodput_sizes import GoodputSizes
from corral.scheduler.policy.order import ArrivalOrder, DeadlineOrder, JointOrder, Order, PriorityOrder
from corral.scheduler.policy.place import Place, Tightest
from corral.scheduler.policy.planned_fairness import PlannedFairness
from corral.scheduler.policy.policy import BUILT_IN, Policy
from corral.scheduler.policy.preempt import Preempt
from corral.scheduler.policy.service_orders import (
    LeastAttainedService,
    ShortestRemainingService,
    ShortestRemainingTime,
)
from corral.scheduler.policy.themis_sizes import ThemisSizes
from corral.scheduler.policy.vector_places import BestFit, DotProduct
from corral.scheduler.preemption.order_rules import ByOrder
from corral.scheduler.preemption.rules import ByRules
from corral.spec.errors import shorten

GROUP: Final = "corral.policies"
"""The entry-point group of policies and their parts."""
ORDERS: Final[dict[str, Order]] = {
    "priority": PriorityOrder(),
    "fifo": ArrivalOrder(),
    "deadline": DeadlineOrder(),
    "srtf": ShortestRemainingTime(),
    "srsf": ShortestRemainingService(),
    "las": LeastAttainedService(),
    "gittins": GittinsIndex(),
    "finish-time-fairness": FinishTimeFairness(),
    "shockwave": FutureFairness(),
    "shockwave-program": PlannedFairness(),
    "gandiva-fair": GandivaFair(),
    "smallest-first": SmallestFirst(),
    "largest-first": LargestFirst(),
    "random": RandomOrder(),
}
"""The built-in orders by name."""
ALLOTS: Final[dict[str, Allot]] = {
    "as-many-as-fit": AsManyAsFit(),
    "goodput": GoodputSizes(),
    "themis": ThemisSizes(),
    "gavel": TimeShares(),
    "gavel-makespan": TimeShares(ShortestMakespan()),
    "gavel-finish-time": TimeShares(FairFinish()),
    "gavel-cost": TimeShares(LowestCost()),
    "allox": AlloX(),
}
"""The built-in *allot* parts by name."""
SHARES: Final = tuple(name for name, part in ALLOTS.items() if isinstance(part, TimeShares | AlloX))
"""The *allot* parts that are a policy by themselves."""
_NEED_SCIPY: Final = frozenset({*SHARES, *(name for name, part in ORDERS.items() if isinstance(part, PlannedFairness))})
PREEMPTS: Final[dict[str, Preempt]] = {"rules": ByRules(), "order": ByOrder()}
"""The built-in *preempt* parts by name."""
PLACES: Final[dict[str, Place]] = {
    "tightest": Tightest(),
    "best-fit": BestFit(),
    "dot-product": DotProduct(),
    "random-fit": RandomFit(),
    "fragmentation-gradient": FragmentationGradient(),
}
"""The built-in *place* parts by name."""
_METHODS: Final = {"order": "key", "allot": "targets", "preempt": "candidates", "place": "rank"}
"""The method by which a part is told."""


def find_policy(name: str = "fair") -> Policy:
    """Return the policy of this name, built in or installed; the name of an order gives `priority` with that order.

    Raises InvalidInput if there is none, or if it cannot be loaded.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    if name in SHARES:
        return Policy(name, ArrivalOrder(), allot=find_allot(name))
    if name in ORDERS:
        _check_scipy(name)
        return replace(BUILT_IN["priority"], name=name, order=ORDERS[name])
    found = _installed(name)
    if isinstance(found, Policy):
        return found
    if not _is_part("order", found):
        raise _unknown("policy", name, [*BUILT_IN, *ORDERS, *SHARES], found)
    return replace(BUILT_IN["priority"], name=name, order=_checked_order(name, found))


def find_allot(name: str) -> Allot:
    """Return the *allot* part of this name, built in or installed.

    Raises InvalidInput if there is none, or if it cannot be loaded.
    """
    if name in ALLOTS:
        _check_scipy(name)
        return ALLOTS[name]
    found = _installed(name)
    if not _is_part("allot", found):
        raise _unknown("allot", name, ALLOTS, found)
    return _checked_allot(name, found)


def find_preempt(name: str) -> Preempt:
    """Return the *preempt* part of this name, built in or installed.

    Raises InvalidInput if there is none, or if it cannot be loaded.
    """
    if name in PREEMPTS:
        return PREEMPTS[name]
    found = _installed(name)
    if not _is_part("preempt", found):
        raise _unknown("preempt", name, PREEMPTS, found)
    return CheckedPreempt(name, found, _changes_with_time(name, found))


def find_place(name: str) -> Place:
    """Return the *place* part of this name, built in or installed.

    Raises InvalidInput if there is none, or if it cannot be loaded.
    """
    if name in PLACES:
        return PLACES[name]
    found = _installed(name)
    if not _is_part("place", found):
        raise _unknown("place", name, PLACES, found)
    return _checked_place(name, found)


def with_part(policy: Policy, name: str) -> Policy:
    """Return the policy with the *place*, *preempt* or *allot* part of this name; a *preempt* part turns preemption on.

    Raises InvalidInput if there is none, or if it cannot be loaded.
    """
    if name in ALLOTS:
        return replace(policy, allot=find_allot(name))
    if name in PREEMPTS or not (name in PLACES or _is_part("place", _installed(name))):
        return replace(policy, preempt=find_preempt(name), preemption=True)
    return replace(policy, place=find_place(name))


def _check_scipy(name: str) -> None:
    """Raise InvalidInput if a built-in policy or part needs scipy, and that is not installed."""
    if name in _NEED_SCIPY and find_spec("scipy") is None:
        raise InvalidInput("no-scipy", f"The policy {name} needs scipy: pip install 'corral[policies]'.")


@cache
def _installed(name: str) -> Any:
    """Return the policy or part that a package brings under a name; None if there is none.

    The same object is returned each time, so that an unchanged configuration gives an equal policy.
    """
    point = next(iter(entry_points(group=GROUP, name=name)), None)
    if point is None:
        return None
    made = load(point, "policy", lambda found: found() if inspect.isclass(found) or inspect.isroutine(found) else found)
    if isinstance(made, Policy):
        return _checked(made)
    if not any(_is_part(kind, made) for kind in _METHODS):
        raise broken(point, "policy", "gives neither a Policy nor a part of one")
    return made


def _checked(policy: Policy) -> Policy:
    """Return an installed policy with checks around the parts that are not built in."""
    name, order, allot, preempt = policy.name, policy.order, policy.allot, policy.preempt
    if not policy.review_seconds >= 1:
        message = f'The plug-in for the policy "{name}" has review_seconds {policy.review_seconds!r}; 1 is the least.'
        raise InvalidInput("broken-plug-in", message)
    if not any(type(order) is type(known) for known in ORDERS.values()):
        order = _checked_order(name, order)
    if not any(type(allot) is type(known) for known in ALLOTS.values()):
        allot = _checked_allot(name, allot)
    if not any(type(preempt) is type(known) for known in PREEMPTS.values()):
        preempt = CheckedPreempt(name, preempt, _changes_with_time(name, preempt))
    place = policy.place
    if not any(type(place) is type(known) for known in PLACES.values()):
        place = _checked_place(name, place)
    return replace(policy, order=order, allot=allot, preempt=preempt, place=place)


def _checked_order(name: str, part: Order) -> CheckedOrder:
    """Return an installed order with checks around it; raises InvalidInput if it is not complete."""
    changes = _changes_with_time(name, part)
    if not isinstance(part, JointOrder) or _is_part("place", part):
        return CheckedOrder(name, part, changes)
    try:
        inspect.signature(part.prepare).bind(None, None, None, None)
    except (TypeError, ValueError):
        message = f'The plug-in for the policy "{name}" has no method prepare that takes four arguments.'
        raise InvalidInput("broken-plug-in", message) from None
    return CheckedJointOrder(name, part, changes)


def _checked_allot(name: str, part: Allot) -> CheckedAllot:
    """Return an installed *allot* part with checks around it; raises InvalidInput if it is not complete."""
    every_gang = getattr(part, "every_gang", False)
    if not isinstance(every_gang, bool):
        raise InvalidInput(
            "broken-plug-in", f'The plug-in for the policy "{name}" must set every_gang to True or False.'
        )
    return CheckedAllot(name, part, _changes_with_time(name, part), every_gang)


def _checked_place(name: str, part: Place) -> CheckedPlace:
    """Return an installed *place* part with checks around it; raises InvalidInput if it is not complete."""
    changes, fills = _changes_with_time(name, part), getattr(part, "fills", None)
    if not isinstance(fills, bool):
        raise InvalidInput("broken-plug-in", f'The plug-in for the policy "{name}" must set fills to True or False.')
    return CheckedPlace(name, part, changes, fills)


def _is_part(kind: str, found: object) -> bool:
    return callable(getattr(found, _METHODS[kind], None))


def _changes_with_time(name: str, part: object) -> bool:
    """Return the part's own answer.

    Raises InvalidInput if it has none, or if a method of the part takes other arguments than its protocol says.
    """
    methods = [method for method in _METHODS.values() if hasattr(part, method)]
    beside = {"candidates": "may_have", "rank": "prepare"}
    methods += [beside[method] for method in methods if method in beside]
    for method in methods:
        try:
            inspect.signature(getattr(part, method)).bind(None, None, None)
        except (AttributeError, TypeError, ValueError):
            message = f'The plug-in for the policy "{name}" has no method {method} that takes three arguments.'
            raise InvalidInput("broken-plug-in", message) from None
    changes = getattr(part, "changes_with_time", None)
    if not isinstance(changes, bool):
        message = f'The plug-in for the policy "{name}" must set changes_with_time to True or False.'
        raise InvalidInput("broken-plug-in", message)
    return changes


def _unknown(kind: str, name: str, built_in: Iterable[str], found: object) -> InvalidInput:
    """Return the refusal of a name, with the names that can be chosen in its place."""
    known = sorted({*built_in, *(point.name for point in entry_points(group=GROUP) if _can_be(kind, point.name))})
    what = "policy" if kind == "policy" else f"{kind} part"
    message = f"There is no {what} {shorten(name)!r}; choose one of: {', '.join(known)}."
    if found is not None:
        message = f"{shorten(name)} is installed, but is no {what}; choose one of: {', '.join(known)}."
    return InvalidInput(f"unknown-{kind}", message)


def _can_be(kind: str, name: str) -> bool:
    """Return whether an installed policy or part can be chosen as a policy, or as a part of this kind."""
    try:
        found = _installed(name)
    except InvalidInput:
        return False
    return _is_part("order", found) or isinstance(found, Policy) if kind == "policy" else _is_part(kind, found)
