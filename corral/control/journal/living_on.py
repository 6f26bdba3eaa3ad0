"""Let the jobs of a journal live on under other rules, from its beginning: the same requests, and tasks that run as long.

The journal is replayed once as it was, for what became of its jobs. Then a driver plays the same requests, machines and
cordons under the other rules. What engines said is not played again: it follows from the run times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import BinaryIO, Final

import msgspec

from corral.control.core.configuration import Configured
from corral.control.core.core import Core
from corral.control.core.driver import Driver, Work
from corral.control.core.inputs import ConfigurationRead
from corral.control.core.intents import IntentsRead
from corral.control.core.memory_store import MemoryStore
from corral.control.core.world import Job
from corral.control.journal.beginnings import core_of
from corral.control.journal.blocks import BlockReader
from corral.control.journal.decisions import digest_of
from corral.control.journal.played_work import PlayedJobs, elastic_assumptions
from corral.control.journal.recorded_runs import Outside, Ran, RecordedRuns, TaskRuns, recorded_runs
from corral.control.journal.records import Begun, DocumentsRead, Step, configured, decoded, folded
from corral.control.journal.retold import Retold
from corral.control.journal.rules import Rules
from corral.control.what_if.adoption import Ending, adopt_tasks
from corral.control.what_if.course import SAMPLES
from corral.control.what_if.tally import Tally
from corral.kernel.errors import CorralError, InvalidInput
from corral.kernel.garbage import rarely_collected
from corral.kernel.ids import AttemptId, JobId, TaskKey, parse_attempt_id
from corral.kernel.units import DEVICE
from corral.model.runs import TaskRun
from corral.model.store_writes import IntentKind, LiveJob
from corral.model.what_if import Course, Courses, Known, WaitingJob
from corral.spec.errors import shorten
from corral.spec.job import UnifiedJob

IDLE_REVIEW_SECONDS: Final = 3600.0
"""Seconds between plans by time alone after an hour of them that began and ended nothing, under other rules."""


@dataclass(frozen=True)
class LivedOn:
    """What became of the jobs of a journal, as it was and under the other rules."""

    courses: Courses
    """Starts are in seconds after the submission of a job, or after the beginning for one that waited then."""
    seconds: float
    """From the beginning to the last step."""
    assumptions: tuple[str, ...] = ()
    """What is assumed of elastic jobs, in sentences."""
    problem: str = ""
    """Why the file could not be read to its end, in one sentence; "" if it could."""


def live_on(
    file: BinaryIO,
    *,
    policy: str = "",
    documents: Sequence[str] | None = None,
    told: Callable[[float], None] = lambda part: None,
) -> LivedOn:
    """Play a journal under a policy (`NAME+PART`), or under documents (their canonical texts), beside how it was.

    `told` hears now and then what part of it, from 0 to 1, is done.

    Raises InvalidInput for a file that is no journal, for one that another version of the scheduler decided, and for
    rules that this Corral cannot follow.
    """
    try:
        return _lived_on(file, policy, documents, told)
    except CorralError:
        raise
    except Exception as error:  # the inputs of a broken journal may be anything
        why = shorten(f"{type(error).__name__}: {error}", 300).rstrip(".")
        raise InvalidInput("broken-journal", f"The journal cannot be played under other rules: {why}.") from None


def _lived_on(file: BinaryIO, policy: str, documents: Sequence[str] | None, told: Callable[[float], None]) -> LivedOn:
    with rarely_collected():
        recorded = recorded_runs(BlockReader(file))
        file.seek(0)
        before = _AsItWas(recorded, lambda part: told(part / 2)).run(BlockReader(file))
        after = _Life(recorded, policy, documents)
        course = after.run(lambda part: told((1 + part) / 2))
    begun = recorded.begun
    for each in (before, course):
        each.starts = {job: at - after.since[job] for job, at in each.starts.items() if job in after.since}
    courses = Courses(begun.at, begun.state.cursor, tuple(after.jobs), (before,), (course,))
    return LivedOn(courses, recorded.until - begun.at, tuple(after.assumptions()), recorded.problem)


class _AsItWas:
    """The journal replayed as it was."""

    def __init__(self, recorded: RecordedRuns, told: Callable[[float], None]) -> None:
        begun = recorded.begun
        self._told = told
        self._seconds = recorded.until - begun.at
        self._tally = Tally(begun.at)
        self._looks = _looks(begun.at, recorded.until)
        self._next = next(self._looks)
        self._begun = begun

    def run(self, reader: BlockReader) -> Course:
        """Replay every step; raises InvalidInput at the first that decides otherwise."""
        core: Core | None = None
        rules, at = self._begun.rules, self._begun.at
        for data in reader:
            record = decoded(data)
            if isinstance(record, Begun):
                if core is None:
                    self._tally_beginning(core := core_of(record))
                else:
                    core = core_of(record)
                rules = record.rules
            elif isinstance(record, Step) and core is not None:
                at = record.at
                self._look(at, core)
                self._step(core, record, rules)
        assert core is not None  # `recorded_runs` found a beginning
        self._look(inf, core)
        return self._tally.course(at, core, Known())

    def _tally_beginning(self, core: Core) -> None:
        for job in core.world.jobs.values():
            self._tally.take_over(job)

    def _look(self, at: float, core: Core) -> None:
        """Look as often as a look was due before a time."""
        while self._next < at:
            self._tally.look(self._next - self._begun.at, core)
            self._told((self._next - self._begun.at) / self._seconds if self._seconds else 1.0)
            self._next = next(self._looks, inf)
            if self._next == inf:
                return

    def _step(self, core: Core, step: Step, rules: Rules) -> None:
        for each in step.inputs:
            if isinstance(each, IntentsRead):
                for record in _submitted(each):
                    self._tally.expect(record.id, record.queue, record.created_at)
        batch = core.step(folded(step.inputs, rules), step.at)
        if digest_of(batch) != step.digest:
            message = f"Step {step.number} is decided otherwise now than in the journal; `corral replay run` shows it."
            raise InvalidInput("journal-of-another", message)
        if batch.writes is not None:
            self._tally.collect(batch.writes.facts, core)


class _Life:
    """The same jobs under other rules."""

    def __init__(self, recorded: RecordedRuns, policy: str, documents: Sequence[str] | None) -> None:
        begun = recorded.begun
        self._recorded = recorded
        self._rules = Rules(policy, documents=False) if policy else begun.rules
        self._fixed: Configured | None = None
        if documents is not None:
            self._rules = msgspec.structs.replace(self._rules, documents=not policy)
            read = DocumentsRead(tuple(documents), begun.state.configured.change, begun.state.configured.following)
            self._fixed = configured(read, self._rules)
        self._core = core_of(begun, self._rules, self._fixed).fork(unexplained=True)
        self._store = MemoryStore(first_intent=begun.state.cursor + 1)
        self._driver = Driver(self._core, self._store, self._work, begun.at)
        self._driver.idle_review_seconds = IDLE_REVIEW_SECONDS
        self._retold = Retold(self._driver)
        self._played = PlayedJobs(recorded.work, self._driver, lambda job, seconds: inf)
        self._played.learn(recorded.until)
        self._tally = Tally(begun.at)
        self._runs: dict[tuple[JobId, TaskKey], TaskRuns] = {}
        self.jobs: list[WaitingJob] = []
        """The jobs that waited at the beginning, and those that were submitted."""
        self.since: dict[str, float] = {}
        """By job, when it was submitted, in seconds after the beginning; 0 for those that waited then."""
        self._retold.know((*begun.state.jobs, *begun.state.needed.values()), begun.state.groups)
        for job in self._core.world.jobs.values():
            self._take_over(job)

    def run(self, told: Callable[[float], None]) -> Course:
        """Play everything up to the last step of the journal; `told` hears what part of it is done."""
        begin, happenings, at = self._recorded.begun.at, self._recorded.happenings, 0
        for number, look in enumerate(_looks(begin, self._recorded.until)):
            told(number / SAMPLES)
            while at < len(happenings) and happenings[at][0] <= look:
                time, happening = happenings[at]
                self._driver.run(time)
                self._happen(happening)
                at += 1
            self._driver.run(look)
            self._tally.collect(self._store.facts, self._core)
            self._store.facts.clear()
            self._tally.look(look - begin, self._core)
        return self._tally.course(self._driver.now, self._core, Known())

    def assumptions(self) -> Iterable[str]:
        """What is assumed of elastic jobs."""
        return elastic_assumptions(self._played.elastic)

    # ---- what comes from outside

    def _happen(self, happening: Outside) -> None:
        if not isinstance(happening, DocumentsRead):
            if isinstance(happening, IntentsRead):
                self._expect(happening)
            self._retold.tell(self._driver.now, happening)
        elif self._fixed is None:
            self._driver.at(self._driver.now, ConfigurationRead(configured(happening, self._rules)))

    def _expect(self, read: IntentsRead) -> None:
        for record in _submitted(read):
            self._tally.expect(record.id, record.queue, record.created_at)
            asked = UnifiedJob.model_validate_json(record.doc).device_millis / DEVICE
            self._tell_of(record.id, record.name, record.user, record.queue, asked, record.created_at)

    def _tell_of(self, job: JobId, name: str, user: str, queue: str, devices: float, at: float) -> None:
        begin = self._recorded.begun.at
        self.since[job] = max(0.0, at - begin)
        self.jobs.append(WaitingJob(job, name, user, queue, devices, max(0.0, begin - at)))

    # ---- the tasks

    def _take_over(self, job: Job) -> None:
        self._tally.take_over(job)
        if (since := self._tally.waits_since.get(job.id)) is not None:
            self._tell_of(job.id, job.name, job.user, job.terms.queue, job.asked_millis() / DEVICE, since)
        adopt_tasks(self._driver, job, lambda task: self._ending(job, task))

    def _ending(self, job: Job, task: TaskRun) -> Ending:
        begun, attempt = task.started_at or self._driver.now, job.run.attempt_of(task)
        self._played.begin(job, attempt, begun)
        if self._played.is_elastic(job):
            return Ending(inf)
        ran = self._ran(attempt, begun)
        return Ending(max(self._driver.now, begun + ran.seconds), ran.code)

    def _work(self, job: Job, attempt: AttemptId) -> Work:
        """Answer the driver: a task runs as long as it did, or as its elastic job's size says, and obeys a stop at once."""
        if self._driver.runs(attempt):
            self._played.stop(job, attempt)
            self._runs_of(attempt).stop(self._driver.now)
            return Work(0.0)
        elastic = self._played.is_elastic(job)
        ran = Ran(inf, 0, self._played.start_seconds(job, attempt)) if elastic else self._ran(attempt, self._driver.now)
        self._played.begin(job, attempt, self._driver.now + ran.start_seconds)
        return Work(ran.seconds, ran.code, ran.start_seconds)

    def _ran(self, attempt: AttemptId, at: float) -> Ran:
        """The next run of a task; one of which none was recorded goes on until it is stopped."""
        return self._runs_of(attempt).begin(at) or Ran(inf, 0)

    def _runs_of(self, attempt: AttemptId) -> TaskRuns:
        parsed = parse_attempt_id(attempt)
        key = parsed.job, parsed.task
        runs = self._runs.get(key)
        if runs is None:
            runs = self._runs[key] = TaskRuns(self._recorded.runs.get(key, []))
        return runs


def _looks(begin: float, until: float) -> Iterator[float]:
    for number in range(SAMPLES + 1):
        yield begin + (until - begin) * number / SAMPLES


def _submitted(read: IntentsRead) -> Iterator[LiveJob]:
    """The jobs that are submitted and wait for devices."""
    for each in read.intents:
        record = read.jobs.get(each.job)
        if each.kind == IntentKind.SUBMITTED and record is not None and not record.run.external:
            yield record
