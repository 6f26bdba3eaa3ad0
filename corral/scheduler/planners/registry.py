"""Find planners by name, and replace the planner in force when a policy or its documents change."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Final, cast

from corral.kernel.errors import InvalidInput
from corral.scheduler.planners.builtin.planner import BuiltinPlanner
from corral.scheduler.planners.planner import PlannerKind

GROUP: Final = "corral.planners"
_BUILTIN: Final = "builtin"
_HIVED: Final = "hived"


def find_planner(name: str) -> PlannerKind:
    """Return the kind of planner of this name, built in or installed.

    Raises InvalidInput if there is none, and lists the known names.
    """
    if name == _BUILTIN:
        return BuiltinPlanner
    if name == _HIVED:
        from corral.scheduler.planners.hived.planner import HivedPlanner  # few servers need its 40 ms

        return HivedPlanner
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in found:
        names = ", ".join(sorted({_BUILTIN, _HIVED, *found}))
        raise InvalidInput("unknown-planner", f"There is no planner {name!r}; a policy may name one of: {names}.")
    return cast(PlannerKind, found[name].load())
