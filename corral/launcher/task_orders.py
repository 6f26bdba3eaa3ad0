"""The job machine's orders to a task, as values like an engine's events, so that one table covers both."""

from __future__ import annotations

import msgspec

from corral.kernel.ids import JobId
from corral.model.outcome import Completion
from corral.model.placement import TaskPlacement


class Ask(msgspec.Struct, frozen=True):
    """Join the scheduler's queue."""


class Give(msgspec.Struct, frozen=True):
    """Take the placement that the scheduler gave."""

    placement: TaskPlacement


class TakeBack(msgspec.Struct, frozen=True):
    """The placement is gone, and nothing was or will be started there."""

    message: str


class Spare(msgspec.Struct, frozen=True):
    """End, release the placement (for the job `to`, if known) and wait for another; the gang runs on meanwhile."""

    completion: Completion
    to: JobId | None = None


class Rest(msgspec.Struct, frozen=True):
    """Leave the scheduler's queue: the gang needs no more tasks."""


class End(msgspec.Struct, frozen=True):
    """End for good with `completion`, unless the task already has one; with `leaving` it is removed as well."""

    completion: Completion
    leaving: bool = False
