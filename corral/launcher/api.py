"""The launcher's two entry points: create a job, and apply one event to it."""

from __future__ import annotations

from collections.abc import Mapping

from corral.kernel.ids import JobId, TaskKey
from corral.launcher.job_machine import begin, fold_job, populate
from corral.launcher.policy import LaunchPolicy
from corral.launcher.step_changes import Change, Step
from corral.launcher.view import JobView
from corral.launcher.wait_time import count_wait
from corral.model.events import JobEvent
from corral.model.runs import JobRun, RoleCount, TaskRun
from corral.model.states import JobState

_DEFAULT = LaunchPolicy()
_GANG_RUNS = frozenset({JobState.PREPARING, JobState.RUNNING})


def create(job: JobId, view: JobView, now: float, *, hold: str = "", suspended: bool = False) -> Step:
    """Create a job with its tasks; unless it is held (`hold`) or `suspended`, request their placement."""
    roles = {role.name: RoleCount(role.replicas) for role in view.roles.values()}
    run = JobRun(job, roles=roles, hold=hold, suspended=suspended, created_at=now)
    change = Change(view, run, {}, now, _DEFAULT)
    populate(change)
    begin(change)
    change.run = count_wait(run, change.run, now)
    return change.step(grow=False)


def step(
    view: JobView,
    run: JobRun,
    tasks: Mapping[TaskKey, TaskRun],
    event: JobEvent,
    now: float,
    policy: LaunchPolicy = _DEFAULT,
) -> Step:
    """Apply `event` to the job; `tasks` are all tasks of the job and are not changed.

    An event about one task costs the same for any job size. Raises InvalidTransition for an event that is impossible in
    this state, and InvalidInput for an invalid rescale; both leave everything unchanged.
    """
    change = Change(view, run, tasks, now, policy)
    fold_job(change, event)
    if change.run.state is JobState.CREATION_REQUESTED:
        change.regroup()
    change.run = count_wait(run, change.run, now)
    return change.step(grow=change.run.state in _GANG_RUNS)
