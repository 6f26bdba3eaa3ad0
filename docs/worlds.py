"""Simulate an example of `scheduling.md` by carrying out the scheduler's plans in virtual time.

The machines, queues and policy of a world are the documents of the example, so every example that is shown works.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from corral.control.core.configuration import scheduler_policy
from corral.devices.described import described_inventory
from corral.kernel.ids import JobId, TaskKey
from corral.model.configuration import configuration_of
from corral.model.plan import Eviction, GangPlacement, Plan
from corral.model.requests import DeviceRequest, GangRequest, RoleRequest, TopologyRequest
from corral.scheduler import (
    BuiltinPlanner,
    GangPlaced,
    GangQueued,
    NodesSeen,
    QueuesConfigured,
    VirtualRun,
    find_policy,
)
from corral.spec.configuration_file import load_document

PAGE = Path(__file__).resolve().parent / "scheduling.md"
EXAMPLE = re.compile(r"<!-- example: (?P<name>[\w-]+) -->\n```yaml\n(?P<text>.*?)```", re.DOTALL)


def examples() -> dict[str, str]:
    """The examples of the page by name."""
    return {found["name"]: found["text"] for found in EXAMPLE.finditer(PAGE.read_text())}


class Ran(NamedTuple):
    """A job's use of a device from one time to another."""

    job: str
    queue: str
    device: tuple[str, int]
    start: float
    end: float


class World(VirtualRun):
    """Virtual time, the machines and queues of one example, and a scheduler whose plans are carried out."""

    def __init__(self, example: str) -> None:
        configuration = configuration_of(load_document(examples()[example]))
        findings = configuration.findings()
        if findings:
            raise ValueError(f"the example {example} contradicts itself: {findings[0]}")
        super().__init__(BuiltinPlanner(policy=scheduler_policy(configuration.policy, find_policy())))
        for engine, document in configuration.clusters.items():
            self.planner.fold(NodesSeen(described_inventory(document, engine)))
        self.planner.fold(QueuesConfigured(configuration.queue_specs()))
        self.requests: dict[str, GangRequest] = {}
        self.leaving: dict[JobId, Eviction] = {}
        self.receipts: list[Eviction] = []
        self.ran: list[Ran] = []
        """By job and device; only uses that have ended."""
        self._since: dict[tuple[str, TaskKey], float] = {}

    def submit(
        self,
        job: str,
        tasks: int = 1,
        devices: int = 1,
        *,
        queue: str = "default",
        least: int | None = None,
        inside: str = "",
        priority: int = 10,
        hours: float = 0.0,
    ) -> None:
        """Queue a job; `least` makes it elastic, `hours` bounds its run time."""
        least = tasks if least is None else least
        role = RoleRequest("worker", tuple(range(tasks)), least, devices=DeviceRequest(devices))
        order, most = self.now + len(self.requests) / 1000, int(hours * 3600)
        self.requests[job] = GangRequest(
            JobId(job), 0, "ada", queue, priority, order, (role,), TopologyRequest(inside), max_duration_seconds=most
        )  # fmt: skip
        self.planner.fold(GangQueued(self.requests[job]))

    def cycle(self, now: float | None = None) -> Plan:
        """Plan once, start the placed jobs and record the evictions."""
        self.now = self.now if now is None else now
        found = super().cycle()
        self.receipts += found.evictions
        self.leaving |= {eviction.job: eviction for eviction in found.evictions}
        return found

    def placed(self, found: GangPlacement, event: GangPlaced) -> None:
        """Note when the tasks began; missing tasks of an elastic job wait to grow."""
        self._since.update({(found.job, task.key): self.now for task in event.placement.tasks})
        super().placed(found, event)

    def yielded(self, now: float | None = None) -> None:
        """End the evicted jobs or tasks; they wait again in their old places, or to grow."""
        self.now = self.now if now is None else now
        for job, eviction in sorted(self.leaving.items()):
            self.give_way(job, eviction.tasks)
        self.leaving.clear()

    def settle(self, now: float | None = None) -> None:
        """Plan, and end evicted jobs, until nothing changes."""
        found = self.cycle(now)
        while found.placements or found.evictions:
            self.yielded()
            found = self.cycle()

    def release(self, job: JobId, tasks: tuple[TaskKey, ...]) -> None:
        """Free what these tasks hold, and record how long they used it."""
        holds = self.cluster.holds(job)
        for task in sorted(tasks):
            for device in _bits(holds[task].devices):
                since = self._since.pop((job, task), self.now)
                self.ran.append(Ran(job, self.requests[job].queue, (holds[task].node, device), since, self.now))
        super().release(job, tasks)

    def waiting(self) -> list[tuple[str, str]]:
        """The jobs that wait to start, in the order of their submission, each with the code of its reason."""
        out = []
        for job in self.requests:
            entry = self.queue.first(JobId(job))
            if entry is not None and not self.cluster.holds(JobId(job)):
                out.append((job, entry.reported.binding.code if entry.reported else "new"))
        return out

    def told(self, job: str) -> str:
        """The reason that a waiting job was given, as a sentence; raises ValueError if there is none."""
        entry = self.queue.first(JobId(job))
        if entry is None or entry.reported is None:
            raise ValueError(f"{job} does not wait for a reason")
        return entry.reported.binding.message


def _bits(mask: int) -> list[int]:
    return [at for at in range(mask.bit_length()) if mask >> at & 1]
