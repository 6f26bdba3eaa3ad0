"""Watch running jobs beside the control loop: look at the ranks of one that is silent, keep what is found, tell, and act.

What fails here is logged once, and never stops the scheduler.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Container, Coroutine, Mapping, Sequence
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
from corral.monitor.health.hangs import HangingTask
from corral.monitor.look_again import look_again
from corral.profiles.answers import Room
from corral.profiles.hang import Rank, Standing, Verdict, judge, judge_tasks
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
_LOG_SECONDS: Final = 5.0
"""Seconds in which the log of one task must answer when its end is kept."""
_CONFIRMED: Final = 2
"""Times that nothing may move in a gang before it hangs: a machine can stall for some seconds."""
_MOST_ANSWERS: Final = 64 * 1024**2
"""Bytes of all tasks' answers about one job."""
_LOG_BYTES: Final = 64 * 1024
_MOST_STOPPED: Final = 100
"""Jobs that wait to be looked at because some of their tasks stopped; further ones are signs of their nodes alone."""
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
        self._stopped: dict[JobId, tuple[int, dict[str, HangingTask]]] = {}
        """By job its attempt and the tasks that stopped while their peers went on, by name, until they are looked at."""
        self._beside: set[asyncio.Task[None]] = set()
        """What is done in the folder that servers share: nothing waits for it."""
        self._waits: dict[JobId, str] = {}
        """By silent job why its ranks are not looked at yet, as it was logged."""
        self._cleared_at = float("-inf")
        self.looked = 0
        """Jobs whose ranks were looked at."""

    async def run(self, ready: asyncio.Event) -> None:
        """Watch from when control leads until cancelled."""
        try:
            await look_again(ready, self.look, lambda: EVERY_SECONDS, "jobs that hang are not found")
        finally:
            await self.close()

    async def close(self) -> None:
        """Give up what is in progress."""
        tasks = [*self._looking.values(), *self._beside]
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

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
            self._do_beside(self._bundles.clear(now))
        self._terms.forget(control.world.jobs)
        self._lives.forget(control.world.jobs)
        told = [each for each in watched.values() if each[2].told]
        unread = await self._lives.look_beside([job for job, _, life in watched.values() if not life.steps], now)
        if unread:
            log.warning("there was no time for the logs of some running jobs", jobs=len(unread))
        for job, _, life in told:
            if not life.told:
                await self._over(job, now)
        due = {
            job.id: (job, terms, life)
            for job, terms, life in watched.values()
            if life.due(terms, now) and job.id not in unread
        }
        self._waits = {job: why for job, why in self._waits.items() if job in due}
        for job, terms, life in due.values():
            if why := self._why_not_now(job.id):
                self._note(job.id, why)
                continue
            self._waits.pop(job.id, None)
            self._begin(job.id, self._look_at(job, terms, life))
        self._look_at_the_stopped()

    def stopped(self, tasks: Sequence[HangingTask]) -> None:
        """Have the ranks of jobs looked at of which these tasks stopped while their peers went on."""
        for each in tasks:
            job = self._control.world.jobs.get(each.job)
            if job is None or (each.job not in self._stopped and len(self._stopped) >= _MOST_STOPPED):
                continue
            attempt, known = self._stopped.get(each.job, (job.run.attempt, {}))
            known = known if attempt == job.run.attempt else {}
            self._stopped[each.job] = job.run.attempt, {**known, str(each.key): each}

    def _look_at_the_stopped(self) -> None:
        for job_id, (attempt, tasks) in list(self._stopped.items()):
            job = self._control.world.jobs.get(job_id)
            begun_again = job is not None and job.run.attempt != attempt
            if job is None or begun_again or self._terms.of(job, self._control.configured.now) is None:
                del self._stopped[job_id]
            elif not self._why_not_now(job_id):
                del self._stopped[job_id]
                self._begin(job_id, self._look_at_tasks(job, tasks))

    def _begin(self, job: JobId, looks: Coroutine[Any, Any, None]) -> None:
        """Look at the ranks of a job beside."""
        task = self._looking[job] = asyncio.create_task(looks)
        task.add_done_callback(lambda done: self._looked(job, done))

    async def settled(self) -> None:
        """Wait until no ranks are being looked at."""
        while self._looking:
            await asyncio.wait(list(self._looking.values()))

    def _why_not_now(self, job: JobId) -> str:
        """Why the ranks of a silent job cannot be looked at now; "" if they can."""
        if job in self._looking:
            return "its ranks are being looked at for longer than it may be silent"
        if len(self._looking) >= _AT_ONCE:
            return f"{_AT_ONCE} other jobs are being looked at"
        return ""

    def _note(self, job: JobId, why: str) -> None:
        """Log once why a silent job is not looked at yet."""
        if self._waits.get(job) != why:
            self._waits[job] = why
            log.info("a silent job is not looked at yet", job=job, why=why)

    def _looked(self, job: JobId, done: asyncio.Task[None]) -> None:
        self._looking.pop(job, None)
        if not done.cancelled() and (error := done.exception()) is not None:
            why = error.message if isinstance(error, CorralError) else repr(error)
            log.warning("a job that is silent could not be looked at", job=job, error=why[:500])

    def _do_beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something of which a look waits for nothing; what goes wrong is logged."""

        def done(task: asyncio.Task[None]) -> None:
            self._beside.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                log.warning("bundles of jobs that hung could not be shared or cleared", error=repr(error)[:500])

        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(done)

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
        if why := self._why_not_judged(job.id, attempts, life, before):
            log.info("a silent job is not judged", job=job.id, why=why)
            return
        if (life.told and not verdict.certain) or not (verdict.hangs or life.overdue(terms, now)):
            works = bool(verdict.odd) and not verdict.hangs
            log.info("a silent job works" if works else "a silent job is in doubt", job=job.id, why=verdict.why)
            return
        files = await self._files(job, attempts, looks, verdict, life.silent_for(now))
        name, size = await self._keep(job.id, files, now)
        if why := self._why_not_judged(job.id, attempts, life, before):
            log.info("a silent job is not judged", job=job.id, why=why)
            await self._bundles.drop(job.id, name)
            return
        action = await self._action(job, terms)
        silent = format_duration(max(1, int(life.silent_for(now))))
        what = "No step was reported" if life.steps else "Neither its log nor a device showed anything"
        await self._tell(job, verdict, f"{what} for {silent}.", life.silent_for(now), name, size, action)
        log.info("a job hangs", job=job.id, why=verdict.why, action=str(action))
        if life.at == before:
            life.told, life.doubtful = True, action is HangAction.WARN and not verdict.certain

    async def _look_at_tasks(self, job: Job, stopped: Mapping[str, HangingTask]) -> None:
        """Look at the ranks of a job of which some tasks stopped while the others go on; tell of those that hang.

        Their node has its sign already, and the job goes on, so nothing else is done about it.
        """
        running = running_attempts(job)
        attempts = {attempt: task for attempt, task in running.items() if task in stopped}
        attempts |= running  # those that stopped are among the ones that are looked at, also of a large job
        looks, verdict = await self._judged(attempts, stopped)
        for _ in range(_CONFIRMED - 1):
            if verdict.odd and not _works(verdict):
                looks, verdict = await self._judged(attempts, stopped)
        self.looked += 1
        if _works(verdict) or not verdict.odd:
            log.info("a task that reports no steps works", job=job.id, why=verdict.why)
            return
        now = self._clock.now()
        still = sorted({each.task for each in verdict.odd})
        silent = max(stopped[task].seconds for task in still)
        files = await self._files(job, attempts, looks, verdict, silent)
        current = self._control.world.jobs.get(job.id)
        if current is None or running_attempts(current).keys() != running.keys():
            log.info("a silent task is not judged", job=job.id, why="the job's tasks changed while they were looked at")
            return
        name, size = await self._keep(job.id, files, now)
        names = ", ".join(still[:3]) + (f" and {len(still) - 3} more" if len(still) > 3 else "")
        said = f"{names} reported no step for {format_duration(max(1, int(silent)))} while the others went on."
        await self._tell(job, verdict, said, silent, name, size, HangAction.WARN)
        log.info("tasks of a job hang", job=job.id, why=verdict.why)

    def _why_not_judged(self, job: JobId, attempts: Mapping[AttemptId, str], life: Life, before: float) -> str:
        """Why a job that was looked at is not judged; "" if it is. `before` is its last sign when the look began."""
        current = self._control.world.jobs.get(job)
        if current is None or running_attempts(current).keys() != attempts.keys():
            return "its tasks changed while they were looked at"
        return "it showed progress while it was looked at" if life.at != before else ""

    async def _judged(
        self, attempts: Mapping[AttemptId, str], stopped: Container[str] | None = None
    ) -> tuple[list[TaskLooks], Verdict]:
        """Look at tasks and judge them: as a gang, or the `stopped` ones among them."""
        looks = await self._looks(attempts)
        ranks = [rank for each in looks for rank in each.ranks]
        return looks, judge(ranks) if stopped is None else judge_tasks(ranks, stopped)

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
        some = asyncio.Semaphore(_TOGETHER)
        for ends in await asyncio.gather(
            *(self._log_ends(*each, some) for each in list(attempts.items())[:_MOST_TASKS])
        ):
            files |= ends
        for each in looks:
            files |= each.files
            files |= {name: bytes(data) for name, data in each.dumps.items()}
        return files

    async def _log_ends(self, attempt: AttemptId, task: str, some: asyncio.Semaphore) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        if self._logs is None:
            return found
        try:
            async with some, asyncio.timeout(_LOG_SECONDS):
                for stream in await self._logs.streams(attempt):
                    source = await self._logs.source(attempt, stream)
                    try:
                        begin = max(0, await source.size() - _LOG_BYTES)
                        found[f"{task}.{stream}.log"] = (await source.read(begin, _LOG_BYTES))[1]
                    finally:
                        await source.close()
        except TimeoutError:
            found[f"{task}.log"] = f"The log did not answer within {_LOG_SECONDS:g} s.".encode()
        except CorralError as error:
            found[f"{task}.log"] = error.message.encode()
        except OSError as error:
            found[f"{task}.log"] = (error.strerror or repr(error)).encode()
        return found

    async def _keep(self, job: JobId, files: Mapping[str, bytes], now: float) -> tuple[str, int]:
        """Keep the bundle on this disk; its name ("" where that failed) and size."""
        name = bundle_name(now)
        try:
            return name, await self._bundles.keep(job, name, files, now)
        except OSError as error:
            log.warning("the bundle of a job that hangs could not be kept", job=job, error=error.strerror)
            return "", 0

    async def _tell(
        self, job: Job, verdict: Verdict, said: str, silent: float, name: str, size: int, action: HangAction
    ) -> None:
        """Store the event with the bundle's name, which begins with what was `said`, and ask for the action."""
        data: dict[str, Any] = {
            "bundle": name, "bytes": size, "action": str(action), "silentSeconds": round(silent),
            "odd": list(dict.fromkeys(each.task for each in verdict.odd)),
            "collective": next((each.collective for each in verdict.odd if each.collective), ""),
            "number": next((each.number for each in verdict.odd if each.number), 0),
            "place": next((each.place for each in verdict.odd if each.place), ""), "why": verdict.why,
        }  # fmt: skip
        now, intent, audit = self._clock.now(), None, None
        if action in _INTENTS:
            clause = f"it showed no progress for {format_duration(max(1, int(silent)))}"
            intent = _INTENTS[action], {"hang": clause, "jobAttempt": job.run.attempt}
            audit = AuditWrite(now, ACTOR, f"job.{action}", f"job:{job.id}", "hang-rule", True, {"bundle": name})
        message = f"{said} {verdict.why} {_DONE[action]}".rstrip()
        told = HangTold(job.id, HUNG, message, data, intent, audit)
        await self._control.store.tell_of_hang(told, now, actor=ACTOR)
        self._control.wake()
        if name:
            self._do_beside(self._bundles.share(job.id, name))

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


def _works(verdict: Verdict) -> bool:
    """Whether one of the odd ranks moves."""
    return any(each.standing is Standing.WORKS for each in verdict.odd)


def _job_of(labels: Sequence[str]) -> str:
    return labels[_JOB] if len(labels) >= len(TASK_LABELS) else ""


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1).encode()
