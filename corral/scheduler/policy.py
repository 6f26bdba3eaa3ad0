"""Why: who is next is a matter of taste, so it is a small class of its own that others can replace.

A policy is found by its name in the entry point group `corral.policies`, whose values are `Policy` objects or callables
that return one. It combines an order (who is next) and backfill; allotment (how many replicas an elastic job gets) and
preemption (who must yield) join it here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, Protocol

from corral.kernel.errors import InvalidInput
from corral.model.requests import GangRequest

GROUP = "corral.policies"

OrderKey = tuple[Any, ...]
"""Sorts waiting gangs, next first; all keys of one order compare with each other."""


class Order(Protocol):
    """Who is next. Two orders are equal when they give the same keys."""

    def key(self, request: GangRequest) -> OrderKey:
        """What the gang is sorted by; ties go to the older job id."""
        ...


@dataclass(frozen=True)
class PriorityOrder:
    """Higher priority first, then who was submitted first."""

    def key(self, request: GangRequest) -> OrderKey:
        """Priority descending, then time of submission."""
        return (-request.priority, request.submitted_at)


@dataclass(frozen=True)
class Policy:
    """How a cycle decides. With `backfill`, later gangs may start where they cannot delay the first that waits."""

    name: str = "priority"
    order: Order = field(default_factory=PriorityOrder)
    backfill: bool = True


def find_policy(name: str = "priority") -> Policy:
    """The policy of this name, built in or installed.

    Raises InvalidInput when there is none, naming those there are.
    """
    built_in = {"priority": Policy()}
    if name in built_in:
        return built_in[name]
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in found:
        names = ", ".join(sorted({*built_in, *found}))
        raise InvalidInput("unknown-policy", f"There is no policy {name!r}; choose one of: {names}.")
    loaded = found[name].load()
    policy = loaded if isinstance(loaded, Policy) else loaded()
    if not isinstance(policy, Policy):
        raise InvalidInput("unknown-policy", f"The entry point {GROUP}:{name} does not give a Policy.")
    return policy
