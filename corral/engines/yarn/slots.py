"""Services, slots and attempts of a YARN cluster as this server knows them: a table without I/O.

A *slot* is a container that has said hello. An *attempt* is pending until a slot of its component is free, then assigned
to it for good. The table decides who gets what; the engine makes each decision durable before a slot learns of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from corral.engines.yarn.service_spec import SlotShape
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


@dataclass(slots=True)
class Attempt:
    """One attempt that is not forgotten."""

    name: AttemptId
    phase: Phase
    container: str = ""
    """The container that has it; `BURIED` for one that must never start."""
    launch: TaskLaunch | None = None
    """None when an earlier server started it."""
    shape: SlotShape | None = None
    since: float = 0.0
    stop: tuple[int, float] | None = None
    """The signal and the grace in seconds."""
    started: Started | None = None
    exited: Exited | None = None
    assigned: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class Slot:
    """One container that has said hello."""

    service: str
    component: str
    instance: str
    container: str
    host: str
    attempt: AttemptId | None = None
    """The attempt that it has, or had until that is forgotten."""
    reported: dict[str, Any] = field(default_factory=dict)
    """The attempts' states in its last call."""
    seen: float = 0.0
    idle_since: float = 0.0
    releasing: bool = False
    sessions: list[dict[str, Any]] = field(default_factory=list)
    """Orders for sessions that it has not yet been told."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class Service:
    """One YARN service of a job."""

    name: str
    job: JobId
    components: dict[str, SlotShape]
    wanted: dict[str, int]
    """The number of containers that YARN was last asked for, by component."""

    def component_of(self, shape: SlotShape) -> str:
        """The component of a shape; "" when it has none."""
        return next((name for name, each in self.components.items() if each == shape), "")


class SlotTable:
    """All services, slots and attempts."""

    def __init__(self) -> None:
        self.services: dict[str, Service] = {}
        self.slots: dict[str, Slot] = {}
        """By container."""
        self.attempts: dict[AttemptId, Attempt] = {}

    def services_of(self, job: JobId) -> list[Service]:
        """The services of a job, in the order of their making."""
        return [each for each in self.services.values() if each.job == job]

    def add_slot(self, slot: Slot) -> list[Slot]:
        """Add a slot; returns the slots of the same instance that it replaces, whose containers are gone."""
        replaced = [
            each
            for each in self.slots.values()
            if (each.service, each.instance) == (slot.service, slot.instance) and each.container != slot.container
        ]
        for each in replaced:
            del self.slots[each.container]
        mine = (each.name for each in self.attempts.values() if each.container == slot.container)
        slot.attempt = next(mine, None)
        self.slots[slot.container] = slot
        return replaced

    def free_slot(self, shape: SlotShape, job: JobId) -> Slot | None:
        """A slot of the job and shape that has no attempt."""
        for service in self.services_of(job):
            component = service.component_of(shape)
            for slot in self.slots.values():
                free = slot.attempt is None and not slot.releasing
                if free and slot.service == service.name and slot.component == component:
                    return slot
        return None

    def pending(self, job: JobId) -> list[Attempt]:
        """The job's attempts that wait for a slot, the oldest first."""
        return [each for each in self.attempts.values() if each.phase is Phase.PENDING and _job(each.name) == job]

    def needed(self, service: Service, component: str, pending: int) -> int:
        """The containers that a component needs: those with an attempt, those kept idle, and `pending` more."""
        slots = [each for each in self.slots.values() if each.service == service.name and each.component == component]
        busy = sum(each.attempt is not None for each in slots)
        idle = sum(each.attempt is None and not each.releasing for each in slots)
        return busy + max(idle, pending)

    def used_by_node(self) -> Iterator[tuple[str, SlotShape, int]]:
        """For each component its node, its shape and the containers that YARN was asked for."""
        for service in self.services.values():
            for name, shape in service.components.items():
                yield shape.node, shape, service.wanted.get(name, 0)


def _job(attempt: AttemptId) -> str:
    return attempt.partition(".")[0]
