"""The commands that the launcher emits; control stores them before it carries them out."""

from __future__ import annotations

import msgspec

from corral.kernel.ids import AttemptId, TaskKey


class RequestPlacement(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Queue these tasks of the job with the scheduler as one gang; with `grow` they join the running gang.

    A task leaves the queue by `Placed`, with all of its gang, or by `ReleasePlacement`, alone. While no task of the job
    has a placement, all waiting tasks are one gang: if it changes, it is released and requested again.
    """

    job_attempt: int
    tasks: tuple[TaskKey, ...]
    grow: bool = False


class ReleasePlacement(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Release the placements of these tasks; those still waiting leave the queue."""

    tasks: tuple[TaskKey, ...]


class StartTask(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Start this attempt on the engine, at its placement."""

    attempt: AttemptId


class StopTask(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Stop this attempt on the engine: send `signal`, then KILL after the grace period."""

    attempt: AttemptId
    grace_seconds: float
    signal: str = "TERM"


class ForgetTask(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Let the engine drop its record of this attempt, since its end is stored."""

    attempt: AttemptId


EngineCommand = StartTask | StopTask | ForgetTask
JobCommand = RequestPlacement | ReleasePlacement | StartTask | StopTask | ForgetTask
