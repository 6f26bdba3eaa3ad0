"""The states of a node's health, and the one table of their transitions."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from corral.kernel.errors import Conflict


class HealthState(StrEnum):
    """The standing of a node. Closed ones take no tasks but their own validation."""

    HEALTHY = "healthy"
    """Nothing is known against it. -> suspected, cordoned, repairing, validating"""
    SUSPECTED = "suspected"
    """It takes tasks that fit nowhere else. -> healthy, cordoned, repairing, validating"""
    CORDONED = "cordoned"
    """Closed by the ledger. -> repairing, validating, healthy"""
    REPAIRING = "repairing"
    """Closed; an administrator has taken it over. -> validating, healthy"""
    VALIDATING = "validating"
    """Closed to all but its validation job. -> healthy, cordoned, repairing"""

    @property
    def closed(self) -> bool:
        """Whether the node takes no tasks of users."""
        return self in _CLOSED


_CLOSED: Final = frozenset({HealthState.CORDONED, HealthState.REPAIRING, HealthState.VALIDATING})


class Cause(StrEnum):
    """What moves a node from one state to another."""

    SUSPICION = "suspicion"
    """Its score reached the first threshold."""
    CALM = "calm"
    """Its score fell below half of that."""
    SCORE = "score"
    """Its score reached the second threshold, or starts of different jobs failed in a row."""
    REPAIR = "repair"
    """An administrator takes it over."""
    VALIDATE = "validate"
    """An administrator, or the ledger after a cordon, asks for a validation."""
    PASSED = "passed"
    """Its validation job succeeded."""
    FAILED = "failed"
    """Its validation job failed or did not run."""
    CLEARED = "cleared"
    """An administrator calls it healthy, or removed its cordon."""


_HEALTHY, _SUSPECTED, _CORDONED, _REPAIRING, _VALIDATING = HealthState
TRANSITIONS: Final[dict[tuple[HealthState, Cause], HealthState]] = {
    (_HEALTHY, Cause.SUSPICION): _SUSPECTED,
    (_HEALTHY, Cause.SCORE): _CORDONED,
    (_HEALTHY, Cause.REPAIR): _REPAIRING,
    (_HEALTHY, Cause.VALIDATE): _VALIDATING,
    (_SUSPECTED, Cause.CALM): _HEALTHY,
    (_SUSPECTED, Cause.CLEARED): _HEALTHY,
    (_SUSPECTED, Cause.SCORE): _CORDONED,
    (_SUSPECTED, Cause.REPAIR): _REPAIRING,
    (_SUSPECTED, Cause.VALIDATE): _VALIDATING,
    (_CORDONED, Cause.REPAIR): _REPAIRING,
    (_CORDONED, Cause.VALIDATE): _VALIDATING,
    (_CORDONED, Cause.CLEARED): _HEALTHY,
    (_REPAIRING, Cause.VALIDATE): _VALIDATING,
    (_REPAIRING, Cause.CLEARED): _HEALTHY,
    (_VALIDATING, Cause.PASSED): _HEALTHY,
    (_VALIDATING, Cause.CLEARED): _HEALTHY,
    (_VALIDATING, Cause.FAILED): _CORDONED,
    (_VALIDATING, Cause.REPAIR): _REPAIRING,
}
"""Every transition: from a state, by a cause, to a state."""


def moved(node: str, state: HealthState, cause: Cause) -> HealthState:
    """The state of a node after a cause.

    Raises Conflict `health-state` where the table has no such transition.
    """
    after = TRANSITIONS.get((state, cause))
    if after is None:
        ways = dict.fromkeys(str(to) for (at, _), to in TRANSITIONS.items() if at is state)
        raise Conflict("health-state", f"{node} is {state}; from there it can become {' or '.join(ways)}.")
    return after
