"""Handle engine events about attempts that are not current.

Late events of earlier attempts are dropped. An instance unknown to this store (which was restored from a backup) is
stopped.
"""

from __future__ import annotations

from corral.kernel.ids import AttemptKey
from corral.launcher.step_changes import Change
from corral.launcher.task_machine import stop_command
from corral.model.commands import StopTask
from corral.model.events import StartRefused
from corral.model.launch import Exited, Started
from corral.model.runs import JobRun, TaskRun

EngineWord = Started | Exited | StartRefused


def other_attempt(change: Change, run: JobRun, attempt: AttemptKey, event: EngineWord) -> None:
    """Forget a late exit of another attempt; stop an instance that this store never started."""
    if isinstance(event, Exited):
        change.forget(event.attempt)
    elif isinstance(event, Started) and _is_unknown(change, run, attempt):
        command = stop_command(change, TaskRun(attempt.role, attempt.index, attempt=attempt.task_attempt))
        change.command(StopTask(event.attempt, command.grace_seconds, command.signal))
        change.tell("task.found", f"{attempt.task}: attempt {event.attempt} runs but was never asked for; it is ended")


def _is_unknown(change: Change, run: JobRun, attempt: AttemptKey) -> bool:
    if attempt.job_attempt != run.attempt:
        return attempt.job_attempt > run.attempt
    task, role = change.task(attempt.task), change.roles.get(attempt.role)
    known = task.attempt if task else role.next_attempt - 1 if role else -1
    return attempt.task_attempt > known
