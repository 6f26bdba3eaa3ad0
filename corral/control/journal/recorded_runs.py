"""What a journal says of the world outside the scheduler: requests, machines, and how long tasks ran."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from corral.control.core.inputs import CordonsRead
from corral.control.core.intents import IntentsRead
from corral.control.core.machines import MachinesSeen
from corral.control.journal.blocks import BlockReader
from corral.control.journal.records import Begun, DocumentsRead, Step, decoded
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId, JobId, TaskKey, parse_attempt_id
from corral.model.launch import Exited, Started
from corral.model.store_writes import LiveJob
from corral.scheduler import EngineUnknown

Outside = IntentsRead | CordonsRead | MachinesSeen | EngineUnknown | DocumentsRead
"""What comes from outside, but what engines say of tasks."""


class Ran(NamedTuple):
    """One run of a task that ended by itself."""

    seconds: float
    code: int


@dataclass
class RecordedRuns:
    """A journal as it is read for another life of its jobs. Times are in seconds since 1970."""

    begun: Begun
    happenings: list[tuple[float, Outside]] = field(default_factory=list)
    runs: dict[tuple[JobId, TaskKey], list[Ran]] = field(default_factory=dict)
    """By task its runs that nobody stopped, in order."""
    until: float = 0.0
    """When the last step was made."""
    problem: str = ""
    """Why the file could not be read to its end, in one sentence; "" if it could."""
    _started: dict[AttemptId, float] = field(default_factory=dict)
    _stopped: set[AttemptId] = field(default_factory=set)

    def take(self, step: Step) -> None:
        """Read one step."""
        self.until = step.at
        for each in step.inputs:
            match each:
                case Started(attempt=attempt, at=at):
                    self._started.setdefault(attempt, at)
                case Exited():
                    self._end(each)
                case IntentsRead() | CordonsRead() | MachinesSeen() | EngineUnknown() | DocumentsRead():
                    self.happenings.append((step.at, each))
        self._stopped.update(AttemptId(each.attempt) for each in step.decisions if each.verb == "stop")

    def begin_with(self, jobs: Iterable[LiveJob]) -> None:
        """Read the tasks that run at the beginning."""
        for job in jobs:
            for task in job.tasks.values():
                self._started[job.run.attempt_of(task)] = task.started_at or self.begun.at

    def _end(self, end: Exited) -> None:
        begun = self._started.pop(end.attempt, None)
        if begun is None or end.attempt in self._stopped:
            return
        parsed = parse_attempt_id(end.attempt)
        self.runs.setdefault((parsed.job, parsed.task), []).append(Ran(max(0.0, end.at - begun), end.code))


def recorded_runs(reader: BlockReader) -> RecordedRuns:
    """Read a journal from its first beginning to its end.

    Raises InvalidInput for a file that is no journal, and for a record that cannot be read.
    """
    found: RecordedRuns | None = None
    for data in reader:
        record = decoded(data)
        if isinstance(record, Step):
            if found is not None:
                found.take(record)
        elif isinstance(record, Begun):
            if found is None:
                found = RecordedRuns(record)
                found.begin_with(record.state.jobs)
            else:
                found.happenings += [(record.at, each) for each in record.state.machines]
    if found is None or not found.until:
        said = reader.problem or "The journal has no step that could be played under other rules."
        raise InvalidInput("empty-journal", said)
    found.problem = reader.problem
    return found
