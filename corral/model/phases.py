"""Derive a job's phase, one of seven, from its state; store, API and command line share this function."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from corral.model.exits import ATTEMPT_COMPLETED, STOP_REQUESTED
from corral.model.outcome import Completion
from corral.model.runs import JobRun
from corral.model.states import JobState


class Phase(StrEnum):
    """A job's state as people see it."""

    WAITING = "waiting"
    """It waits for devices, for another job, or for a delayed retry."""
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    """The attempt's completion is decided; its remaining tasks are being stopped."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    """A person or a policy ended it."""


ENDED: Final = frozenset({Phase.SUCCEEDED, Phase.FAILED, Phase.STOPPED})
"""The phases that only a restart leaves."""

_STOPS: Final = frozenset({STOP_REQUESTED, ATTEMPT_COMPLETED})
_PHASES: Final = {
    JobState.CREATION_PENDING: Phase.WAITING,
    JobState.CREATION_REQUESTED: Phase.WAITING,
    JobState.PREPARING: Phase.STARTING,
    JobState.RUNNING: Phase.RUNNING,
    JobState.DELETION_PENDING: Phase.STOPPING,
    JobState.DELETING: Phase.STOPPING,
    JobState.ATTEMPT_COMPLETED: Phase.WAITING,
}


def phase(run: JobRun) -> Phase:
    """The phase of a job, from its state and, once completed, from its completion."""
    if run.state is not JobState.COMPLETED:
        return _PHASES[run.state]
    yielded = run.yielded is not None and run.yielded.job_attempt == run.attempt
    return Phase.STOPPED if run.stop_requested and yielded else end_phase(run.completion)


def end_phase(completion: Completion | None) -> Phase:
    """The phase of a completed job."""
    if completion is None or (not completion.succeeded and completion.code not in _STOPS):
        return Phase.FAILED
    return Phase.SUCCEEDED if completion.succeeded else Phase.STOPPED
