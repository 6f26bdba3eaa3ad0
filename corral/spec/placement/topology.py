"""The rule `topology`: how close together tasks are, groups of them, even spreads, and devices of one model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

from pydantic import Field

from corral.kernel.units import counted
from corral.spec.base import Level, SpecModel
from corral.spec.errors import Path
from corral.spec.job_parts import MAX_REPLICAS
from corral.spec.placement.level_name import spoken
from corral.spec.placement.rule import Ask, Series, Unmet, Weaker


class TopologyGroup(SpecModel):
    """Groups of consecutive replicas that are placed closer together than the rest."""

    size: int = Field(0, ge=0, le=MAX_REPLICAS, description="Replicas in one group; 0 is no grouping.")
    required: Level = Field("", description="The level that each group must be inside.")


class TopologySpread(SpecModel):
    """Replicas in different cells, so that the failure of one cell does not hit all."""

    level: Level = Field("", description='The replicas go to different cells of this level; "" is anywhere.')
    max_skew: int = Field(
        0,
        ge=0,
        le=10_000,
        description="The largest difference in replicas between two cells that take them; 0: as even as possible.",
    )


class Topology(SpecModel):
    """How close together, or how far apart, the replicas are placed."""

    required: Level = Field("", description='The level all must be inside, such as node or rack; "" is anywhere.')
    preferred: Level = Field("", description="The level tried first; not being inside it is noted, not an error.")
    group: TopologyGroup = Field(default_factory=TopologyGroup, description="Groups of consecutive replicas.")
    spread: TopologySpread = Field(
        default_factory=TopologySpread, description="Replicas of a role that are apart; a job's holds for each role."
    )
    same_model: bool = Field(False, description="All devices are of one model, whichever.")


SHORT_SPREAD: Final[Any] = Field(
    default_factory=TopologySpread, description="Replicas that are apart: a level, or level and maxSkew."
)
"""The field `spread` of the short form, where a level may stand for it."""


def inconsistencies(topology: Topology) -> Iterator[tuple[Path, str]]:
    """Combinations of its fields that are invalid."""
    group, spread = topology.group, topology.spread
    if bool(group.size) != bool(group.required):
        missing = "required" if group.size else "size"
        yield ("topology", "group", missing), "missing; a group has both a size and a required level"
    if spread.max_skew and not spread.level:
        yield ("topology", "spread", "level"), "missing; maxSkew bounds a spread, and there is none"
    if spread.level and group.size:
        yield ("topology", "spread"), "replicas are either in groups or spread, not both"


# -- the request ------------------------------------------------------------------------------------------------------


class TopologyRequest(NamedTuple):
    """All tasks must be in one cell of level `required`; level `preferred` is tried first; "" is none."""

    required: str = ""
    preferred: str = ""
    group_size: int = 0
    """Each block of this many tasks stays inside one cell of `group_required`; 0 is no grouping."""
    group_required: str = ""
    spread_level: str = ""
    """Tasks go to different cells of this level, as evenly as possible; "" is no spreading."""
    max_skew: int = 0
    """The largest difference in task counts between two cells that could hold tasks; 0 is no bound."""
    same_model: bool = False
    """Whether all devices must be of one model, whichever it is."""

    @property
    def bounded(self) -> bool:
        """Whether a spread must be even within a bound."""
        return self.max_skew > 0

    def even(self, tasks: Collection[int]) -> bool:
        """Whether these task counts per open cell stay within the bound on the skew."""
        return not self.max_skew or max(tasks) - min(tasks) <= self.max_skew


def requested_of_job(topology: Topology) -> TopologyRequest:
    """What a job's topology requests for all roles together; its spread is of each role."""
    return _requested(topology, TopologySpread())


def requested_of_role(topology: Topology, of_job: Topology) -> TopologyRequest:
    """What a role's topology requests, with the job's spread where the role has none."""
    return _requested(topology, topology.spread if topology.spread.level else of_job.spread)


def _requested(topology: Topology, spread: TopologySpread) -> TopologyRequest:
    group = topology.group
    return TopologyRequest(
        topology.required,
        topology.preferred,
        group.size,
        group.required,
        spread.level,
        spread.max_skew,
        topology.same_model,
    )


# -- weaker requests --------------------------------------------------------------------------------------------------


def weaker(ask: TopologyRequest, levels: Sequence[str], whose: str) -> Series[TopologyRequest]:
    """Wider levels, several models, and any skew.

    `levels` are the machines', from engine down to device; `whose` are the words for the tasks concerned, "" for all.
    """
    yield [
        Weaker(0.1 + 0.02 * rung, "required", ask.required, wider, condition, lesser)
        for rung, (wider, condition, lesser) in enumerate(_wider(ask, "required", whose, levels))
    ]
    if ask.group_size > 1:
        yield [
            _regrouped(ask, 0.1 + 0.02 * rung, wider, condition, lesser)
            for rung, (wider, condition, lesser) in enumerate(_wider(ask, "group_required", whose, levels))
        ]
    if ask.same_model:
        condition = f"with devices of more than one model{whose}"
        yield [Weaker(0.15, "sameModel", "true", "", condition, ask._replace(same_model=False))]
    if ask.bounded:
        yield [_unbounded(ask.max_skew, whose, ask._replace(max_skew=0))]


def weaker_of_all(asks: Sequence[TopologyRequest]) -> Series[tuple[TopologyRequest, ...]]:
    """Weaker forms of a rule that several roles have alike: the job's spread."""
    if len(asks) > 1 == len({(ask.spread_level, ask.max_skew) for ask in asks}) and asks[0].bounded:
        yield [_unbounded(asks[0].max_skew, "", tuple(ask._replace(max_skew=0) for ask in asks))]


def _unbounded(skew: int, whose: str, ask: Ask) -> Weaker[Ask]:
    condition = f"with as even a spread as there is room for{whose}, whatever the skew"
    return Weaker(0.1, "spread.maxSkew", skew, "", condition, ask)


def _regrouped(
    ask: TopologyRequest, size: float, wider: str, condition: str, lesser: TopologyRequest
) -> Weaker[TopologyRequest]:
    """A wider level of a block; a block that may be anywhere is dropped with its size."""
    if wider:
        return Weaker(size, "group.required", ask.group_required, wider, condition, lesser)
    before = f"{ask.group_size} in one {ask.group_required}"
    return Weaker(size, "group", before, "", condition, lesser._replace(group_size=0))


def _wider(
    ask: TopologyRequest,
    field: Literal["required", "group_required"],
    whose: str,
    levels: Sequence[str],
) -> Iterator[tuple[str, str, TopologyRequest]]:
    """Each wider level than the required one, anywhere last, with its condition and request."""
    level: str = getattr(ask, field)
    what = f"each block of {ask.group_size} tasks" if field == "group_required" else "all of it"
    if not level:
        return
    at = levels.index(level) if level in levels else 1
    for wider in (*reversed(levels[1:at]), ""):
        where = f"only inside one {spoken(wider)}" if wider else "anywhere"
        condition = f"if {what} might be {where}{whose}, not only inside one {spoken(level)}"
        lesser = ask._replace(group_required=wider) if field == "group_required" else ask._replace(required=wider)
        yield wider, condition, lesser


# -- reasons ----------------------------------------------------------------------------------------------------------


def unmet_spread(ask: TopologyRequest, level: str, count: int, room: Collection[int]) -> Unmet:
    """Why `count` tasks wait for an even spread over cells of a level with this much room each."""
    some = sum(each > 0 for each in room)
    message = (
        f"Needs {counted(count, 'task')} spread over {spoken(level)}s with a skew of at most {ask.max_skew}; "
        f"{some} of {len(room)} {spoken(level)}s have room, at most for {max(room)}."
    )
    return Unmet("spread", message, {"needed": count, "cells": len(room), "open": some})


def unmet_model(count: int, best: str, room: int) -> Unmet:
    """Why `count` tasks wait for devices of one model; the best has room for `room` of them."""
    asked = f"the best, {best}, has room for {room} of {counted(count, 'task')}"
    return Unmet("same-model", f"Needs devices of one model; {asked}.", {"needed": count, "free": room})


def unmet_groups(size: int, level: str, devices: int) -> Unmet:
    """Why blocks of `size` tasks, which need so many devices together, wait for cells of a level."""
    name = spoken(level)
    message = f"Each block of {size} tasks must be inside one {name}, and too few {name}s have room."
    return Unmet("no-cell-holds-block", message, {"needed": devices})


def unmet_group(role: str, tasks: Sequence[int], size: int, where: str, room: int) -> Unmet:
    """Why tasks wait for the cell where the rest of their block of `size` runs."""
    block = tasks[0] // size
    message = (
        f"{role} {', '.join(map(str, tasks))} must be in {where} with the rest of the block "
        f"({block * size} to {block * size + size - 1}); there is room for {room} of {counted(len(tasks), 'task')}."
    )
    return Unmet("no-room-in-block", message, {"needed": len(tasks), "free": room, "block": block})


def outside_hived(who: str, ask: TopologyRequest) -> Iterator[str]:
    """What HiveD has no rule for."""
    if ask.required:
        yield f"{who} inside one {ask.required}"
    if ask.group_size and ask.group_required:
        yield f"{who} in groups of {ask.group_size}"
    if ask.spread_level:
        yield f"{who} spread over {ask.spread_level}s"
    if ask.same_model:
        yield f"{who} on devices of one model"
