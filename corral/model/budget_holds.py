"""What becomes of live jobs when the budgets that they count for are used up: a rule without clock or I/O.

A budget is used up when its jobs have held in its window what it allows. What they may still hold does not count here:
that only refuses submissions. A job is held as long as any budget with `hold` that it counts for is used up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from corral.kernel.ids import JobId
from corral.model.budgets import HOUR, Standing, WhenUsedUp
from corral.model.records import rfc3339

FREED: Final = "none of its budgets that hold jobs is used up any more"
"""Why a held job goes on, as a clause."""


class Verdict(StrEnum):
    """What is to be done about a job."""

    HOLD = "hold"
    FREE = "free"
    WARN = "warn"
    """Its owner is told that it runs on although a budget is used up."""


class CountedJob(NamedTuple):
    """A live job, as far as budgets go."""

    id: JobId
    queue: str
    user: str
    devices: float
    """Devices of its requested size; a job without devices counts for no budget."""
    over_budget: str = ""
    """What is said of the used-up budget that holds it now; "" if none does."""
    can_be_held: bool = True
    """False for jobs that another controller runs, and for the server's own."""


class Ruling(NamedTuple):
    """One verdict, with its reason as a clause."""

    job: JobId
    verdict: Verdict
    why: str


def is_used_up(standing: Standing) -> bool:
    """Whether the jobs of a budget have held what it allows in its window."""
    return standing.used >= standing.allowed


def words_of(standing: Standing) -> str:
    """What is said of a used-up budget, as a clause."""
    words, hours = standing.budget.words, standing.allowed / HOUR
    return f"{words[0].lower()}{words[1:]} is used up ({hours:,.1f} device-hours until {rfc3339(standing.end)})"


def mark_of(standing: Standing) -> tuple[str, float]:
    """The name of a budget, and a number that changes with its window and with what it allows."""
    return "/".join(standing.budget.key), standing.begin + standing.allowed


def rulings(standings: Sequence[Standing], jobs: Iterable[CountedJob], told: dict[str, float]) -> list[Ruling]:
    """The verdicts on jobs whose state is not what the budgets say.

    `told` has the marks of the budgets whose owners of jobs were warned already. Once the verdicts are carried out and
    the marks are kept, there are no more until something changes. O(budgets x jobs).
    """
    used_up = [each for each in standings if is_used_up(each)]
    holding = [each for each in used_up if each.budget.when_used_up == WhenUsedUp.HOLD]
    warning = [each for each in used_up if told.get(mark_of(each)[0]) != mark_of(each)[1]]
    found = []
    for job in jobs:
        why = next((words_of(each) for each in holding if _counts(each, job)), "") if job.can_be_held else ""
        if why and why != job.over_budget:
            found.append(Ruling(job.id, Verdict.HOLD, why))
        elif not why and job.over_budget:
            found.append(Ruling(job.id, Verdict.FREE, FREED))
        if not why:
            found += [Ruling(job.id, Verdict.WARN, words_of(each)) for each in warning if _counts(each, job)]
    return found


def marks(standings: Sequence[Standing]) -> dict[str, float]:
    """The marks to keep once the owners of the jobs of used-up budgets were warned."""
    return dict(mark_of(each) for each in standings if is_used_up(each))


def _counts(standing: Standing, job: CountedJob) -> bool:
    return job.devices > 0 and standing.counts(job.queue, job.user)
