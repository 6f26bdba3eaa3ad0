"""Services, slots and attempts of a YARN cluster as this server knows them: a table without I/O.

A *slot* is a container that has said hello. An *attempt* is pending until a slot of its component is free, then assigned
to it for good. The table decides who gets what; the engine makes each decision durable before a slot learns of it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from typing import Any

from corral.engines.yarn.service_spec import SlotShape
from corral.engines.yarn.slot_messages import AttemptReport
from corral.kernel.errors import CorralError
from corral.kernel.ids import AttemptId, JobId
from corral.model.launch import Exited, Started, TaskLaunch


class Phase(Enum):
    """The phase of an attempt on this engine."""

    PENDING = "pending"
    """It waits for a slot. -> ASSIGNED, ENDED"""
    ASSIGNED = "assigned"
    """A slot has it, by a durable record. -> STARTED, ENDED"""
    STARTED = "started"
    """Its slot has reported its start. -> ENDED"""
    ENDED = "ended"
    """Its end was reported. -> (forgotten)"""


def slot_key(job: str, container: str) -> str:
    """The key of a slot: a container counts only together with the job whose service it belongs to.

    So a container that gives another one's name in its own service gets nothing of that one's.
    """
    return f"{job}/{container}"


def job_of(attempt: AttemptId) -> JobId:
    """The job of an attempt."""
    return JobId(attempt.partition(".")[0])


@dataclass(slots=True)
class Attempt:
    """One attempt that is not forgotten."""

    name: AttemptId
    phase: Phase
    container: str = ""
    """The container that has it; `BURIED` for one that must never start."""
    _: KW_ONLY
    recorded: str = ""
    """The container that HDFS was last asked to record for it; without an answer it may be recorded or not."""
    shared: str = ""
    """Whose services it runs in, if other jobs of its user do so too; "" for those of its job alone."""
    launch: TaskLaunch | None = None
    """None when an earlier server started it."""
    shape: SlotShape | None = None
    since: float = 0.0
    stop: tuple[int, float] | None = None
    """The signal and the grace in seconds."""
    started: Started | None = None
    exited: Exited | None = None
    node: str = ""
    """The node that it runs on, as far as it is known."""
    devices: tuple[int, ...] = ()
    """The indexes of its devices, as far as they are known."""
    offers: tuple[tuple[int, ...], ...] = ()
    """The port numbers offered for each of its requests for ports."""
    ports_known: bool = False
    """Whether its slot has reported its ports."""
    trouble: CorralError | None = None
    """The refusal of YARN or HDFS that it met last."""
    assigned: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def owner(self) -> JobId:
        """Whose services it runs in: its job's, or those of small jobs of its user."""
        return JobId(self.shared) if self.shared else job_of(self.name)

    @property
    def slot(self) -> str:
        """The key of the slot that has it."""
        return slot_key(self.owner, self.container)


@dataclass(slots=True)
class Slot:
    """One container that has said hello."""

    service: str
    job: JobId
    """The owner of its service."""
    component: str
    instance: str
    container: str
    host: str
    attempts: set[AttemptId] = field(default_factory=set)
    """The attempt that it has, and ended ones that are not forgotten."""
    reported: Mapping[str, AttemptReport] = field(default_factory=dict)
    """The attempts' states in its last call."""
    seen: float = 0.0
    idle_since: float = 0.0
    releasing: bool = False
    sessions: list[dict[str, Any]] = field(default_factory=list)
    """Orders for sessions that it has not yet been told."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def key(self) -> str:
        """Its key in the table."""
        return slot_key(self.job, self.container)


@dataclass(slots=True)
class Service:
    """One YARN service of a job, or of small jobs of one user."""

    name: str
    job: JobId
    """Its owner: the job, or the key of a shared service (`shared.py`)."""
    user: str
    """The Hadoop user whose service it is."""
    queue: str
    components: dict[str, SlotShape]
    wanted: dict[str, int]
    """The number of containers that YARN was last asked for, by component."""
    busy_at: float = 0.0
    """The last time at which an attempt had a slot of it, or waited for one."""
    prolonged_at: float = float("-inf")
    """The last time at which its lifetime began anew."""
    looked_at: float = float("-inf")
    """The last time at which YARN was asked whether it still runs."""
    returned: int = 0
    """The containers that it gave back one by one."""
    surplus_since: dict[str, float] = field(default_factory=dict)
    """By component since when more containers are asked for than attempts have or wait for."""
    ending: bool = False
    """Whether it gets no more attempts, because it is being deleted."""

    def component_of(self, shape: SlotShape) -> str:
        """The component of a shape; "" when it has none."""
        return next((name for name, each in self.components.items() if each == shape), "")


class SlotTable:
    """All services, slots and attempts."""

    def __init__(self) -> None:
        self.services: dict[str, Service] = {}
        self.slots: dict[str, Slot] = {}
        """By `slot_key`."""
        self.attempts: dict[AttemptId, Attempt] = {}

    def services_of(self, job: JobId) -> list[Service]:
        """The services of a job that are not ending, in the order of their making."""
        return [each for each in self.services.values() if each.job == job and not each.ending]

    def slots_of(self, service: Service) -> list[Slot]:
        """The slots of a service."""
        return [each for each in self.slots.values() if each.service == service.name]

    def has_room(self, service: Service, component: str) -> bool:
        """Whether one more slot of a component can be YARN's: some beyond the asked-for may be ending meanwhile."""
        known = sum(each.component == component for each in self.slots_of(service))
        return known < 2 * service.wanted[component] + 16

    def add_slot(self, slot: Slot) -> list[Slot]:
        """Add a slot; returns the slots of the same instance that it replaces, whose containers are gone."""
        replaced = [
            each
            for each in self.slots.values()
            if (each.service, each.instance) == (slot.service, slot.instance) and each.container != slot.container
        ]
        for each in replaced:
            del self.slots[each.key]
        slot.attempts = {each.name for each in self.attempts.values() if each.slot == slot.key}
        self.slots[slot.key] = slot
        return replaced

    def has_task(self, slot: Slot) -> bool:
        """Whether an attempt has the slot that has not ended."""
        return any((each := self.attempts.get(name)) and each.exited is None for name in slot.attempts)

    def free_slot(self, shape: SlotShape, job: JobId) -> Slot | None:
        """A slot of the job and shape whose attempts have all ended."""
        for service in self.services_of(job):
            component = service.component_of(shape)
            for slot in self.slots_of(service):
                if slot.component == component and not slot.releasing and not self.has_task(slot):
                    return slot
        return None

    def pending(self, job: JobId) -> list[Attempt]:
        """The job's attempts that wait for a slot, the oldest first."""
        return [each for each in self.attempts.values() if each.phase is Phase.PENDING and each.owner == job]

    def unended(self, job: JobId) -> int:
        """The number of the job's attempts that have not ended."""
        return sum(each.exited is None and each.owner == job for each in self.attempts.values())

    def needed(self, service: Service, pending: Mapping[SlotShape | None, int]) -> dict[str, int]:
        """The containers that each component needs: those with an attempt, and those kept idle or, if more, `pending`.

        All are counted at once, since a shared service has a component for each node.
        """
        kept = [each for each in self.slots_of(service) if not each.releasing]
        busy = Counter(each.component for each in kept if self.has_task(each))
        idle = Counter(each.component for each in kept) - busy
        return {name: busy[name] + max(idle[name], pending.get(shape, 0)) for name, shape in service.components.items()}

    def is_busy(self, service: Service) -> bool:
        """Whether an attempt has a slot of a service, or waits for one."""
        waiting = any(each.shape in service.components.values() for each in self.pending(service.job))
        return waiting or any(self.has_task(each) for each in self.slots_of(service))

    def ports_unknown(self) -> int:
        """The number of running attempts of an earlier server whose slots have not reported their ports."""
        return sum(
            each.launch is None and each.exited is None and not each.ports_known for each in self.attempts.values()
        )

    def containers_asked_for(self, node_of: Callable[[str], str]) -> Iterator[tuple[str, SlotShape, int]]:
        """Node, shape and number of the containers of each component.

        On pinned nodes those that YARN was asked for; elsewhere those that are there, with `node_of` their host.
        """
        for service in self.services.values():
            for name, shape in service.components.items():
                if shape.node:
                    yield shape.node, shape, service.wanted.get(name, 0)
        for slot in self.slots.values():
            of = self.services.get(slot.service)
            found = of.components.get(slot.component) if of is not None else None
            if found is not None and not found.node:
                yield node_of(slot.host), found, 1

    def held_devices(self) -> dict[str, set[int]]:
        """The devices of attempts that have not ended, by node."""
        held: dict[str, set[int]] = {}
        for attempt in self.attempts.values():
            node = attempt.node or (attempt.shape.node if attempt.shape is not None else "")
            if attempt.exited is None and node:
                held.setdefault(node, set()).update(attempt.devices)
        return held
