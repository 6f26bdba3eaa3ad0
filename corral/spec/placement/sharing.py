"""The rule `sharing`: nodes without other jobs, one task on a node, and distance to jobs with certain tags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, NamedTuple

from pydantic import Field

from corral.kernel.units import counted
from corral.spec.base import Level, SpecModel, Text
from corral.spec.placement.level_name import spoken
from corral.spec.placement.rule import Series, Unmet, Weaker


class AntiAffinity(SpecModel):
    """Jobs that this job keeps away from, and that keep away from it."""

    tags: list[Annotated[Text, Field(min_length=1, max_length=100)]] = Field(
        default_factory=list, max_length=100, description="Jobs that carry one of these tags."
    )
    level: Level = Field("node", description="No cell of this level is shared with them.")


class Sharing(SpecModel):
    """With whom the job shares its nodes."""

    exclusive: bool = Field(False, description="Its nodes are shared with no other job.")
    one_task_per_node: bool = Field(
        False, description="No two of its tasks are on one node (FrameworkLauncher's antiaffinityAllocation)."
    )
    anti_affinity: AntiAffinity = Field(default_factory=AntiAffinity, description="Jobs to keep away from.")


class NodeSharing(NamedTuple):
    """Rules on sharing nodes with other jobs."""

    exclusive: bool = False
    """Whether its nodes are shared with no other job."""
    one_per_node: bool = False
    """No two of its tasks are on one node (FrameworkLauncher's antiaffinityAllocation)."""
    averse: tuple[str, ...] = ()
    """It shares no cell of `averse_level` with jobs that carry one of these tags."""
    averse_level: str = "node"

    @property
    def asked(self) -> bool:
        """Whether it has any rule."""
        return self.exclusive or self.one_per_node or bool(self.averse)

    def each(self, *, avoided: bool) -> Iterator[NodeSharing]:
        """Every rule by itself, that of tags last, also if only others keep away from the job (`avoided`)."""
        if self.exclusive:
            yield NodeSharing(exclusive=True)
        if self.one_per_node:
            yield NodeSharing(one_per_node=True)
        if self.averse or avoided:
            yield NodeSharing(averse=self.averse, averse_level=self.averse_level)


def requested(sharing: Sharing) -> NodeSharing | None:
    """What a document requests; None if it has no rule."""
    away = sharing.anti_affinity
    ask = NodeSharing(
        sharing.exclusive, sharing.one_task_per_node, tuple(sorted(set(away.tags))), away.level or "node"
    )  # fmt: skip
    return ask if ask.asked else None


def weaker(ask: NodeSharing) -> Series[NodeSharing]:
    """The request without one of its rules."""
    if ask.exclusive:
        condition = "on nodes that other jobs use too"
        yield [Weaker(0.2, "exclusive", "true", "", condition, ask._replace(exclusive=False))]
    if ask.one_per_node:
        condition = "with more than one task on a node"
        yield [Weaker(0.2, "oneTaskPerNode", "true", "", condition, ask._replace(one_per_node=False))]
    if ask.averse:
        tags, near = ", ".join(ask.averse), ask._replace(averse=(), averse_level="node")
        yield [Weaker(0.2, "antiAffinity.tags", tags, "", f"beside jobs that carry the tags {tags}", near)]


def unmet(ask: NodeSharing, level: str, count: int, room: int, nodes: int, total: int) -> Unmet:
    """Why `count` tasks wait for one rule: it leaves `nodes` of `total` nodes, with room for `room` of them.

    `level` is the machines' level of the cells that jobs with certain tags share.
    """
    counts = {"needed": count, "free": room, "nodes": total, "allowed": nodes}
    if ask.exclusive:
        empty = f"{nodes} of {total} are empty, with room for {room} of {counted(count, 'task')}"
        return Unmet("exclusive-nodes", f"Needs nodes without other jobs: {empty}.", counts)
    if ask.one_per_node:
        few = f"{counted(room, 'node')} can take one"
        return Unmet("one-task-per-node", f"Needs a node for each of its {counted(count, 'task')}; {few}.", counts)
    tags = ", ".join(ask.averse)
    apart = f"Keeps off each {spoken(level)} with jobs tagged {tags}" if ask.averse else "Others keep it off"
    message = f"{apart}: {nodes} of {total} nodes are left, with room for {room} of {counted(count, 'task')}."
    return Unmet("anti-affinity", message, counts)


def outside_hived(ask: NodeSharing | None) -> Iterator[str]:
    """What HiveD has no rule for."""
    if ask is not None and ask.asked:
        yield "who may be beside it"
