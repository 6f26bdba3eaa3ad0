"""HiveD's affinity groups (gangs): their requests, states, placements and decisions.

HiveD schedules a group as a whole, never a part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from corral.kernel.errors import InvalidInput
from corral.scheduler.planners.hived.algorithm.cells import HIGHEST, OPPORTUNISTIC, PhysicalCell, VirtualCell

MOST_PODS: Final = 100_000
"""The most pods in one group."""


class GroupState(StrEnum):
    """The state of a kept group; waiting and deleted groups are not kept.

    Source: HiveD, doc/design/state-machine.md (its Pending and Deleted are *not kept* here).
    """

    ALLOCATED = "Allocated"
    """It uses each of its devices, and no preemptor wants any of them.

    -> BEING_PREEMPTED | gone
    """
    PREEMPTING = "Preempting"
    """It has reserved every device of its placement, some of which others still use; none of its pods is bound.

    -> ALLOCATED | gone
    """
    BEING_PREEMPTED = "BeingPreempted"
    """It uses its devices, and a preemptor has reserved some; the state stays even if the preemptor gives up.

    -> gone
    """


class Phase(StrEnum):
    """The caller's scheduling phase; only in PREEMPTING can it preempt victims and have cells reserved."""

    FILTERING = "Filtering"
    PREEMPTING = "Preempting"


@dataclass(frozen=True, slots=True)
class Member:
    """`pods` equal pods of a group, with `leaves` devices each."""

    pods: int
    leaves: int


@dataclass(frozen=True, slots=True)
class PodRequest:
    """The request of one pod, with its group; `pod` is unique in the cluster."""

    pod: str
    vc: str
    priority: int
    leaves: int
    group: str
    members: tuple[Member, ...]
    leaf_type: str = ""
    """The type of the devices; empty means any."""
    pinned_cell: str = ""
    lazy_preemption: bool = False
    """Whether it may lose its guarantee and keep running, instead of being ended by a preemptor of its own VC."""
    ignore_suggested: bool = True
    """Whether nodes outside the caller's suggestion may be used."""
    span_chains: bool = False
    """Whether the group may be split over chains when none has room for all of it (HiveD never does this)."""

    def sizes(self) -> list[int]:
        """Return the devices of each pod of the group, smallest first."""
        return sorted(member.leaves for member in self.members for _ in range(member.pods))

    def check(self) -> None:
        """Raise InvalidInput when the request is invalid on any cluster."""
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
    """The node and devices of one pod of a group, and the type of the owned cell that contains each device.

    The types are "" for opportunistic pods.
    """

    node: str
    devices: tuple[int, ...]
    owned_types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """Start the pod on these devices. With the request, this is everything that recovery after a crash needs."""

    node: str
    devices: tuple[int, ...]
    chain: str
    group: tuple[PodPlacement, ...]
    """Every pod of the group, smallest first."""


@dataclass(frozen=True, slots=True)
class Preempt:
    """The pod's cells are in use; these pods, all on `node`, must end first."""

    node: str
    victims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """The group cannot be placed now."""

    reason: str


Decision = Bind | Preempt | Wait


@dataclass(slots=True)
class Slot:
    """The place of one pod of a group; `cells` has None where the configuration no longer has the device."""

    size: int
    node: str
    devices: tuple[int, ...]
    cells: list[PhysicalCell | None]
    owned: list[VirtualCell | None]
    told: tuple[str, ...] = ()
    """The types of the owned cells when the pod was bound, for devices that the configuration has lost."""
    pod: PodRequest | None = None

    def held(self) -> Iterator[tuple[PhysicalCell, VirtualCell | None]]:
        """Yield its devices that still exist, each with its virtual cell."""
        for cell, owned in zip(self.cells, self.owned, strict=True):
            if cell is not None:
                yield cell, owned

    def chain(self, told: str) -> str:
        """Return the chain it is in, or `told` where the configuration has lost its devices."""
        return next((cell.kind.chain for cell, _ in self.held()), told)

    def types(self) -> Iterator[str]:
        """Yield for each device the type of the owned cell that contains it, "" if it is used opportunistically."""
        for at, (cell, owned) in enumerate(zip(self.cells, self.owned, strict=True)):
            if owned is not None:
                yield owned.root.kind.type
            else:
                yield self.told[at] if cell is None and at < len(self.told) else ""


@dataclass(slots=True, eq=False)
class Group:
    """An affinity group that holds or has reserved its devices; `guaranteed` means that it holds virtual cells."""

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
    """The pods waiting for the preemption to end, by name."""
    lazily_preempted_by: str = ""
    lazily_preempted_at: float = 0.0
    """Seconds since the epoch."""

    def held(self) -> Iterator[tuple[PhysicalCell, VirtualCell | None]]:
        """Yield its devices that still exist, each with its virtual cell."""
        for slot in self.slots:
            yield from slot.held()

    @property
    def pods(self) -> list[PodRequest]:
        """Return the running pods."""
        return [slot.pod for slot in self.slots if slot.pod is not None]

    @property
    def label(self) -> str:
        """Return the state in the notation of HiveD's own tests."""
        lost = self.priority > OPPORTUNISTIC and not self.guaranteed
        return f"{self.state.value}+LazyPreempted" if lost else self.state.value

    def placements(self) -> tuple[PodPlacement, ...]:
        """Return the placement of each of its pods, as stored with a bound pod."""
        return placements_of(self.slots)


def placements_of(slots: Iterable[Slot]) -> tuple[PodPlacement, ...]:
    """Return the placements of the pods of these slots, as stored with a bound pod."""
    return tuple(PodPlacement(slot.node, slot.devices, tuple(slot.types())) for slot in slots)


def new_slots(sizes: list[int], cells: list[list[PhysicalCell]], owned: list[list[VirtualCell]] | None) -> list[Slot]:
    """Return the slots of a placement, in the order of `sizes`."""
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
