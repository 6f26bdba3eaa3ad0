"""Look at budgets beside the control loop, and hold or free their jobs by the same intents as people."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from corral.control.core.world import Job
from corral.control.loop import Control
from corral.kernel.clock import Clock
from corral.model.accounts import AuditWrite
from corral.model.budget_holds import CountedJob, Ruling, Verdict, marks, rulings
from corral.model.messages import sentence
from corral.model.store_writes import IntentKind
from corral.monitor.health.validation import TAG
from corral.monitor.look_again import look_again
from corral.store.budget_rulings import JobRuling

BUDGETS: Final = "budgets"
"""The actor of what is done for used-up budgets."""
EVERY_SECONDS: Final = 20.0
"""Seconds between two looks; jobs may exceed a budget by what they hold in that time."""
_REST: Final = 50.0
"""Multiple of the time of a look that passes before the next one: where many attempts are summed it takes 2 % of a core."""
_LONGEST_REST: Final = 60.0
"""Seconds."""
_RUNS_ON: Final = "The job runs on, and new ones are refused."


class BudgetKeeper:
    """Holds jobs whose budgets are used up. What fails here is logged once, and never stops the scheduler."""

    def __init__(self, control: Control, administrator: str, clock: Clock | None = None) -> None:
        """`administrator` owns the validation jobs of the server, which are never held."""
        self._control = control
        self._administrator = administrator
        self._clock = clock or control.clock
        self._store = control.store
        self._took = 0.0
        """Seconds that summing took last."""

    async def run(self, ready: asyncio.Event) -> None:
        """Look from when control leads until cancelled."""
        await look_again(ready, self.look, self._rest, "budgets are not watched")

    def _rest(self) -> float:
        return min(max(EVERY_SECONDS, _REST * self._took), _LONGEST_REST)

    async def look(self) -> None:
        """Look at all budgets once, and ask for what follows.

        Raises Unavailable like the store; the next look does what was not stored.
        """
        control, now = self._control, self._clock.now()
        if not control.world_is_whole:
            return
        jobs = [self._counted(job) for job in control.world.jobs.values() if not job.completed]
        jobs = [each for each in jobs if each.devices or each.over_budget]
        if not jobs or not (any(each.over_budget for each in jobs) or await self._store.budgets()):
            return
        begun = time.monotonic()
        standings, told = await self._store.standings(now), await self._store.budget_marks()
        self._took = time.monotonic() - begun
        found, kept = rulings(standings, jobs, told), marks(standings)
        if found or kept != told:
            done = [_job_ruling(each, now) for each in found]
            await self._store.keep_rulings(done, kept, now, actor=BUDGETS)

    def _counted(self, job: Job) -> CountedJob:
        validates = job.user == self._administrator and TAG in job.summary.tags
        can_be_held = not job.run.external and not validates and not job.run.stop_requested
        return CountedJob(
            job.id, job.terms.queue, job.user, job.summary.devices, job.run.over_budget, can_be_held=can_be_held
        )


def _job_ruling(ruling: Ruling, now: float) -> JobRuling:
    if ruling.verdict is Verdict.WARN:
        return JobRuling(ruling.job, event=("job.budget-used-up", f"{sentence(ruling.why)} {_RUNS_ON}"))
    kind = IntentKind.SUSPEND if ruling.verdict is Verdict.HOLD else IntentKind.RESUME
    action = "job.suspend" if ruling.verdict is Verdict.HOLD else "job.resume"
    line = AuditWrite(now, BUDGETS, action, f"job:{ruling.job}", "budget", True, {"why": ruling.why})
    return JobRuling(ruling.job, intent=(kind, {"budget": ruling.why}), audit=line)
