"""What the core is told: recovered state, stored requests, configuration, machines, and what engines saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Final

import msgspec

from corral.control.core.configuration import Configured
from corral.control.core.intents import IntentsRead
from corral.control.core.machines import MachinesSeen
from corral.kernel.ids import AttemptId, JobId
from corral.model.cordons import Cordon
from corral.model.events import PlaceLost, StartRefused
from corral.model.exits import NODE_LOST
from corral.model.input_bytes import InputBytes
from corral.model.launch import EngineLost, Exited, Noted, Started
from corral.model.queues import QueueUsage, UserUsage
from corral.model.receipts import LedgerEntry, Receipt
from corral.model.states import TaskState
from corral.model.store_writes import LiveJob
from corral.scheduler import EngineUnknown, GuaranteeLost
from corral.scheduler.policy.future_fairness import Schedule


class Recovered(msgspec.Struct, frozen=True):
    """All that a core begins with, read from the store and the engines."""

    configured: Configured
    cursor: int = 0
    """The last intent that was folded."""
    jobs: Sequence[LiveJob] = ()
    """Every job that is not over."""
    needed: Mapping[JobId, LiveJob] = {}
    """The jobs that those depend on and that may be over."""
    groups: Mapping[str, tuple[str, ...]] = {}
    """The groups of the users of those jobs."""
    cordons: Mapping[str, Cordon] = {}
    machines: Sequence[MachinesSeen | EngineUnknown] = ()
    receipts: Sequence[Receipt] = ()
    """Those of jobs that are away."""
    ledger: Sequence[LedgerEntry] = ()
    usage: Sequence[QueueUsage] = ()
    user_usage: Sequence[UserUsage] = ()
    ended_service: Sequence[float] = ()
    """The device-seconds that the latest ended jobs had attained, in the order of their ends."""
    losses: Sequence[GuaranteeLost] = ()
    """Those that `Core.lost_guarantees` of a core without them asks for."""


class Underway(msgspec.Struct, frozen=True):
    """What a core between two steps knows beside what is stored; one that begins after a restart lacks it."""

    timers: tuple[tuple[JobId, float], ...] = ()
    """The jobs that are looked at again, and when; also timers that a job no longer needs."""
    plan_wanted: bool = True
    plan_again: float | None = None
    """When it plans by time alone."""
    next_maintenance: float | None = None
    contention: tuple[tuple[float, ...], tuple[float, ...], int] = ((), (), 0)
    """How many jobs there were at the plans so far (`Contention`)."""
    schedule: Schedule | None = None
    """The decision of a market that is followed (`FutureFairness`)."""


class ConfigurationRead(msgspec.Struct, frozen=True):
    """The configuration that is in force from now on."""

    configured: Configured


class CordonsRead(msgspec.Struct, frozen=True, tag=True):
    """The nodes that are closed to new tasks from now on."""

    cordons: Mapping[str, Cordon]


class InputsSought(msgspec.Struct, frozen=True, tag=True):
    """The inputs of new jobs are being located: these jobs are placed once that is done, or from a time on."""

    jobs: tuple[JobId, ...]
    until: float
    """Seconds since 1970."""


class InputsLocated(msgspec.Struct, frozen=True, tag=True):
    """Where the inputs of a job are."""

    job: JobId
    inputs: InputBytes | None = None
    """None: nobody could tell."""


TaskEvent = Started | Exited | StartRefused | PlaceLost | Noted | EngineLost
"""What engines, or whoever carries commands to them, saw."""
Input = (
    IntentsRead | ConfigurationRead | CordonsRead | MachinesSeen | EngineUnknown | TaskEvent
    | InputsSought | InputsLocated
)  # fmt: skip


_STARTED: Final = frozenset({TaskState.PREPARING, TaskState.RUNNING})


def missing_attempts(jobs: Sequence[LiveJob], known: Set[AttemptId], now: float) -> list[Exited]:
    """The ends of started attempts that are not `known`: they went with their machine (a power cut)."""
    lost = "the machine has no record of the task any more; it restarted while the task ran"
    return [
        Exited(attempt, now, NODE_LOST, reason=lost)
        for job in jobs
        if not job.run.external
        for task in job.tasks.values()
        if task.holds and task.state in _STARTED and (attempt := job.run.attempt_of(task)) not in known
    ]
