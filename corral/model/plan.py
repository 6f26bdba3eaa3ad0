"""Why: a plan is only a proposal; the committer may refuse it, so it says everything needed to check and to explain it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from corral.kernel.ids import JobId, TaskKey
from corral.model.placement import Placement
from corral.model.requests import GangRequest


class Reason(msgspec.Struct, frozen=True):
    """One constraint that keeps a gang waiting, with the counts that show it."""

    code: str
    """A stable word: `not-enough-devices`, `no-cell-holds-gang`, `behind-head`, `node-selector`, `bad-hardware`, …"""
    message: str
    """One sentence for people, with the figures in it."""
    counts: Mapping[str, int | float] = {}


class Reasons(msgspec.Struct, frozen=True):
    """Why a gang was not placed in a cycle: the binding constraint first."""

    binding: Reason
    others: tuple[Reason, ...] = ()
    ahead: int = 0
    """How many gangs are before it in order."""
    possible: bool = True
    """Whether the gang could run on the machines known now if they were empty."""


class GangPlacement(msgspec.Struct, frozen=True):
    """One gang and where its tasks go."""

    job: JobId
    job_attempt: int
    placement: Placement


class Rule(StrEnum):
    """Why a running gang must yield; receipts name it."""

    GUARANTEE = "guarantee"
    """The owner of the cells wants them: a borrower yields after its grace period."""
    PRIORITY = "priority"
    """A gang of higher priority in the same queue."""
    OPPORTUNISTIC = "opportunistic"
    """It ran with a priority below 0, for as long as nobody else wanted its devices."""
    RECLAIM = "reclaim"
    """A queue that has less than it deserves takes back what another holds beyond its own."""
    CONSOLIDATION = "consolidation"
    """It moves elsewhere so that a large gang fits."""
    SHRINK = "shrink"
    """An elastic gang above its minimum gives some tasks up so that another can start."""
    GROW = "grow"
    """An elastic gang starts anew with more tasks, or in a better place."""
    DRAIN = "drain"
    """Its node is being drained."""
    BAD_HARDWARE = "bad-hardware"
    """It holds a device or node that is unhealthy."""
    TAINT = "taint"
    """Its node was given a `NoExecute` taint that it does not tolerate, or not for so long."""
    CONFIGURATION = "configuration"
    """Its queue was given less than it holds, by somebody who said that its jobs shall yield."""
    SUSPENDED = "suspended"
    """A person suspended it."""


class Eviction(msgspec.Struct, frozen=True):
    """A running gang, or some tasks of an elastic one, that must yield."""

    job: JobId
    job_attempt: int
    rule: Rule
    message: str
    """One sentence for the job's owner: by whom, and under which rule."""
    tasks: tuple[TaskKey, ...] = ()
    """The tasks that leave an elastic gang; empty: the whole gang ends and waits again in its old place."""
    by: JobId | None = None
    """The gang that it makes room for."""
    by_queue: str = ""
    cost_device_seconds: float = 0.0
    """Work lost: devices times the seconds since the last checkpoint, or since the start."""
    back_at: float | None = None
    """When known ends make room for it again, in seconds since 1970; None: nobody knows."""


class CellsReserved(msgspec.Struct, frozen=True, tag=True):
    """Cells that others still use are kept for a gang from now on (HiveD's *Preempting*); those others yield to it."""

    request: GangRequest
    """The tasks that they are kept for."""
    at: float
    """Seconds since 1970."""
    without: tuple[str, ...] = ()
    """The nodes (`engine/node`) that could not be its."""
    pinned_cell: str = ""
    """The pinned cell that it uses; "" is none."""
    beside_others: bool = False
    """Whether it is one of several affinity groups of a gang: then cells are kept for it that nobody uses, too."""


class Plan(msgspec.Struct, frozen=True):
    """What one scheduling cycle proposes."""

    revision: int
    """The revision of the cluster index that it saw."""
    placements: tuple[GangPlacement, ...] = ()
    reasons: dict[str, Reasons] = {}
    """By job id, only those whose reasons changed since the last plan."""
    evictions: tuple[Eviction, ...] = ()
    """What must yield for gangs that do not fit yet; what they hold is theirs once it has ended."""
    lapsed: tuple[JobId, ...] = ()
    """The jobs for which others had been told to end, and whose places went to stronger ones."""
    again_at: float | None = None
    """When to plan again though nothing happened: a protection ends then; None: never."""
    reserved: tuple[CellsReserved, ...] = ()
    """What is kept for gangs while others yield; to be applied to the cluster after the placements."""
