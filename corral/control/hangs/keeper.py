"""Watch running jobs beside the control loop: look at the ranks of one that is silent, keep what is found, tell, and act.

What fails here is logged once, and never stops the scheduler.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import structlog

from corral.control.core.world import Job
from corral.control.hangs.bundles import Bundles
from corral.control.hangs.ranks import TaskLooks, look_at
from corral.control.hangs.rules import Terms
from corral.control.hangs.signs import Lives, running_attempts
from corral.control.loop import Control
from corral.kernel.clock import Clock
from corral.kernel.errors import CorralError
from corral.kernel.ids import AttemptId, JobId
from corral.kernel.units import format_duration
from corral.model.accounts import AuditWrite
from corral.model.hangs.patience import HangAction, HangTerms, Life
from corral.model.hangs.records import HUNG, HUNG_OVER, bundle_name
from corral.model.metrics.samples import Samples
from corral.model.metrics.task_families import TASK_LABELS
from corral.model.store_writes import IntentKind
from corral.monitor.look_again import look_again
from corral.profiles.answers import Room
from corral.profiles.hang import Rank, Verdict, judge
from corral.storage.log_sources import LogSources
from corral.store.hang_records import HangTold

log = structlog.get_logger()

ACTOR: Final = "hang-watch"
"""The actor of what is done about jobs that hang."""
EVERY_SECONDS: Final = 5.0
MOST_RESTARTS: Final = 3
"""Restarts of one job because it hung; then its owner is told only."""
_MOST_TASKS: Final = 64
"""Tasks of a job that are looked at."""
_TOGETHER: Final = 16
"""Tasks that are looked at at the same time."""
_AT_ONCE: Final = 2
"""Jobs that are looked at at the same time."""
_CONFIRMED: Final = 2
"""Times that nothing may move in a gang before it hangs: a machine can stall for some seconds."""
_MOST_ANSWERS: Final = 64 * 1024**2
"""Bytes of all tasks' answers about one job."""
_LOG_BYTES: Final = 64 * 1024
_CLEAR_SECONDS: Final = 3600.0
"""Seconds between two looks for bundles that are too old."""
_JOB: Final = TASK_LABELS.index("job_instance_id")
_DONE: Final = {HangAction.RESTART: "It starts again.", HangAction.SUSPEND: "It is suspended.", HangAction.WARN: ""}
_INTENTS: Final = {HangAction.RESTART: IntentKind.RESTART, HangAction.SUSPEND: IntentKind.SUSPEND}


class HangKeeper:
    """Watches the jobs that report steps, and those of queues and files that ask for it."""

    def __init__(
        self,
        control: Control,
        bundles: Bundles,
        logs: LogSources | None,
        samples: Callable[[], Samples],
        clock: Clock | None = None,
    ) -> None:
        """`samples` tells what is measured now; `clock` is control's unless it is given."""
        self._control, self._bundles, self._logs, self._samples = control, bundles, logs, samples
        self._clock = clock or control.clock
        self._terms, self._lives = Terms(), Lives(logs, samples)
        self._looking: dict[JobId, asyncio.Task[None]] = {}
        self._cleared_at = float("-inf")
        self.looked = 0
        """Jobs whose ranks were looked at."""

    async def run(self, ready: asyncio.Event) -> None:
        """Watch from when control leads until cancelled."""
        try:
            await look_again(ready, self.look, lambda: EVERY_SECONDS, "jobs that hang are not found")
        finally:
            for each in self._looking.values():
                each.cancel()
            await asyncio.gather(*self._looking.values(), return_exceptions=True)

    async def look(self) -> None:
        """Look at all jobs once; the ranks of those that are silent for too long are looked at beside."""
        control, now = self._control, self._clock.now()
        if not control.world_is_whole:
            return
        watched: dict[JobId, tuple[Job, HangTerms, Life]] = {}
        for job in list(control.world.jobs.values()):
            terms = self._terms.of(job, control.configured.now)
            life = self._lives.of(job, now) if terms is not None else None
            if terms is not None and life is not None and (terms.asked or life.steps):
                watched[job.id] = job, terms, life
        if now - self._cleared_at > _CLEAR_SECONDS:
            self._cleared_at = now
            await asyncio.to_thread(self._bundles.clear, now)
        self._terms.forget(control.world.jobs)
        self._lives.forget(control.world.jobs)
        told = [each for each in watched.values() if each[2].told]
        await self._lives.look_beside([job for job, _, life in watched.values() if not life.steps], now)
        for job, _, life in told:
            if not life.told:
                await self._over(job, now)
        for job, terms, life in watched.values():
            if life.due(terms, now) and job.id not in self._looking and len(self._looking) < _AT_ONCE:
                task = asyncio.create_task(self._look_at(job, terms, life))
                self._looking[job.id] = task
                task.add_done_callback(lambda done, job=job.id: self._looked(job, done))  # type: ignore[misc]

    async def settled(self) -> None:
        """Wait until no ranks are being looked at."""
        while self._looking:
            await asyncio.wait(list(self._looking.values()))

    def _looked(self, job: JobId, done: asyncio.Task[None]) -> None:
        self._looking.pop(job, None)
        if not done.cancelled() and (error := done.exception()) is not None:
            why = error.message if isinstance(error, CorralError) else repr(error)
            log.warning("a job that is silent could not be looked at", job=job, error=why[:500])

    async def _look_at(self, job: Job, terms: HangTerms, life: Life) -> None:
        """Look at the ranks of a silent job; tell of it, and act, if they hang."""
        now, before = self._clock.now(), life.at
        life.looked_at = now
        attempts = running_attempts(job)
        looks, verdict = await self._judged(attempts)
        for _ in range(_CONFIRMED - 1):
            if verdict.hangs:
                looks, verdict = await self._judged(attempts)
        self.looked += 1
        current = self._control.world.jobs.get(job.id)
        if current is None or life.at != before or running_attempts(current).keys() != attempts.keys():
            return  # it went on meanwhile
        if not verdict.hangs and not life.overdue(terms, now):
            log.info("a silent job works", job=job.id, why=verdict.why)
            return
        files = await self._files(job, attempts, looks, verdict, life.silent_for(now))
        await self._tell(current, terms, life, verdict, files, now)
        life.told = life.at == before

    async def _judged(self, attempts: Mapping[AttemptId, str]) -> tuple[list[TaskLooks], Verdict]:
        looks = await self._looks(attempts)
        return looks, judge([rank for each in looks for rank in each.ranks])

    async def _looks(self, attempts: Mapping[AttemptId, str]) -> list[TaskLooks]:
        """Look at the tasks of a job, many at the same time."""
        some, room = asyncio.Semaphore(_TOGETHER), Room(_MOST_ANSWERS)

        async def one(attempt: AttemptId, task: str) -> TaskLooks:
            async with some:
                try:
                    engine = self._control.engines[self._control.engine_of(attempt)]
                except CorralError as error:
                    return TaskLooks(task, [Rank(task, 0, problem=error.message)])
                return await look_at(engine, attempt, task, room)

        return list(await asyncio.gather(*(one(*each) for each in list(attempts.items())[:_MOST_TASKS])))

    async def _files(
        self, job: Job, attempts: Mapping[AttemptId, str], looks: Sequence[TaskLooks], verdict: Verdict, silent: float
    ) -> dict[str, bytes]:
        """The files of the bundle: the summary first, as later ones are left out where they are too much."""
        summary = {
            "job": job.id, "name": job.name, "attempt": job.run.attempt, "silentSeconds": round(silent, 1),
            "why": verdict.why, "hangs": verdict.hangs, "odd": [each._asdict() for each in verdict.odd],
            "ranks": [each._asdict() for each in verdict.ranks],
            "lookedAt": len(looks), "tasks": len(attempts),
        }  # fmt: skip
        figures = [each._asdict() for each in self._samples().values if job.id == _job_of(each.labels)]
        files = {"summary.json": _json(summary), "figures.json": _json(figures)}
        for attempt, task in list(attempts.items())[:_MOST_TASKS]:
            files |= await self._log_ends(attempt, task)
        for each in looks:
            files |= each.files
            files |= {name: bytes(data) for name, data in each.dumps.items()}
        return files

    async def _log_ends(self, attempt: AttemptId, task: str) -> dict[str, bytes]:
        found = {}
        if self._logs is not None:
            try:
                for stream in await self._logs.streams(attempt):
                    source = await self._logs.source(attempt, stream)
                    try:
                        begin = max(0, await source.size() - _LOG_BYTES)
                        found[f"{task}.{stream}.log"] = (await source.read(begin, _LOG_BYTES))[1]
                    finally:
                        await source.close()
            except CorralError as error:
                found[f"{task}.log"] = error.message.encode()
        return found

    async def _tell(
        self, job: Job, terms: HangTerms, life: Life, verdict: Verdict, files: Mapping[str, bytes], now: float
    ) -> None:
        """Keep the bundle, store the event, and ask for what the terms say."""
        name, size = bundle_name(now), 0
        try:
            size = await asyncio.to_thread(self._bundles.keep, job.id, name, files, now)
        except OSError as error:
            log.warning("the bundle of a job that hangs could not be kept", job=job.id, error=error.strerror)
            name = ""
        action = await self._action(job, terms)
        silent = format_duration(max(1, int(life.silent_for(now))))
        what = "No step was reported" if life.steps else "Neither its log nor a device showed anything"
        said = f"{what} for {silent}. {verdict.why}"
        data: dict[str, Any] = {
            "bundle": name, "bytes": size, "action": str(action), "silentSeconds": round(life.silent_for(now)),
            "odd": list(dict.fromkeys(each.task for each in verdict.odd)),
            "collective": next((each.collective for each in verdict.odd if each.collective), ""),
            "number": next((each.number for each in verdict.odd if each.number), 0),
            "place": next((each.place for each in verdict.odd if each.place), ""), "why": verdict.why,
        }  # fmt: skip
        intent, audit = None, None
        if action in _INTENTS:
            clause = f"it showed no progress for {silent}"
            intent = _INTENTS[action], {"hang": clause, "jobAttempt": job.run.attempt}
            audit = AuditWrite(now, ACTOR, f"job.{action}", f"job:{job.id}", "hang-rule", True, {"bundle": name})
        message = f"{said} {_DONE[action]}".rstrip()
        told = HangTold(job.id, HUNG, message, data, intent, audit)
        await self._control.store.tell_of_hang(told, now, actor=ACTOR)
        self._control.wake()

    async def _action(self, job: Job, terms: HangTerms) -> HangAction:
        """What is done; a job is restarted three times at most."""
        if terms.action is not HangAction.RESTART:
            return terms.action
        events = await self._control.store.events_of(job.id, kinds=(HUNG,))
        restarts = sum(each.data.get("action") == HangAction.RESTART for each in events)
        return HangAction.WARN if restarts >= MOST_RESTARTS else HangAction.RESTART

    async def _over(self, job: Job, now: float) -> None:
        """Tell that a job that hung goes on."""
        told = HangTold(job.id, HUNG_OVER, "It shows progress again.")
        await self._control.store.tell_of_hang(told, now, actor=ACTOR)


def _job_of(labels: Sequence[str]) -> str:
    return labels[_JOB] if len(labels) >= len(TASK_LABELS) else ""


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1).encode()
