"""Why: what the job machine wants of a task is said in values like an engine's events, so one table has them all."""

from __future__ import annotations

import msgspec

from corral.kernel.ids import JobId
from corral.model.outcome import Completion
from corral.model.placement import TaskPlacement


class Ask(msgspec.Struct, frozen=True):
    """Begin: join the scheduler's queue."""


class Give(msgspec.Struct, frozen=True):
    """The scheduler gave the task its place."""

    placement: TaskPlacement


class TakeBack(msgspec.Struct, frozen=True):
    """The place is gone, and nothing was or will be started there."""

    message: str


class Spare(msgspec.Struct, frozen=True):
    """End, give the place back (to the job `to`, if it is known) and wait for another: the gang runs on without it."""

    completion: Completion
    to: JobId | None = None


class Rest(msgspec.Struct, frozen=True):
    """Leave the scheduler's queue: the gang needs no more tasks."""


class End(msgspec.Struct, frozen=True):
    """End for good, as `completion` says unless the task has its own already; `leaving`: and be removed."""

    completion: Completion
    leaving: bool = False
