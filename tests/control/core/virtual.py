"""A core in virtual time with a few described machines, and jobs whose work the test says."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from msgspec import structs

from corral.control.core.configuration import Configured
from corral.control.core.core import Core
from corral.control.core.driver import Driver, Work
from corral.control.core.inputs import Recovered
from corral.control.core.machines import Machines, MachinesSeen
from corral.control.core.memory_store import MemoryStore
from corral.control.core.world import Job
from corral.control.recovery import read_recovered
from corral.kernel.ids import AttemptId, JobId, job_id
from corral.launcher import LaunchPolicy
from corral.model.inventory import Device, Inventory, Node
from corral.model.records import JobSummary, rfc3339
from corral.model.store_writes import NewJob
from corral.scheduler import find_policy
from corral.spec.job_reader import load_job

BEGIN: Final = 1_000_000_000.0
POLICY: Final = LaunchPolicy(conflict_delay=(60.0, 60.0))


def inventory(nodes: int = 2, devices: int = 4) -> Inventory:
    """Nodes with described devices, two of them to a rack."""
    return Inventory(
        "local",
        tuple(
            Node(
                name=f"local/node{at}",
                cells=(("rack", f"rack{at // 2}"),),
                devices=tuple(Device(index, f"{at}:{index}", described=True) for index in range(devices)),
                cpu_millis=64_000,
                memory_bytes=2**38,
            )
            for at in range(nodes)
        ),
    )


class Played:
    """A driver, and what the attempts of its jobs do by the jobs' names."""

    def __init__(self, nodes: int = 2, devices: int = 4) -> None:
        self.machines = inventory(nodes, devices)
        self.works: dict[str, Work] = {}
        """A job that is not named runs 60 seconds and succeeds."""
        begun = Recovered(Configured(find_policy()), machines=(MachinesSeen(self.machines),))
        core = Core(begun, POLICY, Machines(), BEGIN)
        self.driver = Driver(core, MemoryStore(), self._work, BEGIN)
        self._number = 0

    @property
    def core(self) -> Core:
        """The core as it is now."""
        return self.driver.core

    def _work(self, job: Job, attempt: AttemptId) -> Work:
        return self.works.get(job.name, Work(60.0))

    def submit(self, name: str, at: float = 0.0, *, work: Work | None = None, **more: Any) -> JobId:
        """Have a job of one role be submitted `at` seconds after the beginning."""
        self._number += 1
        if work is not None:
            self.works[name] = work
        role = {"replicas": more.pop("replicas", 1), "command": ["true"]}
        role["resources"] = {"cpu": 1, "devices": more.pop("devices", 1)}
        document = load_job(json.dumps({"name": name, "framework": "shell", "roles": {"worker": role}, **more}))
        identity = job_id(int((BEGIN + at) * 1000), self._number)
        self.driver.at(BEGIN + at, new_job(identity, document, BEGIN + at))
        return identity

    def run(self, until: float) -> None:
        """Go on to so many seconds after the beginning."""
        self.driver.run(BEGIN + until)

    def happened(self, job: JobId) -> list[tuple[float, str]]:
        """What happened to a job, with the seconds after the beginning."""
        return [(each.at - BEGIN, each.fact.kind) for each in self.driver.store.facts if each.job == job]

    def when(self, job: JobId, kind: str) -> list[float]:
        """The seconds after the beginning at which something of a kind happened to a job."""
        return [at for at, found in self.happened(job) if found == kind]

    def begin_anew(self) -> None:
        """Drop the core, and build another one from what is stored, as after a kill."""
        recovered = asyncio.run(read_recovered(self.driver.store, self.core.configured, self.core.intents.cursor))
        whole = structs.replace(recovered, machines=(MachinesSeen(self.machines),))
        self.driver.core = Core(whole, POLICY, Machines(), self.driver.now)


def new_job(identity: JobId, document: Any, at: float) -> NewJob:
    """A submitted job of the user ada."""
    summary = JobSummary(
        id=identity,
        name=document.name,
        user="ada",
        queue=document.spec.queue,
        priority=document.priority,
        job_type=document.spec.job_type,
        state="waiting",
        created_at=rfc3339(at),
    )
    return NewJob(
        id=identity,
        user="ada",
        name=document.name,
        queue=document.spec.queue,
        priority=document.priority,
        doc=document.to_json(),
        summary=summary,
        created_at=at,
        hold="dependency" if document.spec.depends_on else "",
    )
