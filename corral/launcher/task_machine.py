"""The task state machine: one table of every event in every state. At most one instance of a task ever runs.

That guarantee rests on three rules. An attempt number is started once. The next one follows only after the end of the
previous instance was seen, or if it is certain that none existed. Instances of any other attempt are stopped or
forgotten.
"""

from __future__ import annotations

from typing import Any

import msgspec

from corral.launcher import messages
from corral.launcher.retry import NEVER_RAN_ALARM, Decision, decide_retry, ran
from corral.launcher.state_machine import Machine, go, ignore, impossible
from corral.launcher.step_changes import AttemptEnd, Change
from corral.launcher.task_orders import Ask, End, Give, Rest, Spare, TakeBack
from corral.model.commands import StopTask
from corral.model.events import StartRefused, TimePassed
from corral.model.exits import (
    DEADLINE_EXCEEDED,
    PREEMPTED_PHRASE,
    START_FAILED_TRANSIENTLY,
    START_TIMED_OUT,
    classify,
    exit_spec,
)
from corral.model.framework_exits import classify_by
from corral.model.launch import Exited, Started
from corral.model.outcome import Completion
from corral.model.runs import TaskRun
from corral.model.states import TaskState as S

TaskTrigger = Ask | Give | TakeBack | Spare | Rest | End | Started | Exited | StartRefused | TimePassed


def fold_task(change: Change, task: TaskRun, trigger: TaskTrigger) -> None:
    """Apply `trigger` to `task`: an order of the job, or an engine's event about the task's current attempt."""
    TASK_MACHINE.rows[task.state, type(trigger)].act(change, task, trigger)


def create_task(change: Change, role: str, index: int) -> None:
    """Create a task, with an attempt number that no removed task of its role has used."""
    task = change.put(TaskRun(role, index, attempt=change.roles[role].next_attempt, created_at=change.now))
    if change.active:
        fold_task(change, task, Ask())


def remove_task(change: Change, task: TaskRun) -> None:
    """Remove a task that has no instance; if its index is awaited, create a new task there."""
    role = change.roles[task.role]
    change.tell("task.removed", f"{task.key} was removed by a scale-down", task)
    change.drop(task.key)
    awaited = tuple(index for index in role.awaited if index != task.index)
    change.set_role(task.role, next_attempt=max(role.next_attempt, task.attempt + 1), awaited=awaited)
    if len(awaited) < len(role.awaited):
        create_task(change, task.role, task.index)


def stop_command(change: Change, task: TaskRun) -> StopTask:
    """The command that stops the task's current attempt with the job's signal and grace period."""
    view = change.view
    grace = change.policy.grace_of(view) if change.grace is None else change.grace
    return StopTask(change.attempt_of(task), grace, view.stop_signal)


def _move(change: Change, task: TaskRun, *path: S, **fields: Any) -> TaskRun:
    TASK_MACHINE.check(task.state, *path)
    return change.put(msgspec.structs.replace(task, state=path[-1], **fields))


# -- orders of the job -------------------------------------------------------------------------------------------------


def _ask(change: Change, task: TaskRun, order: Ask) -> None:
    _move(change, task, S.CREATION_REQUESTED)
    change.request(task.key)


def _take_place(change: Change, task: TaskRun, order: Give) -> None:
    _start(change, task, S.PREPARING, placement=order.placement)


def _start(change: Change, task: TaskRun, *path: S, **fields: Any) -> None:
    """Start the task's attempt in the last state of `path`; it has to be seen running until a deadline, if one is set."""
    deadline = change.policy.start_deadline
    if deadline:
        fields["wake_at"] = change.now + deadline
        change.wake(change.now + deadline)
    change.start(_move(change, task, *path, **fields))


def _same_place(change: Change, task: TaskRun, order: Give) -> None:
    """Ignore a repeated placement; raise InvalidTransition for a different one."""
    if task.placement is None:
        change.release(task.key)
    elif task.placement != order.placement:
        raise change.invalid(f"it holds {task.placement.node} {task.placement.devices} already", task, order)


def _give_back(change: Change, task: TaskRun, order: Give) -> None:
    change.release(task.key)


def _lose_place(change: Change, task: TaskRun, order: TakeBack) -> None:
    change.tell("task.unplaced", f"{task.key} lost its place before it started: {order.message}", task)
    completion = classify(START_FAILED_TRANSIENTLY, f"it lost its place before it started: {order.message}")
    ended = msgspec.structs.replace(task, completion=completion, ended_at=change.now, wake_at=None)
    change.ended.append(AttemptEnd(change.attempt_of(task), ended))
    change.release(task.key)
    change.request(task.key)
    _move(change, task, S.CREATION_REQUESTED, attempt=task.attempt + 1, placement=None, wake_at=None)


def _never_started(change: Change, task: TaskRun, order: TakeBack) -> None:
    """Complete a task that is ending and was certainly never started."""
    assert task.completion is not None
    _over(change, task, change.now, task.completion)


def _end_unstarted(change: Change, task: TaskRun, order: End) -> None:
    if task.state is S.CREATION_REQUESTED:
        change.release(task.key)
    if order.leaving:
        remove_task(change, task)
    else:
        path = (S.ATTEMPT_COMPLETED, S.COMPLETED)
        _move(change, task, *path, completion=order.completion, ended_at=change.now, wake_at=None)


def _end_instance(change: Change, task: TaskRun, order: End) -> None:
    """Store the completion and stop the instance."""
    fields = {"completion": order.completion, "deletion_pending": order.leaving, "wake_at": None}
    change.command(stop_command(change, _move(change, task, S.DELETION_PENDING, **fields)))


def _spare(change: Change, task: TaskRun, order: Spare) -> None:
    """Store that the task ends only to wait again, and stop the instance."""
    fields = {"completion": order.completion, "yielding": True, "yields_to": order.to, "wake_at": None}
    change.command(stop_command(change, _move(change, task, S.DELETION_PENDING, **fields)))


def _rest(change: Change, task: TaskRun, order: Rest) -> None:
    change.release(task.key)
    _move(change, task, S.CREATION_PENDING)


def _end_ending(change: Change, task: TaskRun, order: End) -> None:
    if order.leaving and not task.deletion_pending:
        change.put(msgspec.structs.replace(task, deletion_pending=True))


def _end_ended(change: Change, task: TaskRun, order: End) -> None:
    """Cancel further retries; the task keeps the completion of its last attempt."""
    if task.holds:
        change.release(task.key)
    if order.leaving:
        remove_task(change, task)
    elif task.state is S.ATTEMPT_COMPLETED:
        _move(change, task, S.COMPLETED, wake_at=None)


def _keep_or_give_back(change: Change, task: TaskRun, order: Give) -> None:
    """Keep the place held for a retry, or else release the new one: the task requests again when due."""
    if task.holds:
        _same_place(change, task, order)
    else:
        change.release(task.key)


def _give_up_place(change: Change, task: TaskRun, order: Spare | TakeBack) -> None:
    """Release the place kept for the next attempt, which requests another one when it is due."""
    if task.holds:
        change.release(task.key)
        change.put(msgspec.structs.replace(task, placement=None))


# -- engine events -------------------------------------------------------------------------------------------------------


def _started(change: Change, task: TaskRun, event: Started) -> None:
    seen = {"host": event.host, "ports": event.ports, "process": event.process, "started_at": event.at}
    if task.state is S.PREPARING:
        task = _move(change, task, S.RUNNING, wake_at=_deadline(change, task, event.at), **seen)
    else:
        task = change.put(msgspec.structs.replace(task, **seen))
    node = task.placement.node if task.placement else event.host
    change.tell("task.started", f"{task.key} started on {node}", task)


def _deadline(change: Change, task: TaskRun, started_at: float) -> float | None:
    """The time at which an attempt started then reaches its role's maxTaskSeconds; None without a limit."""
    limit = change.view.roles[task.role].max_task_seconds
    if not limit:
        return None
    change.wake(started_at + limit)
    return started_at + limit


def _never_asked_for(change: Change, task: TaskRun, event: Started) -> None:
    """Stop an instance that this store never started (it was restored from a backup) before the task begins."""
    why = "an instance was found that had not been asked for; it is ended first"
    change.tell("task.found", f"{task.key}: {why}", task)
    change.release(task.key)
    found = {"host": event.host, "process": event.process, "started_at": event.at}
    found["completion"] = classify(START_FAILED_TRANSIENTLY, why)
    change.command(stop_command(change, _move(change, task, S.DELETION_PENDING, **found)))


def _ended_unasked(change: Change, task: TaskRun, event: Exited) -> None:
    """The attempt number had been used already: take the next one."""
    change.forget(event.attempt)
    change.put(msgspec.structs.replace(task, attempt=task.attempt + 1))


def _exited(change: Change, task: TaskRun, event: Exited) -> None:
    """The instance ended; a completion stored before (stopped, timed out) stays."""
    completion = task.completion or classify_by(change.view.exit_table, event.code, event.reason)
    sentence = messages.exited(task, event, change.view.exit_table)
    change.tell("task.exited", sentence, task, code=event.code, signal=event.signal, log_bytes=event.log_bytes)
    change.forget(event.attempt)
    _over(change, task, event.at, completion)


def _refused(change: Change, task: TaskRun, event: StartRefused) -> None:
    change.tell("task.refused", f"{task.key} was not started: {event.completion.diagnostics}", task)
    _over(change, task, event.at, task.completion or event.completion)


def _forget_again(change: Change, task: TaskRun, event: Exited) -> None:
    change.forget(event.attempt)


# -- the end of an attempt -----------------------------------------------------------------------------------------------


def _over(change: Change, task: TaskRun, at: float, completion: Completion) -> None:
    """No instance of the attempt is left: remove the task, complete it, or retry it."""
    task = _move(change, task, S.ATTEMPT_COMPLETED, completion=completion, ended_at=at, wake_at=None)
    if task.placement is not None:
        change.ended.append(AttemptEnd(change.attempt_of(task), task))
    if task.deletion_pending:
        change.release(task.key)
        return remove_task(change, task)
    decision = _decide(change, task, completion)
    if not decision.retry:
        change.release(task.key)
        _move(change, task, S.COMPLETED)
        return None
    return _retry(change, task, decision)


def _decide(change: Change, task: TaskRun, completion: Completion) -> Decision:
    if not change.active:
        return Decision(False, why="the attempt of the job is over")
    if task.yielding:
        return Decision(True, why="it gave its devices back, and joins again when there is room")
    policy, lasted = change.view.roles[task.role].retry, ran(task.started_at, task.ended_at)
    return decide_retry(policy, task.retries, completion, change.policy, change.attempt_of(task), lasted)


def _retry(change: Change, task: TaskRun, decision: Decision) -> None:
    """Retry in the same place, or request another if the machine caused the end or the delay is long."""
    assert task.completion is not None
    made_room = task.yielding and task.started_at is not None and task.completion.phrase == PREEMPTED_PHRASE
    if made_room:
        change.set_job(yield_retries=change.run.yield_retries + 1)
    when = f"in {messages.duration(decision.delay)}" if decision.delay else "at once"
    change.tell("task.retried", f"{task.key} is tried again {when}: {decision.why}", task, delay=decision.delay)
    keeps = decision.delay <= change.policy.retry_keeps_place and not exit_spec(task.completion.code).node_at_fault
    if not keeps or not _may_stay(change, task):
        change.release(task.key)
        task = msgspec.structs.replace(task, placement=None)
    if decision.after is not None:
        task = msgspec.structs.replace(task, retries=decision.after)
        change.set_job(task_retries=change.run.task_retries + 1)
        if decision.after.unstarted == NEVER_RAN_ALARM:
            change.tell(
                "task.never-ran",
                messages.never_ran(str(task.key), task.retries.unstarted, task.completion),
                task,
                attempts=NEVER_RAN_ALARM,
            )
    if decision.delay:
        due = change.now + decision.delay
        change.put(msgspec.structs.replace(task, wake_at=due))
        change.wake(due)
    else:
        _again(change, task)


def _may_stay(change: Change, task: TaskRun) -> bool:
    closed = change.policy.closed_nodes
    return not task.yielding and task.placement is not None and task.placement.node not in closed


def _again(change: Change, task: TaskRun) -> None:
    """Begin the next attempt: in its kept placement, or else through the scheduler's queue."""
    blank = TaskRun(
        task.role,
        task.index,
        task.state,
        task.attempt + 1,
        task.retries,
        placement=task.placement,
        created_at=change.now,
    )
    if task.placement is not None:
        _start(change, blank, S.CREATION_PENDING, S.PREPARING)
    else:
        _move(change, blank, S.CREATION_PENDING, S.CREATION_REQUESTED)
        change.request(task.key)


def _due(change: Change, task: TaskRun, event: TimePassed) -> None:
    """Begin the due attempt; its node may have been closed meanwhile."""
    if task.wake_at is None or task.wake_at > change.now:
        return
    if task.holds and not _may_stay(change, task):
        change.release(task.key)
        task = msgspec.structs.replace(task, placement=None)
    _again(change, task)


def _start_timed_out(change: Change, task: TaskRun, event: TimePassed) -> None:
    if task.wake_at is not None and task.wake_at <= change.now:
        why = f"not seen running {messages.duration(change.policy.start_deadline)} after it was placed"
        _end_instance(change, task, End(classify(START_TIMED_OUT, why)))


def _ran_too_long(change: Change, task: TaskRun, event: TimePassed) -> None:
    if task.wake_at is not None and task.wake_at <= change.now:
        limit = change.view.roles[task.role].max_task_seconds
        why = f"it has run for {messages.duration(limit)}, the most that maxTaskSeconds of its role allows"
        change.tell("task.deadline", f"{task.key} is ended: {why}", task)
        _end_instance(change, task, End(classify_by(change.view.exit_table, DEADLINE_EXCEEDED, why)))


_NOT_ASKED = "nothing was asked of an engine or the scheduler yet"
_NOT_PLACED = "the task has no place"
_ENDING = "it ends already"
_KNOWN = "it is known already"
_OVER = "the attempt it speaks of is over"
_NO_TIMER = "the task waits for no time"
_BEGUN = "the task has begun"

TASK_MACHINE: Machine[S] = Machine(
    "task",
    S,
    {
        S.CREATION_PENDING: {
            Ask: go(_ask, S.CREATION_REQUESTED, S.PREPARING),
            Give: go(_give_back),
            TakeBack: ignore(_NOT_PLACED),
            Spare: ignore(_NOT_PLACED),
            Rest: ignore(_NOT_ASKED),
            End: go(_end_unstarted, S.ATTEMPT_COMPLETED),
            Started: impossible(_NOT_ASKED),
            Exited: go(_ended_unasked),
            StartRefused: impossible(_NOT_ASKED),
            TimePassed: ignore(_NO_TIMER),
        },
        S.CREATION_REQUESTED: {
            Ask: ignore(_BEGUN),
            Give: go(_take_place, S.PREPARING),
            TakeBack: ignore(_NOT_PLACED),
            Spare: ignore(_NOT_PLACED),
            Rest: go(_rest, S.CREATION_PENDING),
            End: go(_end_unstarted, S.ATTEMPT_COMPLETED),
            Started: go(_never_asked_for, S.DELETION_PENDING),
            Exited: go(_ended_unasked),
            StartRefused: impossible(_NOT_ASKED),
            TimePassed: ignore(_NO_TIMER),
        },
        S.PREPARING: {
            Ask: ignore(_BEGUN),
            Give: go(_same_place),
            TakeBack: go(_lose_place, S.CREATION_REQUESTED),
            Spare: go(_spare, S.DELETION_PENDING),
            Rest: ignore(_BEGUN),
            End: go(_end_instance, S.DELETION_PENDING),
            Started: go(_started, S.RUNNING),
            Exited: go(_exited, S.ATTEMPT_COMPLETED),
            StartRefused: go(_refused, S.ATTEMPT_COMPLETED),
            TimePassed: go(_start_timed_out, S.DELETION_PENDING),
        },
        S.RUNNING: {
            Ask: ignore(_BEGUN),
            Give: go(_same_place),
            TakeBack: impossible("the task was seen running there"),
            Spare: go(_spare, S.DELETION_PENDING),
            Rest: ignore(_BEGUN),
            End: go(_end_instance, S.DELETION_PENDING),
            Started: ignore(_KNOWN),
            Exited: go(_exited, S.ATTEMPT_COMPLETED),
            StartRefused: impossible("the attempt was seen running"),
            TimePassed: go(_ran_too_long, S.DELETION_PENDING),
        },
        S.DELETION_PENDING: {
            Ask: ignore(_BEGUN),
            Give: go(_same_place),
            TakeBack: go(_never_started, S.ATTEMPT_COMPLETED),
            Spare: ignore(_ENDING),
            Rest: ignore(_BEGUN),
            End: go(_end_ending),
            Started: go(_started),
            Exited: go(_exited, S.ATTEMPT_COMPLETED),
            StartRefused: go(_refused, S.ATTEMPT_COMPLETED),
            TimePassed: ignore(_NO_TIMER),
        },
        S.ATTEMPT_COMPLETED: {
            Ask: ignore("it is tried again when it is due"),
            Give: go(_keep_or_give_back),
            TakeBack: go(_give_up_place),
            Spare: go(_give_up_place),
            Rest: ignore(_NOT_PLACED),
            End: go(_end_ended, S.COMPLETED),
            Started: ignore(_OVER),
            Exited: go(_forget_again),
            StartRefused: ignore(_OVER),
            TimePassed: go(_due, S.CREATION_PENDING),
        },
        S.COMPLETED: {
            Ask: ignore(_OVER),
            Give: go(_give_back),
            TakeBack: ignore(_NOT_PLACED),
            Spare: ignore(_OVER),
            Rest: ignore(_NOT_PLACED),
            End: go(_end_ended),
            Started: ignore(_OVER),
            Exited: go(_forget_again),
            StartRefused: ignore(_OVER),
            TimePassed: ignore(_NO_TIMER),
        },
    },
)
