"""The reason why a job waits, as one sentence for lists."""

from __future__ import annotations

from collections.abc import Mapping

from corral.control.core.job_events import DEPENDENCY
from corral.control.core.world import Job
from corral.kernel.ids import JobId
from corral.launcher import NEVER_RAN_ALARM
from corral.launcher import messages as words
from corral.launcher.holds import OVER_BUDGET
from corral.model.messages import array_index, held_by_array, sentence, waits_for_jobs
from corral.model.phases import Phase
from corral.model.records import NEVER_RAN, WaitingView, rfc3339
from corral.model.runs import JobRun, Retries, TaskRun
from corral.model.states import JobState

RETRY = "retry"
_HOLDS = {"suspended": "It is suspended; corral resume lets it go on."}
_GOES_ON = "It goes on in the budget's next window, or when an administrator adds to the budget."
_MOST_NAMED = 3


def waiting_reason(job: Job, phase: Phase, known: Mapping[JobId, Job]) -> WaitingView | None:
    """The reason why a job waits in this phase, None when none is known. `known` are all live jobs."""
    match phase:
        case Phase.WAITING if job.run.state is JobState.ATTEMPT_COMPLETED:
            return _next_attempt(job.run)
        case Phase.WAITING:
            return _in_line(job, known) or _next_of_tasks(job)
        case Phase.STARTING | Phase.RUNNING:
            return _next_of_tasks(job)
        case Phase.STOPPING:
            return _yielding(job)
    return None


def _yielding(job: Job) -> WaitingView | None:
    """The rule and message of the preemption of a job that is ending and will run again."""
    why = job.run.yielded
    if why is None or why.job_attempt != job.run.attempt or job.run.stop_requested:
        return None
    return WaitingView(why.rule, sentence(why.message))


def _in_line(job: Job, known: Mapping[JobId, Job]) -> WaitingView | None:
    """The reason why its gang is queued, after the message of its preemption if it was preempted."""
    why = job.run.yielded
    yielded = sentence(why.message) if why is not None else ""
    if job.run.hold == DEPENDENCY:
        return _dependent(job, known)
    if job.run.hold == OVER_BUDGET:
        return WaitingView("budget-used-up", f"{sentence(job.run.over_budget)} {_GOES_ON}")
    if job.run.hold:
        return WaitingView(job.run.hold, _HOLDS.get(job.run.hold, "It is held."))
    if job.reasons is None:
        return WaitingView("preempted", yielded) if yielded else None
    binding = job.reasons.binding
    message = f"{yielded} {binding.message}".strip()
    return WaitingView(binding.code, message, job.reasons.ahead, job.reasons.possible)


def _dependent(job: Job, known: Mapping[JobId, Job]) -> WaitingView:
    """The names of the jobs that it depends on. For jobs of its own array, the reason is `maxParallel`."""
    awaited = [known[other] for other in sorted(job.waits_for) if other in known]
    others = [other for other in awaited if not _of_one_array(job, other)]
    if awaited and not others:
        most = array_index(job.name) - array_index(awaited[0].name)
        return WaitingView(DEPENDENCY, held_by_array(awaited[0].name, most))
    asked = {need.job: need.condition for need in job.needs}
    named = [(each.name, asked.get(each.id, "succeeded")) for each in others[:_MOST_NAMED]]
    return WaitingView(DEPENDENCY, waits_for_jobs(named, len(others) - len(named)))


def _of_one_array(job: Job, other: Job) -> bool:
    return any(tag.startswith("array:") and tag in other.summary.tags for tag in job.summary.tags)


def _next_attempt(run: JobRun) -> WaitingView | None:
    return None if run.wake_at is None else _retry("The job", run, run.retries, run.wake_at)


def _next_of_tasks(job: Job) -> WaitingView | None:
    """Of the tasks that wait for their next attempt, one that never ran, else the one that is due first."""
    key = job.task_retries.first()
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
