"""Why: HiveD schedules affinity groups (gangs) and never a part of one; what a group asks, holds and becomes is here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from corral.kernel.errors import InvalidInput
from corral.scheduler.hived.cells import HIGHEST, OPPORTUNISTIC, PhysicalCell, VirtualCell

MOST_PODS: Final = 100_000
"""A group may not have more pods than this."""


class GroupState(StrEnum):
    """Where a group stands; a group that waits, or is gone, is not kept.

    Source: HiveD, doc/design/state-machine.md (Pending and Deleted are our *not kept*).
    """

    ALLOCATED = "Allocated"
    """Each of its devices is used by it, and no preemptor wants any.

    -> BEING_PREEMPTED | gone
    """
    PREEMPTING = "Preempting"
    """It has reserved every device of its placement, some of which others still use; none of its pods is bound.

    -> ALLOCATED | gone
    """
    BEING_PREEMPTED = "BeingPreempted"
    """It uses its devices, and a preemptor has reserved at least one of them; it is told so even if that one gives up.

    -> gone
    """


class Phase(StrEnum):
    """What the caller can do with a decision: only in the second may victims be named and cells reserved."""

    FILTERING = "Filtering"
    PREEMPTING = "Preempting"


@dataclass(frozen=True, slots=True)
class Member:
    """So many equal pods of a group, with so many devices each."""

    pods: int
    leaves: int


@dataclass(frozen=True, slots=True)
class PodRequest:
    """What one pod asks for, and the group it is part of; `pod` is unique in the cluster."""

    pod: str
    vc: str
    priority: int
    leaves: int
    group: str
    members: tuple[Member, ...]
    leaf_type: str = ""
    """The type of the devices; any type when empty."""
    pinned_cell: str = ""
    lazy_preemption: bool = False
    """Whether it may lose its guarantee and keep running, instead of being ended by a preemptor of its own VC."""
    ignore_suggested: bool = True
    """Whether the nodes that the caller suggests may be passed over."""
    span_chains: bool = False
    """Whether the group may be parted between chains when none has room for all of it (HiveD never does)."""

    def sizes(self) -> list[int]:
        """The devices of each pod of the group, smallest first."""
        return sorted(member.leaves for member in self.members for _ in range(member.pods))

    def check(self) -> None:
        """Raise InvalidInput when the request cannot be meant, whatever the cluster is."""
        if not self.group or not self.vc:
            raise InvalidInput("bad-request", f'Pod "{self.pod}" names no {"group" if self.vc else "virtual cluster"}.')
        if not OPPORTUNISTIC <= self.priority <= HIGHEST:
            message = f'Pod "{self.pod}" has priority {self.priority}; it is from {OPPORTUNISTIC} to {HIGHEST}.'
            raise InvalidInput("bad-priority", message)
        if any(member.pods < 1 or member.leaves < 1 for member in self.members):
            raise InvalidInput("bad-group", f'Group "{self.group}" has a member without pods or devices.')
        if sum(member.pods for member in self.members) > MOST_PODS:
            raise InvalidInput("bad-group", f'Group "{self.group}" has more than {MOST_PODS} pods.')
        if self.leaves not in {member.leaves for member in self.members}:
            message = f'Group "{self.group}" has no member of {self.leaves} devices, as pod "{self.pod}" asks.'
            raise InvalidInput("bad-group", message)


@dataclass(frozen=True, slots=True)
class PodPlacement:
    """Where one pod of a group is: its node and devices, and for each device the type of the owned cell it is in.

    The types are "" for what runs opportunistically.
    """

    node: str
    devices: tuple[int, ...]
    owned_types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """Start the pod on these devices. It, with its request, is all that has to be kept to recover after a crash."""

    node: str
    devices: tuple[int, ...]
    chain: str
    group: tuple[PodPlacement, ...]
    """Every pod of the group, smallest first."""


@dataclass(frozen=True, slots=True)
class Preempt:
    """The pod's cells are in use: these pods, all on `node`, have to end first."""

    node: str
    victims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing can be done for the group now."""

    reason: str


Decision = Bind | Preempt | Wait


@dataclass(slots=True)
class Slot:
    """The place of one pod of a group; `cells` has None where the configuration has lost the device."""

    size: int
    node: str
    devices: tuple[int, ...]
    cells: list[PhysicalCell | None]
    owned: list[VirtualCell | None]
    told: tuple[str, ...] = ()
    """The types of the owned cells when it was bound, for the devices that are lost."""
    pod: PodRequest | None = None

    def held(self) -> Iterator[tuple[PhysicalCell, VirtualCell | None]]:
        """Its devices that exist, each with the virtual cell it stands for."""
        for cell, owned in zip(self.cells, self.owned, strict=True):
            if cell is not None:
                yield cell, owned

    def chain(self, told: str) -> str:
        """The chain it is in; `told` where the configuration has lost it."""
        return next((cell.kind.chain for cell, _ in self.held()), told)

    def types(self) -> Iterator[str]:
        """For each device the type of the owned cell it is in, "" where it runs opportunistically."""
        for at, (cell, owned) in enumerate(zip(self.cells, self.owned, strict=True)):
            if owned is not None:
                yield owned.root.kind.type
            else:
                yield self.told[at] if cell is None and at < len(self.told) else ""


@dataclass(slots=True, eq=False)
class Group:
    """An affinity group that holds or has reserved its devices; `guaranteed` says that it holds virtual cells."""

    name: str
    vc: str
    priority: int
    lazy_preemption: bool
    ignore_suggested: bool
    pinned_cell: str
    chain: str
    state: GroupState
    slots: list[Slot]
    guaranteed: bool
    preempting: dict[str, PodRequest] = field(default_factory=dict)
    """The pods that wait for the preemption to end, by name."""
    lazily_preempted_by: str = ""
    lazily_preempted_at: float = 0.0
    """Seconds since the epoch."""

    def held(self) -> Iterator[tuple[PhysicalCell, VirtualCell | None]]:
        """Its devices that exist, each with the virtual cell it stands for."""
        for slot in self.slots:
            yield from slot.held()

    @property
    def pods(self) -> list[PodRequest]:
        """The pods that run."""
        return [slot.pod for slot in self.slots if slot.pod is not None]

    @property
    def label(self) -> str:
        """The state as HiveD's own tests write it."""
        lost = self.priority > OPPORTUNISTIC and not self.guaranteed
        return f"{self.state.value}+LazyPreempted" if lost else self.state.value

    def placements(self) -> tuple[PodPlacement, ...]:
        """Where every pod of it is, as a bound pod keeps it."""
        return placements_of(self.slots)


def placements_of(slots: Iterable[Slot]) -> tuple[PodPlacement, ...]:
    """Where the pods of these slots are, as a bound pod keeps it."""
    return tuple(PodPlacement(slot.node, slot.devices, tuple(slot.types())) for slot in slots)


def new_slots(sizes: list[int], cells: list[list[PhysicalCell]], owned: list[list[VirtualCell]] | None) -> list[Slot]:
    """The slots of a placement, in the order of `sizes`."""
    return [
        Slot(
            size,
            cells[at][0].nodes[0],
            tuple(cell.device for cell in cells[at]),
            list(cells[at]),
            list(owned[at]) if owned is not None else [None] * size,
        )
        for at, size in enumerate(sizes)
    ]
