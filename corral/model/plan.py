"""The scheduler's proposal for one cycle, with everything needed to check and explain it.

A plan is only a proposal: the committer may refuse it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from corral.kernel.ids import JobId, TaskKey
from corral.model.placement import Placement
from corral.model.requests import GangRequest


class Reason(msgspec.Struct, frozen=True, gc=False):
    """One constraint that keeps a gang waiting, with the counts that show it."""

    code: str
    """A stable code: `not-enough-devices`, `no-cell-holds-gang`, `behind-head`, `node-selector`, `bad-hardware`, …"""
    message: str
    """One sentence for people, with the figures in it."""
    counts: Mapping[str, int | float] = {}


class Reasons(msgspec.Struct, frozen=True, gc=False):
    """Why a gang was not placed in a cycle, the binding constraint first."""

    binding: Reason
    others: tuple[Reason, ...] = ()
    ahead: int = 0
    """The number of gangs before it in the queue order."""
    possible: bool = True
    """Whether the gang could run on the machines known now if they were empty."""


class GangPlacement(msgspec.Struct, frozen=True, gc=False):
    """One gang and the placement of its tasks."""

    job: JobId
    job_attempt: int
    placement: Placement


class Rule(StrEnum):
    """Why a running gang is preempted; receipts name the rule."""

    GUARANTEE = "guarantee"
    """The owner of the cells needs them: a borrower is preempted after its grace period."""
    PRIORITY = "priority"
    """A gang of higher priority in the same queue needs its devices."""
    ORDER = "order"
    """The policy's order puts the gang that needs its devices before it."""
    OPPORTUNISTIC = "opportunistic"
    """It ran with a priority below 0, which lasts only until another job needs its devices."""
    RECLAIM = "reclaim"
    """A queue below its deserved amount reclaims resources that another queue holds beyond its own."""
    CONSOLIDATION = "consolidation"
    """It is moved so that a large gang fits."""
    SHRINK = "shrink"
    """An elastic gang above its minimum gives up tasks so that another gang can start."""
    GROW = "grow"
    """An elastic gang is restarted with more tasks, or in a better place."""
    DRAIN = "drain"
    """Its node is being drained."""
    BAD_HARDWARE = "bad-hardware"
    """It holds a device or node that is unhealthy."""
    TAINT = "taint"
    """Its node was given a `NoExecute` taint that it does not tolerate, or not for so long."""
    CONFIGURATION = "configuration"
    """A configuration change, applied with preemption, gave its queue less than the queue holds."""
    SUSPENDED = "suspended"
    """A person suspended it."""
    IDLE = "idle"
    """It left its devices idle, and its queue or the policy does something about that."""
    BUDGET = "budget"
    """A budget that it counts for is used up, and says that such jobs are held."""


class Eviction(msgspec.Struct, frozen=True):
    """A running gang, or some tasks of an elastic one, that must be preempted."""

    job: JobId
    job_attempt: int
    rule: Rule
    message: str
    """One sentence for the job's owner: who preempts it, and by which rule."""
    tasks: tuple[TaskKey, ...] = ()
    """The tasks that leave an elastic gang; empty: the whole gang ends and waits again in its old place."""
    by: JobId | None = None
    """The gang that it makes room for."""
    by_queue: str = ""
    cost_device_seconds: float = 0.0
    """Work lost: devices times the seconds since the last checkpoint, or since the start."""
    back_at: float | None = None
    """When known ends make room for it again, in seconds since 1970; None: not known."""


class CellsReserved(msgspec.Struct, frozen=True, tag=True):
    """Cells that others still use are reserved for a gang (HiveD's *Preempting*); their users are preempted."""

    request: GangRequest
    """The tasks that the cells are reserved for."""
    at: float
    """Seconds since 1970."""
    without: tuple[str, ...] = ()
    """The nodes (`engine/node`) that the gang could not use."""
    pinned_cell: str = ""
    """The pinned cell that it uses; "" is none."""
    beside_others: bool = False
    """Whether the gang has several affinity groups and this is one of them; then free cells are reserved too."""


class PartFault(msgspec.Struct, frozen=True, tag=True):
    """A part of the policy raised an error or gave an impossible answer; this plan was made without it."""

    part: str
    """`order`, `allot` or `preempt`."""
    name: str
    """The name that the policy gives the part."""
    message: str
    """What it did, as a clause: `raised ValueError: …`, `gave …`."""
    last: bool = False
    """Whether the part is switched off now, because it failed too often."""


class Plan(msgspec.Struct, frozen=True):
    """The placements, evictions and reasons that one scheduling cycle proposes."""

    revision: int
    """The cluster index's revision at the time of planning."""
    placements: tuple[GangPlacement, ...] = ()
    reasons: dict[str, Reasons] = {}
    """By job id, only those whose reasons changed since the last plan."""
    evictions: tuple[Eviction, ...] = ()
    """Gangs to preempt for gangs that do not fit yet; the freed resources are reserved for those."""
    lapsed: tuple[JobId, ...] = ()
    """The jobs for which others had been told to end, and whose reserved places went to stronger ones."""
    again_at: float | None = None
    """When to plan again even without an event, because a protection ends then; None: never."""
    reserved: tuple[CellsReserved, ...] = ()
    """Reservations for gangs while others are preempted; apply them to the cluster after the placements."""
    faults: tuple[PartFault, ...] = ()
    """The parts of the policy that failed while this plan was made; default parts took their place."""
