"""A core in virtual time with a few described machines, and jobs whose work the test says."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from msgspec import structs

from corral.control.core.configuration import Configured
from corral.control.core.core import Core
from corral.control.core.driver import Driver, Work
from corral.control.core.inputs import CordonsRead, Recovered
from corral.control.core.machines import Machines, MachinesSeen
from corral.control.core.memory_store import MemoryStore
from corral.control.core.new_jobs import stored_job
from corral.control.core.world import Job
from corral.control.recovery import read_recovered
from corral.kernel.ids import AttemptId, JobId, job_id
from corral.launcher import LaunchPolicy
from corral.model.cordons import Cordon
from corral.model.inventory import Device, Inventory, Node
from corral.model.receipts import Receipt
from corral.model.store_writes import IntentKind, LiveJob, NewJob
from corral.scheduler import Policy, find_policy
from corral.spec.job_reader import load_job

BEGIN: Final = 1_000_000_000.0
POLICY: Final = LaunchPolicy(conflict_delay=(60.0, 60.0))
_USUAL: Final = Work(60.0)


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

    def __init__(
        self,
        nodes: int = 2,
        devices: int = 4,
        policy: LaunchPolicy = POLICY,
        usual: Work = _USUAL,
        not_ready_seconds: float = 60.0,
        scheduling: Policy | None = None,
        machines: Inventory | None = None,
    ) -> None:
        self.machines = machines or inventory(nodes, devices)
        self.not_ready_seconds = not_ready_seconds
        self.policy = policy
        self.usual = usual
        """What the attempts of jobs do that `works` does not name."""
        self.works: dict[str, Work] = {}
        begun = Recovered(Configured(scheduling or find_policy()), machines=(MachinesSeen(self.machines),))
        core = Core(begun, policy, Machines(not_ready_seconds), BEGIN)
        self.driver = Driver(core, MemoryStore(), self._work, BEGIN)
        self._number = 0

    @property
    def core(self) -> Core:
        """The core as it is now."""
        return self.driver.core

    def _work(self, job: Job, attempt: AttemptId) -> Work:
        return self.works.get(job.name, self.usual)

    def submit(self, name: str, at: float = 0.0, *, work: Work | None = None, **more: Any) -> JobId:
        """Have a job of one role be submitted `at` seconds after the beginning."""
        if work is not None:
            self.works[name] = work
        role = {"replicas": more.pop("replicas", 1), "command": ["true"]}
        role["resources"] = {"cpu": 1, "devices": more.pop("devices", 1)}
        return self._submit(
            json.dumps({"name": name, "framework": "shell", "roles": {"worker": role}, **more}), BEGIN + at
        )

    def submit_file(self, text: str) -> JobId:
        """Have a job file be submitted now, and go on through all that follows at once."""
        identity = self._submit(text, self.driver.now)
        self.settle()
        return identity

    def _submit(self, text: str, at: float) -> JobId:
        self._number += 1
        identity = job_id(int(at * 1000), self._number)
        self.driver.at(at, new_job(identity, load_job(text), at))
        return identity

    def run(self, until: float) -> None:
        """Go on to so many seconds after the beginning."""
        self.driver.run(BEGIN + until)

    def settle(self) -> None:
        """Go on through all that happens now."""
        self.driver.run(self.driver.now)

    def ask(self, job: JobId, kind: IntentKind, **data: object) -> None:
        """Store a request of the job's user, and have it be carried out."""
        self.driver.request(job, kind, "ada", **data)
        self.settle()

    def close(self, *cordons: Cordon) -> None:
        """Close exactly these nodes from now on."""
        self.driver.store.closed_nodes = {each.node: each for each in cordons}
        self.driver.at(self.driver.now, CordonsRead(self.driver.store.closed_nodes))
        self.settle()

    def see(self, *nodes: Node) -> None:
        """Have the engine report these nodes instead of those of the same names."""
        changed = {node.name: node for node in nodes}
        seen = tuple(changed.get(node.name, node) for node in self.machines.nodes)
        self.machines = structs.replace(self.machines, nodes=seen)
        self.driver.at(self.driver.now, MachinesSeen(self.machines))
        self.settle()

    def nodes_of(self, job: JobId) -> dict[int, str]:
        """The nodes on which a job's tasks hold something, by task index."""
        tasks = self.stored(job).tasks.items()
        return {key.index: task.placement.node for key, task in tasks if task.holds and task.placement is not None}

    def receipts(self, job: JobId) -> list[Receipt]:
        """The receipts of a job, in order."""
        return [each for each in self.driver.store.receipts.values() if each.job == job]

    def running(self, job: JobId, role: str = "") -> list[AttemptId]:
        """The running attempts of a job, or of a role of it."""
        return sorted(each for each in self.driver.running if each.startswith(f"{job}.") and role in each)

    def end(self, *attempts: AttemptId, code: int = 0) -> None:
        """End running attempts now, together, and go on through all that follows at once."""
        for attempt in attempts:
            self.driver.end(attempt, code)
        self.settle()

    def stored(self, job: JobId) -> LiveJob:
        """A job as it is stored."""
        (found,) = self.driver.store.jobs([job])
        return found

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
        self.driver.core = Core(whole, self.policy, Machines(self.not_ready_seconds), self.driver.now)


def new_job(identity: JobId, document: Any, at: float) -> NewJob:
    """A submitted job of the user ada."""
    return stored_job(
        identity,
        at,
        document.to_json(),
        name=document.name,
        user="ada",
        queue=document.spec.queue,
        priority=document.priority,
        job_type=document.spec.job_type,
        hold="dependency" if document.spec.depends_on else "",
    )
