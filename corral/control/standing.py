"""What a job waits for, in one sentence, for its line in lists."""

from __future__ import annotations

from corral.control.fold import DEPENDENCY
from corral.control.world import Job
from corral.launcher import NEVER_RAN_ALARM, words
from corral.model.phases import Phase
from corral.model.records import NEVER_RAN, WaitingView, rfc3339
from corral.model.runs import JobRun, Retries, TaskRun
from corral.model.states import JobState

RETRY = "retry"
_HOLDS = {
    DEPENDENCY: "Waits for the jobs that it depends on.",
    "suspended": "It is suspended; corral resume lets it go on.",
}


def standing(job: Job, phase: Phase) -> WaitingView | None:
    """What a job waits for in this phase; None: nothing, as far as is known."""
    match phase:
        case Phase.WAITING if job.run.state is JobState.ATTEMPT_COMPLETED:
            return _next_attempt(job.run)
        case Phase.WAITING:
            return _in_line(job) or _next_of_tasks(job)
        case Phase.STARTING | Phase.RUNNING:
            return _next_of_tasks(job)
        case Phase.STOPPING:
            return _yielding(job)
    return None


def _yielding(job: Job) -> WaitingView | None:
    """Why a job that is ending will run again: under which rule it yields, and what it was told."""
    why = job.run.yielded
    if why is None or why.job_attempt != job.run.attempt or job.run.stop_requested:
        return None
    return WaitingView(why.rule, f"{why.message[:1].upper()}{why.message[1:]}".rstrip(".") + ".")


def _in_line(job: Job) -> WaitingView | None:
    """What keeps its gang in the queue; one that had to yield says so first."""
    why = job.run.yielded
    yielded = f"{why.message[:1].upper()}{why.message[1:]}." if why is not None else ""
    if job.run.hold:
        return WaitingView(job.run.hold, _HOLDS.get(job.run.hold, "It is held."))
    if job.reasons is None:
        return WaitingView("preempted", yielded) if yielded else None
    binding = job.reasons.binding
    message = f"{yielded} {binding.message}".strip()
    return WaitingView(binding.code, message, job.reasons.ahead, job.reasons.possible)


def _next_attempt(run: JobRun) -> WaitingView | None:
    return None if run.wake_at is None else _retry("The job", run, run.retries, run.wake_at)


def _next_of_tasks(job: Job) -> WaitingView | None:
    """Of the tasks that wait for their next attempt, one that never ran, else the one that is due first."""
    key = job.retrying.first()
    if key is None:
        return None
    task = job.tasks[key]
    return _retry(str(key), task, task.retries, task.wake_at or 0.0)


def _retry(who: str, run: JobRun | TaskRun, retries: Retries, at: float) -> WaitingView:
    end = run.completion
    because = f": {end.diagnostics.splitlines()[0]}" if end is not None and end.diagnostics else ""
    ended = (
        "" if end is None else f" Its last attempt ended with code {end.code} ({end.phrase}){because}".rstrip(".") + "."
    )
    when = f"is tried again at {rfc3339(at)} (retry {retries.total})."
    if retries.unstarted >= NEVER_RAN_ALARM:
        return WaitingView(NEVER_RAN, f"{words.never_ran(who, retries.unstarted)} and {when}{ended}")
    return WaitingView(RETRY, f"{who} {when}{ended}")
