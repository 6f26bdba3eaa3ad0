"""Why: the launcher only says what should be done; these values are stored before anyone does it."""

from __future__ import annotations

import msgspec

from corral.kernel.ids import AttemptId, TaskKey


class RequestPlacement(msgspec.Struct, frozen=True, tag=True):
    """Queue these tasks of the job with the scheduler, as one gang (`grow`: join the gang that runs).

    A task leaves the queue by `Placed`, with all of its gang, or by `ReleasePlacement`, alone. While nothing of the job
    has a place, all that wait are one gang: when it changes, it is released and requested anew.
    """

    job_attempt: int
    tasks: tuple[TaskKey, ...]
    grow: bool = False


class ReleasePlacement(msgspec.Struct, frozen=True, tag=True):
    """These tasks hold nothing any more, and those still waiting leave the queue."""

    tasks: tuple[TaskKey, ...]


class StartTask(msgspec.Struct, frozen=True, tag=True):
    """Have the engine start this attempt where its placement says."""

    attempt: AttemptId


class StopTask(msgspec.Struct, frozen=True, tag=True):
    """Have the engine end this attempt: `signal`, then KILL after the grace."""

    attempt: AttemptId
    grace_seconds: float
    signal: str = "TERM"


class ForgetTask(msgspec.Struct, frozen=True, tag=True):
    """The end of this attempt is stored: the engine may drop its record."""

    attempt: AttemptId


EngineCommand = StartTask | StopTask | ForgetTask
JobCommand = RequestPlacement | ReleasePlacement | StartTask | StopTask | ForgetTask
