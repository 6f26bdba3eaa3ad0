"""What keeps a job from beginning: a person who suspended it, or a used-up budget, apart from each other."""

from __future__ import annotations

from corral.launcher.step_changes import Change
from corral.model.events import ResumeRequested, SuspendRequested
from corral.model.plan import Rule
from corral.model.runs import JobRun

SUSPENDED = "suspended"
"""The `hold` of a job that a person suspended."""
OVER_BUDGET = "budget"
"""The `hold` of a job that counts for a used-up budget."""


def hold_of(run: JobRun) -> str:
    """The hold with which its next attempt begins; "" if nothing keeps it."""
    return SUSPENDED if run.suspended else OVER_BUDGET if run.over_budget else ""


def words_of(event: SuspendRequested) -> str:
    """Why a job is suspended, as a clause."""
    return event.message or f"the job was suspended by {event.by}"


def keep_away(change: Change, event: SuspendRequested) -> None:
    """Note that no attempt may begin, unless that is so already for the same reason."""
    run, message = change.run, words_of(event)
    if event.rule is Rule.BUDGET and run.over_budget != message:
        change.set_job(over_budget=message)
        change.tell("job.held", message)
    elif event.rule is not Rule.BUDGET and not run.suspended:
        change.set_job(suspended=True)
        change.tell("job.suspended", message)


def let_go(change: Change, event: ResumeRequested) -> bool:
    """Take back a suspension, or the hold of a budget; whether the job was held by just that."""
    run, of_budget = change.run, event.rule is Rule.BUDGET
    if of_budget and run.over_budget:
        change.set_job(over_budget="")
        change.tell("job.released", event.message)
    elif not of_budget and run.suspended:
        change.set_job(suspended=False)
        change.tell("job.resumed", f"{event.by} resumed the job")
    else:
        return False
    return run.hold == (OVER_BUDGET if of_budget else SUSPENDED)
