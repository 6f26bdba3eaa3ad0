"""Let a candidate decide beside the policy in force, on the inputs of a journal, and compare both hour by hour.

The journal is read twice: once for how long tasks ran, and once to replay what was decided with the candidate beside
it. The candidate begins as a fork of the core in force, and gets the same requests, machines and cordons at the same
times. It never acts: it is a core in memory, and the journal is only read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Final

from corral.control.core.core import Batch, Core
from corral.control.core.waiting_reason import waiting_reason
from corral.control.journal.recorded_runs import Outside
from corral.control.journal.records import Begun, Checkpoint, Step, beginning_at, decoded
from corral.control.shadow.decisions import Decision, DecisionReader, Kind
from corral.control.shadow.differences import Differences
from corral.control.shadow.foresight import Foresight, KnownRuns, read_ahead
from corral.control.shadow.hours import HOUR, HourBook
from corral.control.shadow.lives import Candidate, CandidateRules, InForce
from corral.control.shadow.pairing import Pair, Pairing
from corral.control.shadow.source import Source
from corral.control.shadow.starts import Started, Starts
from corral.control.shadow.tables import Rows, added
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


def compare(source: Source, question: Question) -> ShadowReport:
    """Compare a candidate with what a journal says was decided.

    A journal that breaks off or cannot be followed is compared up to there, and the report says why. Raises InvalidInput
    or NotFound for one in which there is nothing to compare, and for rules that the scheduler cannot follow.
    """
    ahead = read_ahead(source.records(question.since), question.since, question.until)
    if ahead.begun_at == inf or not ahead.until:
        raise NotFound("nothing-to-compare", source.problem or "The journal has no step of that time to compare.")
    begin, end = max(question.since, ahead.begun_at), max(ahead.until, question.idle_until)
    if end < begin:
        message = f"The journal ends at {rfc3339(ahead.until)}, before the time from which it is to be compared."
        raise NotFound("nothing-since", message)
    if end // HOUR - begin // HOUR >= MOST_HOURS:
        message = (
            f"The journal has {counted(int(end // HOUR - begin // HOUR) + 1, 'hour')} from {rfc3339(begin)} on, and at "
            f"most {MOST_HOURS} are compared at once; use --from and --to."
        )
        raise InvalidInput("too-many-hours", message)
    with rarely_collected():
        comparison = _Comparison(question, ahead, begin, end)
        comparison.read(source)
    return comparison.report(source.problem)


class _Side:
    """What is written down of one of both."""

    def __init__(self, begin: float) -> None:
        self.book = HourBook(begin)
        self.reader: DecisionReader | None = None


class _Comparison:
    def __init__(self, question: Question, ahead: Foresight, begin: float, end: float) -> None:
        self._question = question
        self._ahead = ahead
        self._begin = begin
        self._end = end
        self._now = begin
        self._in_force: InForce | None = None
        self._candidate: Candidate | None = None
        self._sides = (_Side(begin), _Side(begin))
        self._name = ""
        self._pairing = Pairing(question.within)
        self._starts = Starts(question.within)
        self._differences = Differences(question.most)
        self._counts: dict[int, dict[Kind, Counts]] = {}
        self._usable: dict[int, int] = {}
        self._undecided = 0
        self._expected = RunTimes(ahead.past(), seed=0)
        """Of runs that the journal does not tell to their end."""
        self._notes: list[str] = []
        self._problem = ""
        if begin > question.since > -inf:
            self._notes.append(f"The journal is kept from {rfc3339(begin)} on; the comparison begins there.")

    # ---- reading

    def read(self, source: Source) -> None:
        """Replay the journal with the candidate beside it."""
        for number, data in enumerate(source.records(self._question.since)):
            if self._in_force is None and beginning_at(data) != self._ahead.begun_at:
                continue
            if self._question.stop():
                self._end = self._now
                self._notes.append(f"It was stopped at {rfc3339(self._now)}.")
                break
            if not number % _TOLD:
                self._question.told(self._now)
            if not self._can_take(data):
                break
        self._close()

    def _can_take(self, data: bytes) -> bool:
        """Take a record; returns whether there may be more. A journal that cannot be followed further ends there."""
        try:
            return self._take(data)
        except CorralError as error:
            if self._candidate is None:
                raise
            self._problem = error.message
        except Exception as error:  # the inputs of a broken journal may be anything
            why = shorten(f"{type(error).__name__}: {error}", 300).rstrip(".")
            self._problem = f"The journal cannot be followed beyond {rfc3339(self._now)}: {why}."
        self._end = self._now
        return False

    def _take(self, data: bytes) -> bool:
        """Take a record; returns whether there may be more."""
        record = decoded(data)
        if isinstance(record, Step):
            return self._step(record)
        if self._in_force is None:
            self._in_force = InForce(record.begun if isinstance(record, Checkpoint) else record)
        elif isinstance(record, Begun):
            self._begin_again(record)
        return True

    def _step(self, step: Step) -> bool:
        in_force = self._in_force
        if step.at > self._ahead.until or in_force is None:
            return False
        if self._candidate is None and step.at >= self._begin:
            self._fork()
        self._advance(step.at)
        batch = in_force.step(step)
        if self._candidate is None:
            return True
        self._made(in_force.core, batch, step.at, candidate=False)
        for each in step.inputs:
            if isinstance(each, Outside):
                self._candidate.take(step.at, each, in_force.rules)
        self._candidate.run(step.at)
        return True

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

    def _close(self) -> None:
        if self._candidate is None and self._in_force is not None:
            self._fork()
        self._advance(self._end)
        if self._candidate is not None:
            self._candidate.run(self._end)
        self._settle(self._end)
        for side in self._sides:
            side.book.close(self._end)
        self._drop()
        self._starts.close(self._end)

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

    def report(self, problem: str) -> ShadowReport:
        """What was compared."""
        rows = Rows((self._sides[0].book, self._sides[1].book), self._begin, self._end)
        hours = rows.hours(self._counts, self._usable)
        total = rows.total(hours)
        kinds = {str(kind): added(hour[kind] for hour in self._counts.values() if kind in hour) for kind in Kind}
        return ShadowReport(
            begin=rfc3339(self._begin),
            end=rfc3339(self._end),
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
        yield "Tasks take as long to start, to run and to stop as they did, whatever the size of an elastic job."
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


def _reason(core: Core, made: Decision) -> str:
    """Why a core has a job wait, in one sentence; "" if it does not wait or that is not known."""
    job = core.world.jobs.get(made.job)
    if job is None or phase(job.run) is not Phase.WAITING:
        return ""
    waiting = waiting_reason(job, Phase.WAITING, core.world.jobs)
    return "" if waiting is None else waiting.message
