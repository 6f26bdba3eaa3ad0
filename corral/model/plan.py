"""Why: a plan is only a proposal; the committer may refuse it, so it says everything needed to check and to explain it."""

from __future__ import annotations

import msgspec

from corral.kernel.ids import JobId
from corral.model.placement import Placement


class Reason(msgspec.Struct, frozen=True):
    """One constraint that keeps a gang waiting, with the counts that show it."""

    code: str
    """A stable word: `not-enough-devices`, `no-cell-holds-gang`, `behind-head`, `node-selector`, `bad-hardware`, …"""
    message: str
    """One sentence for people, with the figures in it."""
    counts: dict[str, int] = {}


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


class Plan(msgspec.Struct, frozen=True):
    """What one scheduling cycle proposes."""

    revision: int
    """The revision of the cluster index that it saw."""
    placements: tuple[GangPlacement, ...] = ()
    reasons: dict[str, Reasons] = {}
    """By job id, only those whose reasons changed since the last plan."""
