"""Run a core over a journal again, and compare what it decides with what was decided, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_fields
from itertools import islice
from math import inf, nextafter
from typing import BinaryIO, Final

import msgspec

from corral.control.core.core import Batch, Core
from corral.control.core.intents import IntentsRead
from corral.control.core.waiting_reason import waiting_reason
from corral.control.core.world import Job, World
from corral.control.journal.beginnings import core_of
from corral.control.journal.blocks import BlockReader
from corral.control.journal.decisions import WaitingReasons, decisions_of, digest_of, events_of
from corral.control.journal.records import COMMANDS, WAIT, Begun, Decision, Step, beginning_at, decoded, encoded, folded
from corral.control.journal.rules import Rules
from corral.control.journal.writer import Records
from corral.kernel.errors import InvalidInput
from corral.kernel.garbage import rarely_collected
from corral.kernel.ids import JobId
from corral.model.phases import phase
from corral.spec.errors import shorten

_NODES: Final = 5
"""The most nodes of which a difference says how much was free."""
_TOLD: Final = 500
"""Steps between two calls of who is told."""


@dataclass(frozen=True)
class Difference:
    """The first step that decided otherwise."""

    number: int
    at: float
    """Seconds since 1970."""
    recorded: tuple[Decision, ...]
    replayed: tuple[Decision, ...]
    explained: tuple[str, ...]
    """What the replayed step says of jobs: its facts, as `JOB: MESSAGE`."""
    recorded_reasons: tuple[str, ...]
    """The explanation of the journal's side: why jobs wait that start now, and others of which the step says it, as
    `JOB waits: MESSAGE`, and the room of the nodes that it chose."""
    replayed_reasons: tuple[str, ...]
    """The same of the replayed step: first why jobs wait that started by the journal."""
    names: Mapping[JobId, str]
    """The names of those jobs that are not over."""


@dataclass
class Replayed:
    """How a replay went."""

    version: str = ""
    """The Corral that began the journal."""
    steps: int = 0
    """The steps that were replayed."""
    events: int = 0
    """Their inputs; each stored request counts."""
    begun: int = 0
    """How often a core began."""
    first_at: float = 0.0
    """The time of the first step that was replayed, in seconds since 1970; `last_at` that of the last one."""
    last_at: float = 0.0
    difference: Difference | None = None
    problem: str = ""
    """Why the file could not be read to its end, in one sentence; "" if it could."""


def replay(
    file: BinaryIO,
    *,
    since: float | None = None,
    until: float = inf,
    told: Callable[[int], None] = lambda steps: None,
    kept: Records | None = None,
) -> Replayed:
    """Replay a journal up to its end, the first difference, or the time `until`; `told` hears of steps now and then.

    With `since` it begins at the last beginning or checkpoint before that time; the file must be one that can seek.
    `kept` gets the journal of what is decided now, with the events of each step; differences then do not end it.
    Raises InvalidInput for a file that is no journal, or that this Corral cannot follow.
    """
    skipped = 0 if since is None else _before(BlockReader(file), since)
    file.seek(0)
    reader, run = BlockReader(file), _Replay(told, kept)
    with rarely_collected():
        run.play(islice(reader, skipped, None), lambda step: step.at > until)
    found = run.found
    if found.difference is not None and run.unexplained:
        waited = _waited_before(file, found.difference, skipped)
        reasons = waited + found.difference.recorded_reasons
        found.difference = with_fields(found.difference, recorded_reasons=reasons)
    found.problem = found.problem or reader.problem
    if not found.begun:
        raise InvalidInput("empty-journal", found.problem or "The journal has no beginning from which to replay it.")
    return found


def _before(reader: BlockReader, since: float) -> int:
    """The position of the last record from which a replay may begin before a time; the first one if all are later."""
    found = 0
    for position, data in enumerate(reader):
        at = beginning_at(data)
        if at is not None and at > since:
            break
        if at is not None:
            found = position
    return found


def _waited_before(file: BinaryIO, difference: Difference, first: int) -> tuple[str, ...]:
    """Why jobs that start now waited before the step, where a journal does not say it.

    From the position `first` on both sides are equal until then; what is before it was not compared.
    """
    jobs = sorted(_started(difference.replayed) - _started(difference.recorded))
    if not jobs:
        return ()
    file.seek(0)
    skipped = max(first, _before(BlockReader(file), nextafter(difference.at, -inf)))
    file.seek(0)
    run = _Replay(lambda steps: None, None)
    run.play(
        islice(BlockReader(file), skipped, None),
        lambda step: (step.number, step.at) == (difference.number, difference.at),
    )
    return tuple(f"{difference.names.get(job, job)} waits: {why}" for job, why in run.waiting(jobs).items())


class _Replay:
    def __init__(self, told: Callable[[int], None], kept: Records | None) -> None:
        self.found = Replayed()
        self._told = told
        self._kept = kept
        self._core: Core | None = None
        self._waiting = WaitingReasons()
        self._rules = Rules()
        self._at = 0.0

    def play(self, records: Iterable[bytes], over: Callable[[Step], bool]) -> None:
        """Go on to the end, a difference, a record that cannot be read, or a step with which it is over."""
        for data in records:
            try:
                record = decoded(data)
            except InvalidInput as error:
                self.found.problem = error.message
                return
            if isinstance(record, Step):
                if over(record) or not self._step(record):
                    return
            elif isinstance(record, Begun) or self._core is None:
                self._begin(record if isinstance(record, Begun) else record.begun)
                if self._kept is not None:
                    self._kept.add(data)

    @property
    def unexplained(self) -> bool:
        """Whether the core finds no reasons why jobs wait."""
        return self._core is not None and self._core.world.queue.unexplained

    def waiting(self, jobs: Iterable[JobId]) -> dict[JobId, str]:
        """Why some jobs wait after the last step, without those that do not."""
        if self._core is None:
            return {}
        world = _explained(self._core, self._at)
        return {job: why for job in jobs if (why := _why(world, job))}

    def _begin(self, begun: Begun) -> None:
        self.found.version = self.found.version or begun.corral
        self._rules, self._at = begun.rules, begun.at
        self._core = core_of(begun)
        self._waiting = WaitingReasons(begun.state.jobs)
        self.found.begun += 1

    def _step(self, step: Step) -> bool:
        """Replay one step; returns whether it decided what was decided."""
        core, found = self._core, self.found
        if core is None:
            return True
        try:
            batch = core.step(folded(step.inputs, self._rules), step.at)
        except Exception as error:  # the inputs of a broken journal may be anything
            why = shorten(f"{type(error).__name__}: {error}", 300).rstrip(".")
            found.problem = f"Step {step.number} cannot be replayed: {why}."
            return False
        found.first_at = found.first_at if found.steps else step.at
        found.last_at = self._at = step.at
        found.steps += 1
        for each in step.inputs:
            found.events += len(each.intents) if isinstance(each, IntentsRead) else 1
        if not found.steps % _TOLD:
            self._told(found.steps)
        digest = digest_of(batch)
        if digest != step.digest and found.difference is None:
            found.difference = _difference(core, step, batch, self._waiting.known)
        waits = self._waiting.follow(batch)
        if self._kept is not None:
            decisions = (*decisions_of(batch), *waits, *events_of(batch))
            self._kept.add(encoded(msgspec.structs.replace(step, digest=digest, decisions=decisions)))
        return found.difference is None or self._kept is not None


def _difference(core: Core, step: Step, batch: Batch, before: Mapping[JobId, str]) -> Difference:
    """Compare a step with what it is now; `before` says why jobs waited, by both, before the step."""
    recorded = tuple(each for each in step.decisions if each.verb in COMMANDS)
    replayed, events = decisions_of(batch), events_of(batch)
    world = _explained(core, step.at)
    started, starts = _started(recorded), _started(replayed)
    told = {each.job: each.why for each in step.decisions if each.verb == WAIT}
    known = {**before, **told}
    by_journal = {job: known[job] for job in (*sorted(starts - started), *told) if job in known}
    by_now = {job: why for job in (*sorted(started - starts), *told) if (why := _why(world, job))}
    jobs = {each.job for each in (*recorded, *replayed, *events)} | by_journal.keys() | by_now.keys()
    names = {job: world.jobs[job].name for job in jobs if job in world.jobs}

    def said(reasons: Mapping[JobId, str]) -> tuple[str, ...]:
        return tuple(f"{names.get(job, job)} waits: {why}" for job, why in reasons.items())

    return Difference(
        number=step.number,
        at=step.at,
        recorded=recorded,
        replayed=replayed,
        explained=tuple(f"{names.get(each.job, each.job)}: {each.why}" for each in events),
        recorded_reasons=said(by_journal) + _rooms(core, recorded, replayed),
        replayed_reasons=said(by_now) + _rooms(core, replayed, replayed),
        names=names,
    )


def _rooms(core: Core, chosen: Sequence[Decision], now: Sequence[Decision]) -> tuple[str, ...]:
    """How many devices of the first nodes of some starts were free before the step placed its starts of `now`."""
    nodes = dict.fromkeys(each.node for each in chosen if each.verb == "start" and each.devices)
    found = []
    for name in list(nodes)[:_NODES]:
        node = core.machines.node(name)
        started = {device for each in now if each.verb == "start" and each.node == name for device in each.devices}
        held = {device for job in core.world.jobs.values() for device in _held(job, name)}
        if node is not None:
            of = len(node.devices)
            found.append(f"{name} had {of - len(held - started)} of {of} devices free")
    return tuple(found)


def _held(job: Job, node: str) -> Iterator[int]:
    for task in job.tasks.values():
        if task.holds and task.placement is not None and task.placement.node == node:
            yield from task.placement.devices


def _started(decisions: Iterable[Decision]) -> set[JobId]:
    return {each.job for each in decisions if each.verb == "start"}


def _explained(core: Core, at: float) -> World:
    """The jobs of a core with the reasons why they wait, which a simulation does not look for."""
    if not core.world.queue.unexplained:
        return core.world
    twin = core.fork()
    twin.world.queue.unexplained = False
    twin.world.queue.report_anew()
    twin.world.plan_wanted = True
    twin.step((), at)
    return twin.world


def _why(world: World, job: JobId) -> str:
    known = world.jobs.get(job)
    reason = None if known is None else waiting_reason(known, phase(known.run), world.jobs)
    return "" if reason is None else reason.message
