"""Decide when a job attempt is complete, from a few counters per role, so that the cost does not grow with its tasks.

Source: FrameworkController's FrameworkAttemptCompletionPolicy. Added for elastic roles: tasks that were never placed do
not hold up a job whose other tasks have all succeeded.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from corral.launcher import messages
from corral.launcher.step_changes import Change
from corral.launcher.view import RoleView
from corral.model.exits import GANG_TIMED_OUT, SUCCEEDED, UNDEFINED_NEGATIVE, classify
from corral.model.outcome import Completion, Trigger
from corral.model.runs import RoleCount, TaskRun
from corral.model.states import TaskState


def verdict(change: Change, roles: Iterable[str], last: TaskRun | None) -> Completion | None:
    """The completion of the attempt, None while it is undecided.

    `roles` are those whose counters or policies changed, `last` the task whose completion changed them, if one did.
    """
    for name in roles:
        policy, count = change.view.roles[name], change.roles[name]
        if 1 <= policy.min_failed <= count.failed:
            return _failed(change, policy, count, last)
        if 1 <= policy.min_succeeded <= count.succeeded:
            message = f"{count.succeeded} of {name}'s tasks succeeded, and minSucceeded is {policy.min_succeeded}"
            return msgspec.structs.replace(classify(SUCCEEDED), trigger=_trigger(message, last))
    ended = sum(count.ended for count in change.roles.values())
    if ended and all(_done(change.view.roles[name], count) for name, count in change.roles.items()):
        failed = sum(count.failed for count in change.roles.values())
        message = f"all tasks are completed, {failed} of {ended} failed" if failed else f"all {ended} tasks succeeded"
        return msgspec.structs.replace(classify(SUCCEEDED), trigger=_trigger(message, last))
    return None


def incomplete(change: Change, missing: list[TaskRun]) -> Completion:
    """The completion of an attempt whose tasks `missing` did not start in time and had never run.

    The gang holds devices without progress, so it releases all of them and is queued again later. (A task that failed
    and is too slow to start again is restarted elsewhere instead, because the other tasks have work to lose.)
    """
    first = missing[0]
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    deadline = messages.duration(change.policy.start_deadline)
    why = f"{first.key}{more} had not started {deadline} after the gang was placed"
    return msgspec.structs.replace(classify(GANG_TIMED_OUT, why), trigger=_trigger(why, first))


def _failed(change: Change, policy: RoleView, count: RoleCount, last: TaskRun | None) -> Completion:
    """The completion of the failed task that met the policy, with a trigger."""
    culprit = last if last is not None and _is_failure(last, policy.name) else _any_failure(change, policy.name)
    message = f"{count.failed} of {policy.name}'s tasks failed, and minFailed is {policy.min_failed}"
    completion = culprit.completion if culprit else None
    return msgspec.structs.replace(completion or classify(UNDEFINED_NEGATIVE), trigger=_trigger(message, culprit))


def _any_failure(change: Change, role: str) -> TaskRun | None:
    """Any failed task; searched only if a changed policy, not a task, decided."""
    return next((task for task in change.tasks() if _is_failure(task, role)), None)


def _is_failure(task: TaskRun, role: str) -> bool:
    return (
        task.role == role
        and task.state is TaskState.COMPLETED
        and task.completion is not None
        and not task.completion.succeeded
    )


def _trigger(message: str, task: TaskRun | None) -> Trigger:
    return Trigger(message, task.role, task.index) if task else Trigger(message)


def _done(policy: RoleView, count: RoleCount) -> bool:
    """Whether no task of the role has to be waited for."""
    if count.awaited:
        return False
    if policy.min_replicas is not None and count.succeeded >= max(1, policy.min_replicas):
        return count.ended + count.waiting == count.kept
    return count.ended == count.kept
