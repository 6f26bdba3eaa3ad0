"""Why: when a job's attempt is decided is a rule over a few counters, so ten thousand tasks cost no more than one.

Source: FrameworkController's FrameworkAttemptCompletionPolicy, and for elastic roles: tasks that never got a place do not
hold up a job whose other tasks have all done their work.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from corral.launcher import words
from corral.launcher.change import Change
from corral.launcher.view import RoleView
from corral.model.exits import GANG_TIMED_OUT, SUCCEEDED, UNDEFINED_NEGATIVE, classify
from corral.model.outcome import Completion, Trigger
from corral.model.runs import RoleCount, TaskRun
from corral.model.states import TaskState


def verdict(change: Change, roles: Iterable[str], last: TaskRun | None) -> Completion | None:
    """How the attempt ends, None while it is not decided.

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
    """How an attempt ends of which these tasks have not started in time, and never had.

    The gang holds devices for nothing: it gives them all back, and comes again later. (A task that failed and is too slow
    to start again is tried elsewhere instead: the others have work to lose.)
    """
    first = missing[0]
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    deadline = words.duration(change.policy.start_deadline)
    why = f"{first.key}{more} had not started {deadline} after the gang was placed"
    return msgspec.structs.replace(classify(GANG_TIMED_OUT, why), trigger=_trigger(why, first))


def _failed(change: Change, policy: RoleView, count: RoleCount, last: TaskRun | None) -> Completion:
    """The completion of the task that tipped the scale, inherited."""
    culprit = last if last is not None and _is_failure(last, policy.name) else _any_failure(change, policy.name)
    message = f"{count.failed} of {policy.name}'s tasks failed, and minFailed is {policy.min_failed}"
    completion = culprit.completion if culprit else None
    return msgspec.structs.replace(completion or classify(UNDEFINED_NEGATIVE), trigger=_trigger(message, culprit))


def _any_failure(change: Change, role: str) -> TaskRun | None:
    """A failed task; looked for only when a changed policy, not a task, decided."""
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
    """Whether nothing of the role is to be waited for."""
    if count.awaited:
        return False
    if policy.min_replicas is not None and count.succeeded >= max(1, policy.min_replicas):
        return count.ended + count.waiting == count.kept
    return count.ended == count.kept
