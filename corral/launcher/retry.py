"""Decide whether and when an ended attempt is retried, by one set of rules for jobs and tasks.

Sources: FrameworkController's `ShouldRetry` (FrameworkLauncher's exit types give the same answers). The growing delay
is the kubelet's CrashLoopBackOff: exponential, bounded, and reset after ten minutes of running.
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
from corral.spec.retry_rules import ALWAYS, UNBOUNDED

NEVER_RAN_ALARM = 10
"""Consecutive attempts that never ran after which a fact reports it."""


class Decision(msgspec.Struct, frozen=True):
    """Whether to retry, whether that counts against the budget, the delay in seconds, and the reason."""

    retry: bool
    counted: bool = False
    delay: float = 0.0
    why: str = ""
    after: Retries | None = None
    """The retry counters afterwards; None: unchanged, as after a preemption, which counts as no retry."""


def ran(started_at: float | None, ended_at: float | None) -> float | None:
    """Seconds for which an ended attempt was seen running; None: never."""
    return None if started_at is None or ended_at is None else max(0.0, ended_at - started_at)


def decide_retry(
    policy: RetryView, retries: Retries, completion: Completion, launch: LaunchPolicy, seed: str, lasted: float | None
) -> Decision:
    """Decide on a retry after an attempt that ended with `completion` and ran for `lasted` seconds (None: never).

    `seed` identifies the attempt and makes the random delay reproducible.
    """
    decision = _by_class(policy, retries, completion, launch, seed)
    if not decision.retry:
        return decision
    kind, before = completion.exit_class, _in_a_row(retries, launch, lasted)
    wait = back_off(launch, before, at_once=policy.at_once and kind is ExitClass.TRANSIENT)
    after = Retries(
        retries.total + 1,
        retries.accountable + decision.counted,
        msgspec.structs.replace(retries.after, **{kind.value: getattr(retries.after, kind.value) + 1}),
        before + 1,
        retries.unstarted + 1 if lasted is None else 0,
    )
    return msgspec.structs.replace(decision, delay=max(decision.delay, wait), after=after)


def back_off(launch: LaunchPolicy, before: int, *, at_once: bool = False) -> float:
    """Seconds to wait before a retry that follows `before` consecutive ones; `at_once`: the first one is immediate."""
    if at_once and not before:
        return 0.0
    doubled = before - 1 if at_once else before
    return min(launch.retry_first * 2.0 ** min(doubled, 60), launch.retry_most)


def _in_a_row(retries: Retries, launch: LaunchPolicy, lasted: float | None) -> int:
    return 0 if lasted is not None and lasted >= launch.retry_reset else retries.in_a_row


def _by_class(policy: RetryView, retries: Retries, completion: Completion, launch: LaunchPolicy, seed: str) -> Decision:
    """The decision, with the delay that the exit class requires."""
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
    if limit == ALWAYS:
        return Decision(True, counted=True, delay=floor, why="it is always run again")
    if completion.succeeded:
        return Decision(False, why="it succeeded")
    if limit == UNBOUNDED:
        return Decision(True, counted=True, delay=floor, why="every failure is retried")
    if retries.accountable < limit:
        return Decision(True, True, floor, f"counted retry {retries.accountable + 1} of {limit}")
    return Decision(False, why=f"its {limit} counted retries are spent" if limit else "no retry is left for it")


def _conflict_delay(launch: LaunchPolicy, seed: str) -> float:
    """A random delay in whole seconds within the range, so that 10,000 retries fall due at a few hundred times."""
    low, high = launch.conflict_delay
    return float(min(ceil(draw_between(low, high, seed, "conflict-delay")), ceil(high)))
