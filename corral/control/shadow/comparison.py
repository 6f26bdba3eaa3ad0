"""Let a candidate decide beside the policy in force, on the inputs of a journal, and compare both hour by hour.

The journal is read a day ahead for how long tasks ran, and then what was decided is replayed with the candidate beside
it. The candidate begins as a fork of the core in force, and gets the same requests, machines and cordons at the same
times. It never acts: it is a core in memory, and the journal is only read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Final

from corral.control.core.core import Batch, Core
from corral.control.core.waiting_reason import waiting_reason
from corral.control.journal.played_work import elastic_assumptions
from corral.control.journal.recorded_runs import Outside
from corral.control.journal.records import Begun, Checkpoint, Record, Step, beginning_at, decoded, time_of
from corral.control.shadow.decisions import Decision, DecisionReader, Kind
from corral.control.shadow.differences import Differences
from corral.control.shadow.foresight import Foresight, KnownRuns
from corral.control.shadow.hours import HOUR, HourBook
from corral.control.shadow.lives import Candidate, CandidateRules, InForce
from corral.control.shadow.pairing import Pair, Pairing
from corral.control.shadow.source import Source
from corral.control.shadow.starts import Started, Starts
from corral.control.shadow.tables import Rows, added
from corral.control.shadow.unplayed import Unplayed
from corral.control.what_if.run_times import RunTimes
from corral.control.what_if.tally import usable_devices
from corral.kernel.errors import CorralError, InvalidInput, NotFound
from corral.kernel.garbage import rarely_collected
from corral.kernel.units import counted
from corral.model.phases import Phase, phase
from corral.model.policy_shadow import Counts, ShadowReport
from corral.model.records import rfc3339
from corral.spec.errors import shorten

MOST_HOURS: Final = 31 * 24
"""The most clock hours that are compared at once."""
MOST_DIFFERENCES: Final = 10_000
READ_AHEAD: Final = 24 * HOUR
"""Seconds of the journal that are known to the candidate before they happen, for the run times of tasks."""
_TOLD: Final = 200
"""Records between two calls of who is told."""
WITHIN: Final = 60.0
"""Seconds within which two equal decisions are one: clocks, starts and ends differ a little between two lives."""


@dataclass(frozen=True)
class Question:
    """What is compared. Times are in seconds since 1970."""

    rules: CandidateRules
    candidate: str
    """The candidate, for people."""
    since: float = -inf
    """When the candidate forks; before the journal's beginning: there."""
    until: float = inf
    idle_until: float = 0.0
    """Up to when nothing happened if the journal ends before; 0: it ends with its last step."""
    anew: bool = False
    """Whether it forks again at each whole hour."""
    most: int = 20
    """The differences that are listed."""
    within: float = WITHIN
    stop: Callable[[], bool] = field(default=lambda: False)
    """Whether to end now, with what has been compared."""
    told: Callable[[float], None] = field(default=lambda at: None)
    """Hears now and then how far it has come."""


def last_moment(since: float) -> float:
    """Up to when a comparison from a time on may go."""
    return (since // HOUR + MOST_HOURS) * HOUR - 1.0


def compare(source: Source, question: Question) -> ShadowReport:
    """Compare a candidate with what a journal says was decided.

    A journal that breaks off or cannot be followed is compared up to there, and the report says why. Raises InvalidInput
    or NotFound for one in which there is nothing to compare, and for rules that the scheduler cannot follow.
    """
    _check_length(source, question)
    comparison = Comparison(question)
    comparison.read(source.records(question.since))
    return comparison.finish(source.problem)


def _check_length(source: Source, question: Question) -> None:
    """Refuse a journal of too many hours before any of it is compared."""
    begin = end = inf
    for data in source.records(question.since):
        at = beginning_at(data)
        if at is not None and (begin == inf or at <= question.since):
            begin = end = max(question.since, at)
        elif at is None and begin < inf and (made := time_of(data)) <= question.until:
            end = made
    if begin < inf:
        _check_hours(begin, end)


def _check_hours(begin: float, end: float) -> None:
    count = int(end // HOUR - begin // HOUR) + 1
    if count > MOST_HOURS:
        message = (
            f"The journal has {counted(count, 'hour')} from {rfc3339(begin)} on, and at most {MOST_HOURS} are "
            "compared at once; use --from and --to."
        )
        raise InvalidInput("too-many-hours", message)


class _Side:
    """What is written down of one of both."""

    def __init__(self, begin: float) -> None:
        self.book = HourBook(begin)
        self.reader: DecisionReader | None = None


class Comparison:
    """A comparison that goes on as its journal grows, hour by hour.

    An hour is compared when the journal has been read `READ_AHEAD` beyond it, so that the run times of its tasks are
    known. Then nothing of it changes any more, however much of the journal is read at once.
    """

    def __init__(self, question: Question) -> None:
        self._question = question
        self._ahead = Foresight()
        self._unplayed = Unplayed()
        self._begin = self._now = question.since
        self._hour_end = inf
        """The end of the hour that is to be compared next."""
        self._in_force: InForce | None = None
        self._candidate: Candidate | None = None
        self._sides: tuple[_Side, _Side] = (_Side(0.0), _Side(0.0))
        self._name = ""
        self._pairing = Pairing(question.within)
        self._starts = Starts(question.within)
        self._differences = Differences(question.most)
        self._undecided = 0
        self._counts: dict[int, dict[Kind, Counts]] = {}
        self._usable: dict[int, int] = {}
        self._expected = RunTimes((), seed=0)
        """Of runs that the journal does not tell to their end."""
        self._next: Record | None = None
        """The record that is replayed next, if it was taken out already."""
        self._played = 0
        self._is_over = False
        """Whether it goes on no further: it was stopped, or the journal cannot be followed."""
        self._notes: list[str] = []
        self._problem = ""

    # ---- reading

    def read(self, records: Iterable[bytes]) -> None:
        """Read records, and compare the hours that are known by then.

        Raises InvalidInput for a record that cannot be read, for rules that the scheduler cannot follow, and for too
        many hours.
        """
        with rarely_collected():
            for data in records:
                if not self._is_over and self._reads(data):
                    self._unplayed.add(data)

    def _reads(self, data: bytes) -> bool:
        """Read a record; returns whether it is to be replayed."""
        at = beginning_at(data)
        if at is not None and self._begins(at):
            self._begin_with(decoded(data))
            return True
        if self._ahead.begun_at == inf:
            return False
        record = decoded(data)
        if isinstance(record, Step):
            self._read_step(record)
        elif isinstance(record, Begun):
            self._ahead.begin_again(record)
        return not isinstance(record, Checkpoint)

    def _begins(self, at: float) -> bool:
        """Whether the journal is replayed from a beginning at a time on, as far as is known now."""
        return self._ahead.begun_at == inf or at <= self._question.since

    def _begin_with(self, record: object) -> None:
        begun = record.begun if isinstance(record, Checkpoint) else record
        if not isinstance(begun, Begun):
            raise InvalidInput("no-beginning", "A record of the journal says that it is a beginning and is none.")
        self._ahead = Foresight()
        self._ahead.begin(begun)
        self._unplayed.clear()
        self._begin = self._now = max(self._question.since, begun.at)
        self._hour_end = (self._begin // HOUR + 1) * HOUR
        self._sides = (_Side(self._begin), _Side(self._begin))

    def _read_step(self, step: Step) -> None:
        is_compared = step.at <= self._question.until
        if is_compared:
            _check_hours(self._begin, step.at)
        while step.at > self._hour_end + READ_AHEAD and (is_compared or self._ahead.until >= self._hour_end):
            self._compare_hour()
            if self._is_over:
                return
        self._ahead.take(step)
        if is_compared:
            self._ahead.until = step.at

    def _compare_hour(self) -> None:
        """Compare an hour to its end, and forget the jobs that are over under both."""
        end = self._hour_end
        self._hour_end += HOUR
        self._learn()
        self._replay(end)
        if self._is_over:
            return
        if self._candidate is None:
            self._fork()
        self._advance(end)
        assert self._in_force is not None and self._candidate is not None
        live = self._in_force.core.world.jobs.keys() | self._candidate.core.world.jobs.keys()
        gone = self._ahead.forget(live, end)
        self._starts.forget(gone, end)
        self._candidate.forget(gone)

    def _learn(self) -> None:
        """Take over what has been read ahead."""
        self._expected.learn(self._ahead.past())
        if self._candidate is not None:
            self._candidate.learn()

    # ---- replaying

    def _replay(self, before: float) -> None:
        """Replay the journal up to a time with the candidate beside it."""
        while not self._is_over and (record := self._next or self._taken()) is not None:
            if _time_of(record) >= before:
                self._next = record
                return
            self._next = None
            if self._question.stop():
                self._is_over = True
                self._notes.append(f"It was stopped at {rfc3339(self._now)}.")
                return
            if not self._played % _TOLD:
                self._question.told(self._now)
            self._played += 1
            self._take(record)

    def _taken(self) -> Record | None:
        data = self._unplayed.take()
        return None if data is None else decoded(data)

    def _take(self, record: Record) -> None:
        """Take a record. A journal that cannot be followed further ends there."""
        try:
            if isinstance(record, Step):
                self._step(record)
            elif self._in_force is None:
                self._in_force = InForce(record.begun if isinstance(record, Checkpoint) else record)
            elif isinstance(record, Begun):
                self._begin_again(record)
        except CorralError as error:
            if self._candidate is None:
                raise
            self._problem, self._is_over = error.message, True
        except Exception as error:  # the inputs of a broken journal may be anything
            why = shorten(f"{type(error).__name__}: {error}", 300).rstrip(".")
            self._problem = f"The journal cannot be followed beyond {rfc3339(self._now)}: {why}."
            self._is_over = True

    def _step(self, step: Step) -> None:
        in_force = self._in_force
        if step.at > self._question.until or in_force is None:
            return
        if self._candidate is None and step.at >= self._begin:
            self._fork()
        self._advance(step.at)
        batch = in_force.step(step)
        if self._candidate is None:
            return
        self._made(in_force.core, batch, step.at, candidate=False)
        for each in step.inputs:
            if isinstance(each, Outside):
                self._candidate.take(step.at, each, in_force.rules)
        self._candidate.run(step.at)

    def _begin_again(self, begun: Begun) -> None:
        in_force, candidate = self._in_force, self._candidate
        assert in_force is not None
        last = self._now
        if candidate is not None:
            self._advance(begun.at)
        missing = in_force.begin_again(begun)
        if candidate is None:
            return
        if missing:
            self._notes.append(
                f"The journal lacks the requests between {rfc3339(last)} and {rfc3339(self._now)}; the candidate forked "
                "again after them."
            )
            self._fork()
        else:
            candidate.take_beginning(begun)

    # ---- going on

    def _fork(self) -> Candidate:
        """Have the candidate begin with what is in force now."""
        in_force, now = self._in_force, self._now
        assert in_force is not None
        self._drop()
        self._starts.close(now)
        core = in_force.core
        running = [job.id for job in core.world.jobs.values() if phase(job.run) is not Phase.WAITING]
        self._starts.leave_out(running)
        self._name = self._name or core.policy.name
        for side in self._sides:
            side.book.take_over(core)
            side.reader = DecisionReader(core)
        runs = KnownRuns(self._ahead, self._expected, now)
        self._candidate = Candidate(in_force, self._question.rules, runs, now, self._candidate_made)
        return self._candidate

    def _advance(self, at: float) -> None:
        """Go on to a time; of the candidate's steps at that time none is made yet."""
        candidate, in_force = self._candidate, self._in_force
        if candidate is None or in_force is None:
            return
        while self._now < at:
            hour = int(self._now // HOUR)
            due = self._pairing.due_at
            to = min(at, (hour + 1) * HOUR, inf if due is None else max(due, self._now))
            candidate.run_before(to)
            for side in self._sides:
                side.book.advance(to)
            self._now = to
            if to < at:
                self._settle(to)
            self._usable[hour] = usable_devices(in_force.core)
            if self._question.anew and to == (hour + 1) * HOUR:
                candidate = self._fork()

    def finish(self, problem: str = "", idle_until: float = 0.0) -> ShadowReport:
        """Compare what has been read to its end; nothing can be read after that.

        `problem` is why reading ended. With `idle_until`, nothing happened up to then if the journal ends before. Raises
        InvalidInput or NotFound for a journal in which there is nothing to compare, and as `read` does.
        """
        ahead = self._ahead
        if ahead.begun_at == inf or not ahead.until:
            raise NotFound("nothing-to-compare", problem or "The journal has no step of that time to compare.")
        end = max(ahead.until, self._question.idle_until, idle_until)
        if end < self._begin:
            message = f"The journal ends at {rfc3339(ahead.until)}, before the time from which it is to be compared."
            raise NotFound("nothing-since", message)
        _check_hours(self._begin, end)
        if self._begin > self._question.since > -inf:
            self._notes.insert(0, f"The journal is kept from {rfc3339(self._begin)} on; the comparison begins there.")
        with rarely_collected():
            while self._hour_end <= end and not self._is_over:
                self._compare_hour()
            self._close(end)
        return self._report(problem, self._now)

    def _close(self, end: float) -> None:
        self._learn()
        self._replay(inf)
        if self._candidate is None and self._in_force is not None:
            self._fork()
        self._advance(self._now if self._is_over else end)
        if self._candidate is not None:
            self._candidate.run(self._now)
        self._settle(self._now)
        for side in self._sides:
            side.book.close(self._now)
        self._drop()
        self._starts.close(self._now)

    # ---- comparing

    def _candidate_made(self, core: Core, batch: Batch, now: float) -> None:
        self._made(core, batch, now, candidate=True)

    def _made(self, core: Core, batch: Batch, now: float, *, candidate: bool) -> None:
        """Write down what one of both has decided in a step."""
        side = self._sides[candidate]
        side.book.advance(now)
        if batch.writes is not None:
            for job, at in side.book.collect(batch.writes.facts, core):
                live = core.world.jobs.get(job)
                if live is not None:
                    self._starts.add(job, Started(at, live.name, live.user, live.terms.queue), candidate=candidate)
            for each in batch.writes.facts:
                if each.fact.kind == "job.completed":
                    self._starts.end(each.job, each.at, candidate=candidate)
            assert side.reader is not None
            for decision in side.reader.read(batch.writes, core):
                pair = self._pairing.add(decision, candidate=candidate)
                if pair is not None:
                    self._count(pair)
        side.book.look(core)

    def _settle(self, until: float) -> None:
        for pair in self._pairing.settle(until):
            self._count(pair)
            self._differences.add(pair, self._why(pair))

    def _drop(self) -> None:
        """Take out what is not known to be alike or not, as one of both goes on no further."""
        for pair in self._pairing.drop():
            self._undecided += not self._differences.complete(pair)

    def _count(self, pair: Pair) -> None:
        made = pair.in_force or pair.candidate
        assert made is not None
        hour = self._counts.setdefault(int(made.at // HOUR), {})
        counts = hour.setdefault(made.kind, Counts())
        if pair.in_force is None:
            counts.only_candidate += 1
        elif pair.candidate is None:
            counts.only_in_force += 1
        else:
            counts.alike += 1
            counts.elsewhere += pair.elsewhere

    def _why(self, pair: Pair) -> str:
        """Why the other one did not decide the same, as far as it is known now."""
        made = pair.in_force or pair.candidate
        assert made is not None and self._in_force is not None and self._candidate is not None
        if made.kind is not Kind.START:
            return made.why
        return _reason(self._in_force.core if pair.in_force is None else self._candidate.core, made)

    # ---- the report

    def _report(self, problem: str, end: float) -> ShadowReport:
        rows = Rows((self._sides[0].book, self._sides[1].book), self._begin, end)
        hours = rows.hours(self._counts, self._usable)
        total = rows.total(hours)
        kinds = {str(kind): added(hour[kind] for hour in self._counts.values() if kind in hour) for kind in Kind}
        return ShadowReport(
            begin=rfc3339(self._begin),
            end=rfc3339(end),
            in_force=self._name,
            candidate=self._question.candidate,
            within=self._question.within,
            decisions=kinds,
            undecided=self._undecided,
            hours=hours,
            total=total,
            differences=self._differences.told(),
            differences_left_out=self._differences.left_out,
            earlier=self._starts.earlier,
            later=self._starts.later,
            same=self._starts.same,
            gains=self._starts.gains,
            losses=self._starts.losses,
            assumptions=tuple(self._assumptions()),
            notes=tuple(self._notes),
            problem=self._problem or problem,
        )

    def _assumptions(self) -> Iterator[str]:
        yield "Requests come when they came, and machines come and go as they did."
        yield "Tasks take as long to start, to run and to stop as they did."
        yield from elastic_assumptions({} if self._candidate is None else self._candidate.elastic)
        yield "A preempted task goes on where it was if it did so in the journal, else from the beginning."
        known = self._expected.known
        for count, how in (
            (known.own, "as long as their maxDuration"),
            (known.alike, "as long as ended jobs of the same user, name and size"),
            (known.queue, "as long as ended jobs of the same queue"),
            (known.cluster, "as long as other ended jobs"),
            (known.nothing, "on to the end"),
        ):
            if count:
                yield f"Of {counted(count, 'job')} the journal has no end: run {how}."


def _time_of(record: Record) -> float:
    return record.begun.at if isinstance(record, Checkpoint) else record.at


def _reason(core: Core, made: Decision) -> str:
    """Why a core has a job wait, in one sentence; "" if it does not wait or that is not known."""
    job = core.world.jobs.get(made.job)
    if job is None or phase(job.run) is not Phase.WAITING:
        return ""
    waiting = waiting_reason(job, Phase.WAITING, core.world.jobs)
    return "" if waiting is None else waiting.message
