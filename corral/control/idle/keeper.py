"""Look at the use of devices every 30 s beside the control loop, and act on idle ones by the same intents as people."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

import structlog

from corral.control.core.world import Job
from corral.control.idle.rules import rules_of, terms_for
from corral.control.loop import Control
from corral.kernel.clock import Clock
from corral.kernel.ids import JobId
from corral.model.accounts import AuditWrite
from corral.model.idle.machine import Action, DeviceFigures, Finding, IdleState, IdleTerms, Spell, step
from corral.model.idle.words import action_taken, over, warning, would_have
from corral.model.metrics.samples import Samples
from corral.model.metrics.task_families import TASK_LABELS, TaskMetric
from corral.model.states import JobState
from corral.model.store_writes import IntentKind, ServerEvent
from corral.monitor.look_again import look_again
from corral.store.idle_records import IdleChange

log = structlog.get_logger()

IDLE: Final = "idle-devices"
"""The actor of what is done about idle devices."""
EVERY_SECONDS: Final = 30.0
SETTLE_SECONDS: Final = 120.0
"""Seconds after a start in which a job without figures stays as it was: the collector may not have measured yet."""
_ACTIVE_SECONDS: Final = 600.0
"""Seconds for which a report that somebody works in the job counts."""
_JOB: Final = TASK_LABELS.index("job_instance_id")


class Records(Protocol):
    """The part of the store that has spells."""

    async def open_spells(self) -> dict[JobId, Spell]: ...  # noqa: D102
    async def keep_idle(  # noqa: D102
        self, changes: list[IdleChange], now: float, *, actor: str
    ) -> list[IdleChange]: ...
    async def tell_of_server(self, told: list[ServerEvent]) -> None: ...  # noqa: D102


class IdleKeeper:
    """Watches the devices of running jobs. What fails here is logged once, and never stops the scheduler."""

    def __init__(self, control: Control, samples: Callable[[], Samples], clock: Clock | None = None) -> None:
        """`samples` tells what is measured now; `clock` is control's unless it is given."""
        self._control = control
        self._clock = clock or control.clock
        self._store = control.store
        self._samples = samples
        self._spells: dict[JobId, Spell] | None = None
        """Those that are stored; None until they were read."""
        self._fresh: dict[JobId, Spell] = {}
        """Those that need no storing: devices that are idle for a short time."""
        self._begun = 0.0

    async def run(self, ready: asyncio.Event) -> None:
        """Look from when control leads until cancelled."""
        await look_again(ready, self.look, lambda: EVERY_SECONDS, "idle devices are not watched")

    async def look(self) -> None:
        """Look at all jobs once, store what has changed, and ask for what follows.

        Raises Unavailable like the store; the next look does what was not stored.
        """
        control, now = self._control, self._clock.now()
        if not control.world_is_whole:
            return
        rules = rules_of(control.configured.now)
        jobs = self._control.world.jobs.values()
        if not rules and self._spells == {} and not any(job.terms.idle_seconds for job in jobs):
            return
        if self._spells is None:
            self._begun = now
        self._spells = spells = await self._store.open_spells()
        figures = figures_by_job(self._samples())
        changes: list[IdleChange] = []
        reports: list[ServerEvent] = []
        for job in list(control.world.jobs.values()):
            terms = terms_for(job.terms.idle_seconds, rules.get(job.terms.queue))
            if job.completed or (terms is None and job.id not in spells):
                continue
            if change := self._look_at(job, terms, figures.get(job.id, ()), now, reports):
                changes.append(change)
        changes += self._over(now)
        for stored in await self._store.keep_idle(changes, now, actor=IDLE) if changes else ():
            self._fresh.pop(stored.job, None)
        if reports:
            await self._store.tell_of_server(reports)

    def _look_at(
        self, job: Job, terms: IdleTerms | None, use: Iterable[float], now: float, reports: list[ServerEvent]
    ) -> IdleChange | None:
        """The change of one job's spell, if it is to be stored."""
        stored = (self._spells or {}).get(job.id)
        before = self._fresh.get(job.id) or stored or Spell(attempt=job.run.attempt)
        active = self._is_active(job, now)
        found = DeviceFigures(held_devices(job), tuple(use), active is True, active is False)
        if (
            not (found.use or found.unattended)
            and now - self._begun < SETTLE_SECONDS
            and job.run.state is JobState.RUNNING
        ):
            return None
        can_act = terms is not None and acts_on(job, terms.action)
        after, finding = step(before, found, terms, now, attempt=job.run.attempt, can_act=can_act)
        if finding is None or terms is None:
            return self._without_finding(job.id, stored, after)
        if after.dry_run:
            return self._reported(job, stored, after, terms, finding, now, reports)
        if finding is Finding.WARN:
            said = warning(job.name, after, terms, now, can_act=can_act)
            return IdleChange(job.id, stored, after, event=("job.idle-warned", said))
        if finding is Finding.OVER:
            return IdleChange(job.id, stored, after, event=("job.idle-over", over(after, now)))
        return self._acted(job, stored, after, terms, now)

    def _without_finding(self, job: JobId, stored: Spell | None, after: Spell) -> IdleChange | None:
        """Short spells stay in memory: what nobody was told of needs no row."""
        if stored is None:
            if after.state == IdleState.IDLE:
                self._fresh[job] = after
            else:
                self._fresh.pop(job, None)
            return None
        return None if _same(stored, after) else IdleChange(job, stored, after)

    def _reported(
        self, job: Job, stored: Spell | None, after: Spell, terms: IdleTerms, finding: Finding, now: float,
        reports: list[ServerEvent],
    ) -> IdleChange:  # fmt: skip
        """A dry run: the spell goes on as if the job had been warned and acted on, and administrators are told."""
        if finding is not Finding.OVER:
            warns = finding is Finding.WARN
            said = would_have(job.name, job.user, action_taken(after, terms, now), terms.action, warns=warns)
            reports.append(ServerEvent(now, "server.idle-dry-run", said[:500], IDLE))
        return IdleChange(job.id, stored, after)

    def _acted(self, job: Job, stored: Spell | None, after: Spell, terms: IdleTerms, now: float) -> IdleChange:
        said = action_taken(after, terms, now)
        kind, data = intent_for(job, terms.action, said)
        detail = {"idle": after.idle, "held": after.held, "wastedDeviceSeconds": round(after.wasted(now))}
        line = AuditWrite(now, IDLE, f"job.{terms.action}", f"job:{job.id}", "idle-rule", True, detail)
        return IdleChange(
            job.id, stored, after, event=("job.idle-acted", f"Because {said}."), intent=(kind, data), audit=line
        )

    def _over(self, now: float) -> list[IdleChange]:
        """Close the rows of jobs that have ended, and forget their short spells."""
        jobs = self._control.world.jobs
        gone = [job for job in self._fresh if job not in jobs]
        for job in gone:
            del self._fresh[job]
        ended = [
            (job, spell)
            for job, spell in (self._spells or {}).items()
            if (live := jobs.get(job)) is None or live.completed
        ]
        return [IdleChange(job, spell, _closed(spell, now), open=False) for job, spell in ended]

    def _is_active(self, job: Job, now: float) -> bool | None:
        """Whether somebody works in a running job, as a task has lately reported; None: none has."""
        report = job.run.report
        if report is None or report.active is None or now - report.at > _ACTIVE_SECONDS:
            return None
        return bool(report.active) if job.run.state is JobState.RUNNING else None


def _same(before: Spell, after: Spell) -> bool:
    return (before.state, before.attempt, before.idle, before.since, before.action, before.acts_at) == (
        after.state, after.attempt, after.idle, after.since, after.action, after.acts_at
    )  # fmt: skip


def _closed(spell: Spell, now: float) -> Spell:
    """The spell of a job that has ended, with what it wasted until its action, or now."""
    wasted = spell.wasted(spell.acted_at or now)
    return Spell(
        attempt=spell.attempt, idle=spell.idle, held=spell.held, warned_at=spell.warned_at, acted_at=spell.acted_at,
        extended_at=spell.extended_at, reason=spell.reason, wasted_before=wasted, dry_run=spell.dry_run,
        action=spell.action if spell.acted_at else "",
    )  # fmt: skip


def figures_by_job(samples: Samples) -> Mapping[str, list[float]]:
    """The use of the devices of each job, in percent."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for family, labels, value in samples.values:
        if family == TaskMetric.DEVICE:
            found[labels[_JOB]].append(value)
    return found


def held_devices(job: Job) -> int:
    """The devices that the tasks of a job hold; a part of one counts as one."""
    placed = (task.placement for task in job.tasks.values() if task.placement is not None and task.holds)
    return sum(len(each.devices) for each in placed)


def acts_on(job: Job, action: Action) -> bool:
    """Whether an action is possible for a job: its own controller runs an external one, and few jobs can shrink."""
    if job.run.external:
        return False
    return action is not Action.SHRINK or bool(_surplus(job)[2])


def intent_for(job: Job, action: Action, said: str) -> tuple[IntentKind, dict[str, object]]:
    """The request that carries an action out."""
    match action:
        case Action.SHRINK:
            role, least, remove = _surplus(job)
            return IntentKind.SCALE, {"role": role, "replicas": least, "remove": remove, "idle": said}
        case Action.SUSPEND:
            return IntentKind.SUSPEND, {"idle": said}
        case _:
            return IntentKind.STOP, {"idle": said}


def _surplus(job: Job) -> tuple[str, int, list[int]]:
    """The elastic role of a job, its least number of tasks, and the indexes of those beyond it."""
    for role in job.view.roles.values():
        if role.min_replicas is not None:
            placed = sorted(key.index for key, task in job.tasks.items() if key.role == role.name and task.holds)
            return role.name, role.min_replicas, placed[role.min_replicas :]
    return "", 0, []
