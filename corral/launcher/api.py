"""Why: callers need two functions of the launcher: begin a job, and let one thing happen to it."""

from __future__ import annotations

from collections.abc import Mapping

from corral.kernel.ids import JobId, TaskKey
from corral.launcher.change import Change, Step
from corral.launcher.job_machine import begin, fold_job, populate
from corral.launcher.policy import LaunchPolicy
from corral.launcher.view import JobView
from corral.launcher.waits import count_wait
from corral.model.events import JobEvent
from corral.model.runs import JobRun, RoleCount, TaskRun
from corral.model.states import JobState

_DEFAULT = LaunchPolicy()
_GANG_RUNS = frozenset({JobState.PREPARING, JobState.RUNNING})


def create(job: JobId, view: JobView, now: float, *, hold: str = "", suspended: bool = False) -> Step:
    """A new job: its tasks on paper and, unless `hold` says why not or it is `suspended`, the request for their places."""
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
    """What `event` leads to; `tasks` are all tasks of the job and are not changed.

    An event about one task costs the same whatever the size of the job. Raises InvalidTransition for what cannot have
    happened, and InvalidInput for a rescale that cannot be done; nothing has changed then.
    """
    change = Change(view, run, tasks, now, policy)
    fold_job(change, event)
    if change.run.state is JobState.CREATION_REQUESTED:
        change.regroup()
    change.run = count_wait(run, change.run, now)
    return change.step(grow=change.run.state in _GANG_RUNS)
