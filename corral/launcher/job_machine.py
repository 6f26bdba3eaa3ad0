"""The job state machine: one table of every event in every state."""

from __future__ import annotations

from typing import Any

import msgspec

from corral.kernel.ids import TaskKey, parse_attempt_id
from corral.launcher import messages
from corral.launcher.completion import incomplete, verdict
from corral.launcher.holds import OVER_BUDGET, SUSPENDED, hold_of, keep_away, let_go, words_of
from corral.launcher.retry import NEVER_RAN_ALARM, Decision, decide_retry, ran
from corral.launcher.scaling import UNPLACED, can_spare, check_scale, migrate_task, scale_role, settle_growth
from corral.launcher.state_machine import Machine, Row, go, ignore
from corral.launcher.step_changes import Change
from corral.launcher.task_machine import fold_task
from corral.launcher.task_orders import Ask, End, Give, Spare, TakeBack
from corral.launcher.unknown_attempts import EngineWord, other_attempt
from corral.model.events import (
    Checkpointed,
    DependencyFailed,
    HoldReleased,
    JobEvent,
    MigrateRequested,
    Placed,
    Preempted,
    RestartRequested,
    ResumeRequested,
    ScaleRequested,
    StartRefused,
    StopRequested,
    SuspendRequested,
    TimePassed,
    Unplaceable,
    WorkReported,
)
from corral.model.exits import ATTEMPT_COMPLETED, DEADLINE_EXCEEDED, PREEMPTED, STOP_REQUESTED, classify, preempted
from corral.model.launch import Exited, Started
from corral.model.outcome import Completion
from corral.model.placement import TaskPlacement
from corral.model.runs import JobRun, Retries, RoleCount, TaskRun, Yield
from corral.model.states import JobState as S
from corral.model.states import TaskState


def fold_job(change: Change, event: JobEvent) -> None:
    """Apply `event` to the job."""
    JOB_MACHINE.rows[change.run.state, type(event)].act(change, change.run, event)


def _move(change: Change, *path: S, **fields: Any) -> None:
    JOB_MACHINE.check(change.run.state, *path)
    change.run = msgspec.structs.replace(change.run, state=path[-1], **fields)


# -- start of an attempt -------------------------------------------------------------------------------------------------


def populate(change: Change) -> None:
    """Create the tasks of a new attempt, in place of the previous attempt's."""
    targets = {name: count.target for name, count in change.roles.items()}
    for task in list(change.tasks()):
        change.drop(task.key)
    change.roles = {name: RoleCount(target) for name, target in targets.items()}
    for name, target in targets.items():
        for index in range(target):
            change.put(TaskRun(name, index, created_at=change.now))


def begin(change: Change) -> None:
    """Request the placement of all tasks at once, unless the job is held."""
    if not change.run.hold:
        change.set_job(hold=hold_of(change.run))
    if change.run.hold:
        return
    _move(change, S.CREATION_REQUESTED)
    for task in list(change.tasks()):
        fold_task(change, task, Ask())
    total = sum(count.total for count in change.roles.values())
    attempt = change.run.attempt
    change.tell("job.queued", f"attempt {attempt} waits for places for its {total} tasks", attempt=attempt)


def _release_hold(change: Change, run: JobRun, event: HoldReleased) -> None:
    if run.hold not in ("", SUSPENDED, OVER_BUDGET):
        change.set_job(hold="")
        change.tell("job.released", "the jobs that it depends on have ended")
        begin(change)


def _dependency_failed(change: Change, run: JobRun, event: DependencyFailed) -> None:
    change.set_job(stop_requested=True)
    _finish(change, classify(STOP_REQUESTED, event.message))


# -- placement -----------------------------------------------------------------------------------------------------------


def _placed(change: Change, run: JobRun, event: Placed) -> None:
    """Apply a placement. It may leave out tasks of an elastic role, which keep waiting to join the running ones."""
    if event.job_attempt != run.attempt:
        return
    taken = [place for place in event.placement.tasks if _give(change, place)]
    before = (run.placed_at, run.notes) if event.joins else (change.now, ())
    if taken:
        change.set_job(placed_at=before[0], notes=tuple(dict.fromkeys((*before[1], *event.placement.notes))))
    if taken and run.state is S.CREATION_REQUESTED:
        _move(change, S.PREPARING)
    if taken and any(count.waiting for count in change.roles.values()):
        change.regroup(whole=True)
    if taken:
        change.tell("job.placed", messages.placed(taken, event.placement.notes))


def _give(change: Change, place: TaskPlacement) -> bool:
    """Give a task its placement; whether the task took it. Places without a task are released."""
    task = change.task(place.key)
    if task is None:
        change.release(place.key)
        return False
    fold_task(change, task, Give(place))
    return task.state is TaskState.CREATION_REQUESTED


def _unplaceable(change: Change, run: JobRun, event: Unplaceable) -> None:
    for key in event.tasks:
        if (task := change.task(key)) is not None:
            fold_task(change, task, TakeBack(event.message))
            if change.active:
                _look(change, key)
    if run.state in _ENDING and _all_ended(change):
        _over(change)
    elif change.run.state is S.PREPARING and all(count.waiting == count.total for count in change.roles.values()):
        _move(change, S.CREATION_REQUESTED)


# -- engine events -------------------------------------------------------------------------------------------------------


def _word(change: Change, run: JobRun, event: EngineWord) -> None:
    """Apply an event of a current attempt to its task, then look at its consequences for the job."""
    attempt = parse_attempt_id(event.attempt)
    task = change.task(attempt.task)
    if attempt.job_attempt != run.attempt or task is None or attempt.task_attempt != task.attempt:
        return other_attempt(change, run, attempt, event)
    fold_task(change, task, event)
    if change.active:
        _look(change, task.key)
    else:
        _look_at_ending(change, run, event)


def _look(change: Change, key: TaskKey) -> None:
    """Apply the consequences of a changed task to an attempt that is not ending."""
    task = change.task(key)
    if task is not None and task.state is TaskState.RUNNING and change.run.state is S.PREPARING:
        _move(change, S.RUNNING, started_at=task.started_at, yielded=None)
        attempt = change.run.attempt
        change.tell("job.started", f"{key} runs: attempt {attempt} of the job has started", attempt=attempt)
        if change.view.max_duration_seconds:
            change.wake((task.started_at or change.now) + change.view.max_duration_seconds)
    settle_growth(change, key.role)
    task = change.task(key)
    if task is None or task.state is TaskState.COMPLETED:
        _judge(change, (key.role,), task)
    elif task.state in UNPLACED and change.view.roles[key.role].min_replicas is not None:
        _judge(change, (key.role,), None)


def _judge(change: Change, roles: tuple[str, ...], last: TaskRun | None) -> None:
    if (completion := verdict(change, roles, last)) is not None:
        _finish(change, completion)


def _look_at_ending(change: Change, run: JobRun, event: EngineWord) -> None:
    if run.state not in _ENDING:
        return
    if _all_ended(change):
        _over(change)
    elif isinstance(event, Exited | StartRefused) and run.state is not S.DELETING:
        _move(change, S.DELETING)


# -- end of an attempt ---------------------------------------------------------------------------------------------------


def _finish(change: Change, completion: Completion, of_tasks: Completion | None = None) -> None:
    """End the attempt: store its completion and end every task that has not ended (with `of_tasks`)."""
    trigger = completion.trigger
    why = messages.plain(trigger.message if trigger else completion.diagnostics)
    sentence = f"attempt {change.run.attempt} {messages.outcome(completion)}" + (f" ({why})" if trigger else "")
    change.tell("job.ending", sentence, code=completion.code, attempt=change.run.attempt, completion=completion)
    change.set_job(completion=completion, wake_at=None)
    _close_roles(change)
    left = [task for task in change.tasks() if task.state is not TaskState.COMPLETED]
    if left:
        rest = End(of_tasks or classify(ATTEMPT_COMPLETED, f"the attempt of the job was over: {why}"))
        for task in left:
            fold_task(change, task, rest)
    if _all_ended(change):
        _over(change)
    else:
        _move(change, S.DELETION_PENDING)


def _close_roles(change: Change) -> None:
    for name, count in change.roles.items():
        if count.awaited:
            change.set_role(name, awaited=())


def _all_ended(change: Change) -> bool:
    return all(count.ended == count.total for count in change.roles.values())


def _over(change: Change) -> None:
    """Nothing of the attempt is left: restart, retry or complete the job."""
    _move(change, S.ATTEMPT_COMPLETED, ended_at=change.now)
    change.job_ended = msgspec.structs.replace(change.run, roles=dict(change.roles))
    if change.run.restart_requested:
        return _begin_anew(change)
    decision = _decide(change)
    if not decision.retry:
        return _complete(change)
    delayed = f"in {messages.duration(decision.delay)}" if decision.delay else "at once"
    held = "once it is resumed" if change.run.suspended else "once its budget allows more"
    when = held if change.run.suspended or change.run.over_budget else delayed
    change.tell("job.retried", f"the job is tried again {when}: {decision.why}", delay=decision.delay)
    if decision.after is not None:
        change.set_job(retries=decision.after)
        if decision.after.unstarted == NEVER_RAN_ALARM:
            change.tell("job.never-ran", messages.never_ran("the job", NEVER_RAN_ALARM, change.run.completion))
    if decision.delay:
        change.set_job(wake_at=change.now + decision.delay)
    else:
        _next_attempt(change)
    return None


def _decide(change: Change) -> Decision:
    run = change.run
    if run.stop_requested or run.completion is None:
        return Decision(False, why="a stop is final")
    if run.had_to_yield:
        return Decision(True, why="it had to yield, which is no failure and is not counted")
    lasted, seed = ran(run.started_at, change.now), f"{run.job}.{run.attempt}"
    return decide_retry(change.view.retry, run.retries, run.completion, change.policy, seed, lasted)


def _complete(change: Change) -> None:
    _move(change, S.COMPLETED, ended_at=change.now, wake_at=None)
    if change.run.completion is not None:
        stopped = change.run.stop_requested and change.run.completion.code == PREEMPTED
        sentence = "the job was stopped" if stopped else f"the job {messages.outcome(change.run.completion)}"
        change.tell("job.completed", sentence, code=change.run.completion.code)


def _next_attempt(change: Change) -> None:
    attempt = change.run.attempt + 1
    fresh: dict[str, Any] = dict.fromkeys(("started_at", "checkpointed_at", "ended_at", "wake_at", "completion"))
    made_room = change.run.yield_retries + change.run.had_to_yield
    _move(change, S.CREATION_PENDING, attempt=attempt, yield_retries=made_room, **fresh)
    populate(change)
    begin(change)


def _begin_anew(change: Change) -> None:
    change.set_job(retries=Retries(), task_retries=0, yield_retries=0, hold="", yielded=None)
    change.set_job(stop_requested=False, restart_requested=False)
    _next_attempt(change)


# -- preemption ------------------------------------------------------------------------------------------------------------


def _preempted(change: Change, run: JobRun, event: Preempted) -> None:
    if event.job_attempt != run.attempt:
        return
    change.grace = event.grace_seconds
    going = [task for task in map(change.task, event.tasks) if task is not None and task.stays]
    if event.tasks and not going:
        return
    if event.tasks and can_spare(change, going):
        change.set_job(yields=run.yields + 1)
        named = ", ".join(str(task.key) for task in going[:5]) + (", …" if len(going) > 5 else "")
        change.tell("job.shrunk", f"{named} gave up their places: {event.message}", rule=str(event.rule), by=event.by)
        for task in going:
            fold_task(change, task, Spare(preempted(event.message), event.by))
    else:
        change.tell("job.preempted", event.message, rule=str(event.rule), by=event.by)
        _yield(change, Yield(run.attempt, str(event.rule), event.message, event.by))


def _yield(change: Change, why: Yield) -> None:
    """End the attempt and retry it without counting."""
    change.set_job(yielded=why, yields=change.run.yields + 1)
    completion = preempted(why.message)
    _finish(change, completion, completion)


def _suspend(change: Change, run: JobRun, event: SuspendRequested) -> None:
    keep_away(change, event)
    _yield(change, Yield(run.attempt, str(event.rule), words_of(event)))


def _suspend_next(change: Change, run: JobRun, event: SuspendRequested) -> None:
    """Nothing runs, or the attempt is ending already: hold the next attempt."""
    if not run.stop_requested:
        keep_away(change, event)


def _resume(change: Change, run: JobRun, event: ResumeRequested) -> None:
    if let_go(change, event):
        change.set_job(hold="")
        begin(change)


def _migrate(change: Change, run: JobRun, event: MigrateRequested) -> None:
    migrate_task(change, event)


def _checkpointed(change: Change, run: JobRun, event: Checkpointed) -> None:
    """Record the time of saved work; the latest report counts."""
    if event.job_attempt == run.attempt and event.at > (run.checkpointed_at or 0.0):
        change.set_job(checkpointed_at=event.at)


def _work_reported(change: Change, run: JobRun, event: WorkReported) -> None:
    """Record what the program says of its work; the latest report counts."""
    if event.job_attempt == run.attempt and (run.report is None or event.report.at > run.report.at):
        change.set_job(report=event.report)


# -- requests and timers ---------------------------------------------------------------------------------------------------


def _stop(change: Change, run: JobRun, event: StopRequested) -> None:
    change.set_job(stop_requested=True, restart_requested=False)
    change.tell("job.stopping", f"{event.by} stopped the job")
    _finish(change, event.completion or classify(STOP_REQUESTED, f"asked for by {event.by}"))


def _stop_ending(change: Change, run: JobRun, event: StopRequested) -> None:
    """The attempt's completion is decided already; make the attempt the last one."""
    if not run.stop_requested or run.restart_requested:
        change.tell("job.stopping", f"{event.by} stopped the job; it is not tried again")
    change.set_job(stop_requested=True, restart_requested=False)


def _stop_between(change: Change, run: JobRun, event: StopRequested) -> None:
    """The job waits for its next attempt: cancel it and complete the job with its last completion."""
    change.set_job(stop_requested=True)
    change.tell("job.stopping", f"{event.by} stopped the job before it was tried again")
    _complete(change)


def _restart(change: Change, run: JobRun, event: RestartRequested) -> None:
    change.set_job(restart_requested=True)
    change.tell("job.restarting", f"{event.by} restarts the job; its tasks are ended first")
    _finish(change, classify(STOP_REQUESTED, f"{event.by} restarted the job"))


def _restart_waiting(change: Change, run: JobRun, event: RestartRequested) -> None:
    """Nothing of the attempt has run: only reset its retry counts."""
    change.set_job(retries=Retries(), task_retries=0)


def _restart_ending(change: Change, run: JobRun, event: RestartRequested) -> None:
    change.set_job(suspended=False)
    if not run.restart_requested:
        change.set_job(restart_requested=True)
        change.tell("job.restarting", f"{event.by} restarts the job as soon as its tasks have ended")


def _restart_ended(change: Change, run: JobRun, event: RestartRequested) -> None:
    change.tell("job.restarting", f"{event.by} restarts the job")
    if run.state is S.COMPLETED:
        change.set_job(over_budget="")  # a new beginning is checked against the budgets
    change.set_job(suspended=False)
    _begin_anew(change)


def _scale(change: Change, run: JobRun, event: ScaleRequested) -> None:
    """Apply all completion policies again: they may have changed together with the number."""
    _tell_scaled(change, event)
    scale_role(change, event)
    if change.active:
        _judge(change, tuple(change.roles), None)


def _scale_next(change: Change, run: JobRun, event: ScaleRequested) -> None:
    """The attempt's completion is decided already: the number applies to the next one."""
    _tell_scaled(change, event)
    change.set_role(event.role, target=event.replicas)


def _tell_scaled(change: Change, event: ScaleRequested) -> None:
    check_scale(change, event)
    before = change.roles[event.role].target
    change.tell("job.scaled", f"{event.by} scaled {event.role} from {before} to {event.replicas} tasks")


def _time_passed(change: Change, run: JobRun, event: TimePassed) -> None:
    if run.wake_at is None or change.now < run.wake_at:
        return
    change.set_job(wake_at=None)
    limit = change.view.max_duration_seconds
    deadline = run.started_at + limit if run.started_at is not None and limit else None
    if deadline is not None and change.now >= deadline:
        why = f"it has run for {messages.duration(limit)}, the most its maxDurationSeconds allows"
        change.set_job(stop_requested=True)
        return _finish(change, classify(DEADLINE_EXCEEDED, why))
    late = [task for task in change.tasks() if task.wake_at is not None and task.wake_at <= change.now]
    for task in late:
        fold_task(change, task, event)
    missing = [task for task in late if task.state is TaskState.PREPARING and task.attempt == 0]
    if missing and not can_spare(change, missing):
        return _finish(change, incomplete(change, missing))
    for at in filter(None, [deadline, *(task.wake_at for task in change.tasks())]):
        change.wake(at)
    return None


def _retry_due(change: Change, run: JobRun, event: TimePassed) -> None:
    if run.wake_at is not None and run.wake_at <= change.now:
        _next_attempt(change)


_ENDING = frozenset({S.DELETION_PENDING, S.DELETING})
_WORDS: tuple[type, ...] = (Started, Exited, StartRefused)


def _words(row: Row) -> dict[type, Row]:
    return dict.fromkeys(_WORDS, row)


_NOT_HELD = "the job is not held"
_BEGUN = "the job has begun, and its dependencies are looked at before that only"
_DECIDED = "how the attempt ends is decided"
_NO_TIMER = "the job waits for no time"
_OVER = "the job is over"
_LATE: tuple[type, ...] = (
    Preempted, Checkpointed, WorkReported, SuspendRequested, ResumeRequested, MigrateRequested, StopRequested, TimePassed,
)  # fmt: skip
_NOT_SUSPENDED = "the job is not suspended"
_NOTHING_HELD = "nothing of the job runs"

_TO_YIELD: dict[type, Row] = {
    Preempted: go(_preempted, S.DELETION_PENDING, S.ATTEMPT_COMPLETED),
    Checkpointed: go(_checkpointed),
    WorkReported: go(_work_reported),
    SuspendRequested: go(_suspend, S.DELETION_PENDING, S.ATTEMPT_COMPLETED),
    ResumeRequested: ignore(_NOT_SUSPENDED),
    MigrateRequested: go(_migrate),
}
_YIELDS_ALREADY: dict[type, Row] = {
    Preempted: ignore(_DECIDED),
    Checkpointed: ignore(_DECIDED),
    WorkReported: go(_work_reported),
    SuspendRequested: go(_suspend_next),
    ResumeRequested: go(_resume),
    MigrateRequested: ignore(_DECIDED),
}

JOB_MACHINE: Machine[S] = Machine(
    "job",
    S,
    {
        S.CREATION_PENDING: {
            Preempted: ignore(_NOTHING_HELD),
            MigrateRequested: ignore(_NOTHING_HELD),
            Checkpointed: ignore(_NOTHING_HELD),
            WorkReported: ignore(_NOTHING_HELD),
            SuspendRequested: go(_suspend_next),
            ResumeRequested: go(_resume, S.CREATION_REQUESTED),
            HoldReleased: go(_release_hold, S.CREATION_REQUESTED),
            DependencyFailed: go(_dependency_failed, S.ATTEMPT_COMPLETED),
            StopRequested: go(_stop, S.ATTEMPT_COMPLETED),
            RestartRequested: go(_restart_waiting),
            ScaleRequested: go(_scale),
            Placed: go(_placed),
            Unplaceable: go(_unplaceable),
            TimePassed: ignore(_NO_TIMER),
            **_words(go(_word)),
        },
        S.CREATION_REQUESTED: {
            **_TO_YIELD,
            Preempted: ignore(_NOTHING_HELD),
            MigrateRequested: ignore(_NOTHING_HELD),
            Checkpointed: ignore(_NOTHING_HELD),
            WorkReported: ignore(_NOTHING_HELD),
            HoldReleased: ignore(_NOT_HELD),
            DependencyFailed: ignore(_BEGUN),
            StopRequested: go(_stop, S.DELETION_PENDING, S.ATTEMPT_COMPLETED),
            RestartRequested: go(_restart_waiting),
            ScaleRequested: go(_scale),
            Placed: go(_placed, S.PREPARING),
            Unplaceable: go(_unplaceable),
            TimePassed: go(_time_passed),
            **_words(go(_word)),
        },
        S.PREPARING: {
            **_TO_YIELD,
            HoldReleased: ignore(_NOT_HELD),
            DependencyFailed: ignore(_BEGUN),
            StopRequested: go(_stop, S.DELETION_PENDING, S.ATTEMPT_COMPLETED),
            RestartRequested: go(_restart, S.DELETION_PENDING, S.ATTEMPT_COMPLETED),
            ScaleRequested: go(_scale, S.DELETION_PENDING, S.ATTEMPT_COMPLETED),
            Placed: go(_placed),
            Unplaceable: go(_unplaceable, S.CREATION_REQUESTED, S.DELETION_PENDING, S.ATTEMPT_COMPLETED),
            TimePassed: go(_time_passed, S.DELETION_PENDING),
            **_words(go(_word)),
            Started: go(_word, S.RUNNING),
            Exited: go(_word, S.DELETION_PENDING, S.ATTEMPT_COMPLETED),
            StartRefused: go(_word, S.DELETION_PENDING, S.ATTEMPT_COMPLETED),
        },
        S.RUNNING: {
            **_TO_YIELD,
            HoldReleased: ignore(_NOT_HELD),
            DependencyFailed: ignore(_BEGUN),
            StopRequested: go(_stop, S.DELETION_PENDING, S.ATTEMPT_COMPLETED),
            RestartRequested: go(_restart, S.DELETION_PENDING, S.ATTEMPT_COMPLETED),
            ScaleRequested: go(_scale, S.DELETION_PENDING, S.ATTEMPT_COMPLETED),
            Placed: go(_placed),
            Unplaceable: go(_unplaceable, S.DELETION_PENDING, S.ATTEMPT_COMPLETED),
            TimePassed: go(_time_passed, S.DELETION_PENDING, S.ATTEMPT_COMPLETED),
            **_words(go(_word)),
            Exited: go(_word, S.DELETION_PENDING, S.ATTEMPT_COMPLETED),
            StartRefused: go(_word, S.DELETION_PENDING, S.ATTEMPT_COMPLETED),
        },
        S.DELETION_PENDING: {
            **_YIELDS_ALREADY,
            HoldReleased: ignore(_NOT_HELD),
            DependencyFailed: ignore(_BEGUN),
            StopRequested: go(_stop_ending),
            RestartRequested: go(_restart_ending),
            ScaleRequested: go(_scale_next),
            Placed: go(_placed),
            Unplaceable: go(_unplaceable, S.ATTEMPT_COMPLETED),
            TimePassed: ignore(_DECIDED),
            Started: go(_word),
            Exited: go(_word, S.DELETING, S.ATTEMPT_COMPLETED),
            StartRefused: go(_word, S.DELETING, S.ATTEMPT_COMPLETED),
        },
        S.DELETING: {
            **_YIELDS_ALREADY,
            HoldReleased: ignore(_NOT_HELD),
            DependencyFailed: ignore(_BEGUN),
            StopRequested: go(_stop_ending),
            RestartRequested: go(_restart_ending),
            ScaleRequested: go(_scale_next),
            Placed: go(_placed),
            Unplaceable: go(_unplaceable, S.ATTEMPT_COMPLETED),
            TimePassed: ignore(_DECIDED),
            **_words(go(_word)),
            Exited: go(_word, S.ATTEMPT_COMPLETED),
            StartRefused: go(_word, S.ATTEMPT_COMPLETED),
        },
        S.ATTEMPT_COMPLETED: {
            **_YIELDS_ALREADY,
            HoldReleased: ignore(_NOT_HELD),
            DependencyFailed: ignore(_BEGUN),
            StopRequested: go(_stop_between, S.COMPLETED),
            RestartRequested: go(_restart_ended, S.CREATION_PENDING),
            ScaleRequested: go(_scale_next),
            Placed: go(_placed),
            Unplaceable: go(_unplaceable),
            TimePassed: go(_retry_due, S.CREATION_PENDING),
            **_words(go(_word)),
        },
        S.COMPLETED: {
            **dict.fromkeys(_LATE, ignore(_OVER)),
            HoldReleased: ignore(_NOT_HELD),
            DependencyFailed: ignore(_BEGUN),
            RestartRequested: go(_restart_ended, S.CREATION_PENDING),
            ScaleRequested: go(_scale_next),
            Placed: go(_placed),
            Unplaceable: go(_unplaceable),
            **_words(go(_word)),
        },
    },
)
