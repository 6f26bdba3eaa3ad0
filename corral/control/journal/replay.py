"""Run a core over a journal again, and compare what it decides with what was decided, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import BinaryIO, Final

import msgspec

from corral.control.core.core import Batch, Core
from corral.control.core.intents import IntentsRead
from corral.control.journal.beginnings import core_of
from corral.control.journal.blocks import BlockReader
from corral.control.journal.decisions import decisions_of, digest_of, events_of
from corral.control.journal.records import Begun, Decision, Step, beginning_at, decoded, encoded, folded
from corral.control.journal.rules import Rules
from corral.control.journal.writer import Records
from corral.kernel.errors import InvalidInput
from corral.kernel.garbage import rarely_collected
from corral.kernel.ids import JobId
from corral.spec.errors import shorten

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
        run.play(islice(reader, skipped, None), until)
    found = run.found
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


class _Replay:
    def __init__(self, told: Callable[[int], None], kept: Records | None) -> None:
        self.found = Replayed()
        self._told = told
        self._kept = kept
        self._core: Core | None = None
        self._rules = Rules()

    def play(self, records: Iterable[bytes], until: float) -> None:
        """Go on to the end, a difference, a record that cannot be read, or a time."""
        for data in records:
            try:
                record = decoded(data)
            except InvalidInput as error:
                self.found.problem = error.message
                return
            if isinstance(record, Step):
                if record.at > until or not self._step(record):
                    return
            elif isinstance(record, Begun) or self._core is None:
                self._begin(record if isinstance(record, Begun) else record.begun)
                if self._kept is not None:
                    self._kept.add(data)

    def _begin(self, begun: Begun) -> None:
        self.found.version = self.found.version or begun.corral
        self._rules = begun.rules
        self._core = core_of(begun)
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
        found.last_at = step.at
        found.steps += 1
        found.events += sum(len(each.intents) if isinstance(each, IntentsRead) else 1 for each in step.inputs)
        if not found.steps % _TOLD:
            self._told(found.steps)
        digest = digest_of(batch)
        if self._kept is not None:
            decisions = (*decisions_of(batch), *events_of(batch))
            self._kept.add(encoded(msgspec.structs.replace(step, digest=digest, decisions=decisions)))
        if digest != step.digest and found.difference is None:
            found.difference = _difference(core, step, batch)
        return found.difference is None or self._kept is not None


def _difference(core: Core, step: Step, batch: Batch) -> Difference:
    replayed, events = decisions_of(batch), events_of(batch)
    jobs = {each.job for each in (*step.decisions, *replayed, *events)}
    names = {job: core.world.jobs[job].name for job in jobs if job in core.world.jobs}
    explained = tuple(f"{names.get(each.job, each.job)}: {each.why}" for each in events)
    return Difference(step.number, step.at, step.decisions, replayed, explained, names)
