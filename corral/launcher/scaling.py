"""Resize the roles of a live job.

Source: FrameworkController's rescale guarantees. A scale-down stored as deletion-pending is never undone. An index that
is wanted again gets a new instance, once the old one is gone.
"""

from __future__ import annotations

from corral.kernel.errors import InvalidInput
from corral.kernel.ids import TaskKey
from corral.launcher.step_changes import Change
from corral.launcher.task_machine import create_task, fold_task
from corral.launcher.task_orders import Ask, End, Rest, Spare
from corral.model.events import MigrateRequested, ScaleRequested
from corral.model.exits import DELETE_TASK_REQUESTED, MIGRATED, PREEMPTED, classify, preempted
from corral.model.outcome import Completion, ExitClass
from corral.model.runs import TaskRun
from corral.model.states import TaskState

UNPLACED = frozenset({TaskState.CREATION_PENDING, TaskState.CREATION_REQUESTED})
"""The states of tasks without a placement."""


def check_scale(change: Change, event: ScaleRequested) -> None:
    """Check a rescale.

    Raises InvalidInput for an unknown role or a negative number.
    """
    if event.role not in change.roles:
        raise InvalidInput("unknown-role", f"the job has no role {event.role}; it has {', '.join(change.roles)}")
    if event.replicas < 0:
        raise InvalidInput("negative-replicas", f"{event.role} cannot have {event.replicas} tasks; ask for 0 or more")


def scale_role(change: Change, event: ScaleRequested) -> None:
    """Resize a role to the requested number of tasks: O(tasks of the job)."""
    role = change.roles[event.role]
    tasks = [task for task in change.tasks() if task.role == event.role]
    kept = {task.index: task for task in tasks if not task.deletion_pending}
    change.set_role(event.role, target=event.replicas)
    surplus = len(kept) + len(role.awaited) - event.replicas
    if surplus > 0:
        _shrink(change, event, kept, surplus)
    elif surplus < 0:
        leaving = {task.index for task in tasks if task.deletion_pending}
        _grow(change, event.role, kept.keys() | set(role.awaited), leaving, -surplus)


def can_spare(change: Change, going: list[TaskRun]) -> bool:
    """Whether the job can run on without these tasks.

    A gang can if enough tasks of its elastic role stay, including the first one (rendezvous); other jobs if any task
    stays.
    """
    if not change.view.gang:
        return sum(task.stays for task in change.tasks()) > len(going)
    (role, *others) = {task.role for task in going}
    least = change.view.roles[role].min_replicas
    if others or least is None:
        return False
    there = sorted(task.index for task in change.tasks() if task.role == role and task.stays)
    left = len(there) - len(going) + change.roles[role].succeeded
    return left >= max(1, least) and there[0] not in {task.index for task in going}


def migrate_task(change: Change, event: MigrateRequested) -> None:
    """End one task that holds a placement and start it elsewhere; this counts as no failure."""
    task = change.task(event.task)
    if task is None or not task.stays:
        return
    why = f"{event.by} migrates {task.key}"
    change.tell("task.migrating", f"{why}: it ends here and begins elsewhere", task)
    fold_task(change, task, Spare(Completion(PREEMPTED, MIGRATED, ExitClass.TRANSIENT, why)))


def settle_growth(change: Change, name: str) -> None:
    """Once a task of an elastic role has succeeded, withdraw its tasks that have not begun: they would have no peers.

    Not while fewer than the minimum run or have succeeded, and not a task that is retried after a failure. O(tasks of
    the job) if some have no placement.
    """
    role, least = change.roles[name], change.view.roles[name].min_replicas
    if least is None or not role.succeeded or role.kept == role.running + role.ended:
        return
    enough = role.running + role.succeeded >= max(1, least)
    done = preempted(f"others of {name} have done the work")
    for task in list(change.tasks()):
        if task.role != name or task.retries.total:
            continue
        if not enough and task.state is TaskState.CREATION_PENDING:
            fold_task(change, task, Ask())
        elif enough and task.state is TaskState.CREATION_REQUESTED:
            fold_task(change, task, Rest())
        elif enough and task.state is TaskState.PREPARING:
            fold_task(change, task, Spare(done))


def _shrink(change: Change, event: ScaleRequested, kept: dict[int, TaskRun], surplus: int) -> None:
    awaited = change.roles[event.role].awaited
    going = _departures(change, event, kept, awaited)[:surplus]
    change.set_role(event.role, awaited=tuple(index for index in awaited if index not in going))
    completion = classify(DELETE_TASK_REQUESTED, f"{event.by} scaled {event.role} to {event.replicas}")
    for index in going:
        task = change.task(TaskKey(event.role, index))
        if index in kept and task is not None:
            fold_task(change, task, End(completion, leaving=True))


def _departures(change: Change, event: ScaleRequested, kept: dict[int, TaskRun], awaited: tuple[int, ...]) -> list[int]:
    """Indexes in the order of removal: named ones, unplaced ones of an elastic role, then the highest first."""
    elastic = change.view.roles[event.role].min_replicas is not None

    def rank(index: int) -> tuple[int, int]:
        unplaced = elastic and (index not in kept or kept[index].state in UNPLACED)
        return (0 if index in named else 1 if unplaced else 2, -index)

    named = set(event.remove)
    return sorted([*kept, *awaited], key=rank)


def _grow(change: Change, role: str, taken: set[int], leaving: set[int], missing: int) -> None:
    """Create tasks at the lowest free indexes; an index whose old task is not gone yet is awaited."""
    index, awaited = 0, list(change.roles[role].awaited)
    while missing:
        if index not in taken:
            missing -= 1
            if index in leaving:
                awaited.append(index)
            else:
                create_task(change, role, index)
        index += 1
    change.set_role(role, awaited=tuple(awaited))
