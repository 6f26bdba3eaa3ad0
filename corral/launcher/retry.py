"""Why: whether something that ended is tried again is one table of rules, the same for a job and for a task.

Source: FrameworkController's `ShouldRetry` (FrameworkLauncher's exit types give the same answers).
"""

from __future__ import annotations

from math import ceil

import msgspec

from corral.kernel.draw import draw_between
from corral.launcher.policy import LaunchPolicy
from corral.launcher.view import RetryView
from corral.model.exits import NEVER_RETRIED, START_FAILED_TRANSIENTLY
from corral.model.outcome import Completion, ExitClass
from corral.model.runs import Retries


class Decision(msgspec.Struct, frozen=True):
    """Whether to try again, whether that spends the budget, after how many seconds, and why."""

    retry: bool
    counted: bool = False
    delay: float = 0.0
    why: str = ""
    failed: bool = True
    """False: it had to yield, which is no retry at all."""

    def spent(self, retries: Retries, kind: ExitClass) -> Retries:
        """`retries` after this one, which follows an end of this kind."""
        if not self.failed:
            return retries
        after = msgspec.structs.replace(retries.after, **{kind.value: getattr(retries.after, kind.value) + 1})
        return Retries(retries.total + 1, retries.accountable + self.counted, after)


def decide_retry(
    policy: RetryView, retries: Retries, completion: Completion, launch: LaunchPolicy, seed: str
) -> Decision:
    """What to do after an attempt that ended with `completion`; `seed` names the attempt, for a delay that replays."""
    kind = completion.exit_class
    floor = launch.transient_floor if kind is ExitClass.TRANSIENT else 0.0
    if completion.code in NEVER_RETRIED:
        return Decision(False, why="its end was asked for")
    if completion.code == START_FAILED_TRANSIENTLY:
        return Decision(True, delay=floor, why="a passing failure to start never ends it")
    if policy.fancy and kind is ExitClass.CONFLICT:
        return Decision(True, delay=_conflict_delay(launch, seed), why="it lost a contention for resources")
    if policy.fancy and kind is ExitClass.TRANSIENT:
        return Decision(True, delay=floor, why="the failure is expected to pass")
    if policy.fancy and kind is ExitClass.PERMANENT:
        return Decision(False, why="the failure is expected to come again")
    return _within_budget(policy.max_retries, retries, completion, floor)


def _within_budget(limit: int, retries: Retries, completion: Completion, floor: float) -> Decision:
    if limit == -2:
        return Decision(True, counted=True, delay=floor, why="it is always run again")
    if completion.succeeded:
        return Decision(False, why="it succeeded")
    if limit == -1:
        return Decision(True, counted=True, delay=floor, why="every failure is retried")
    if retries.accountable < limit:
        return Decision(True, True, floor, f"counted retry {retries.accountable + 1} of {limit}")
    return Decision(False, why=f"its {limit} counted retries are spent" if limit else "no retry is left for it")


def _conflict_delay(launch: LaunchPolicy, seed: str) -> float:
    """Whole seconds within the range: then ten thousand delays end at some hundred moments, not ten thousand."""
    low, high = launch.conflict_delay
    return float(min(ceil(draw_between(low, high, seed, "conflict-delay")), ceil(high)))
