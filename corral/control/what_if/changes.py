"""The changes of a what-if question, checked against a core, and applied to a driver of a copy of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

import msgspec

from corral.control.core.configuration import Configured, planner_settings, scheduler_policy
from corral.control.core.core import Core
from corral.control.core.driver import Driver
from corral.control.core.inputs import ConfigurationRead, CordonsRead, Input
from corral.control.core.machines import MachinesSeen
from corral.control.core.new_jobs import stored_job
from corral.kernel.errors import NotFound
from corral.kernel.ids import JobId, job_id
from corral.kernel.units import devices
from corral.model.accounts import User
from corral.model.configuration import configuration_of
from corral.model.cordons import Cordon, Drain
from corral.model.inventory import Inventory, Node
from corral.model.store_writes import IntentKind, NewJob
from corral.model.what_if import NewWork, Question
from corral.scheduler import Policy
from corral.spec.cluster import ClusterDocument
from corral.spec.configuration_file import load_document
from corral.spec.job import UnifiedJob

ASKER: Final = "what-if"
"""Who cordons nodes and stops jobs in a changed course."""
Described = Callable[[Mapping[str, ClusterDocument]], Sequence[Inventory]]
"""The inventories that engines would present with these Cluster documents."""


@dataclass(frozen=True)
class Changes:
    """What is different from the start: inputs of the core, requests, and submitted jobs."""

    inputs: tuple[Input, ...] = ()
    stop: tuple[JobId, ...] = ()
    priorities: Mapping[JobId, str] = field(default_factory=dict)
    submitted: tuple[NewJob, ...] = ()
    users: tuple[User, ...] = ()
    """The accounts of those who submit."""
    arrivals: tuple[NewJob, ...] = ()
    """Jobs that come later, each at its `created_at`."""

    def apply(self, driver: Driver) -> None:
        """Have them happen at the driver's present time; the submitted jobs are the caller's to give it."""
        for each in self.inputs:
            driver.at(driver.now, each)
        for job in self.stop:
            driver.request(job, IntentKind.STOP, ASKER)
        for job, priority in self.priorities.items():
            driver.request(job, IntentKind.EDIT, ASKER, priority=priority)


def changes_of(question: Question, core: Core, now: float, default: Policy, described: Described) -> Changes:
    """The changes that a question asks for; `default` is the policy while no document names one.

    Raises NotFound for an unknown node or a job that is over, InvalidInput for documents that the scheduler refuses.
    """
    configured = _configured(question, core, default)
    return Changes(
        inputs=tuple(_inputs(question, core, now, configured, described)),
        stop=tuple(_live(core, job) for job in question.stop),
        priorities={_live(core, job): priority for job, priority in question.priorities.items()},
        submitted=tuple(submitted(question.submit, now)),
        users=tuple({each.user: User(each.user, groups=each.groups) for each in question.submit}.values()),
    )


def _inputs(
    question: Question, core: Core, now: float, configured: Configured | None, described: Described
) -> Iterator[Input]:
    inventories: dict[str, Inventory] = {}
    if configured is not None:
        if configured.now.clusters != core.configured.now.clusters:
            inventories = {each.engine: each for each in described(configured.now.clusters)}
        yield ConfigurationRead(configured)
    for added in question.add_nodes:
        model = _node(core, added.like)
        engine = added.like.partition("/")[0]
        seen = inventories.get(engine) or core.machines.inventory(engine)
        if seen is not None:
            copies = _copies(model, added.count, {node.name for node in seen.nodes})
            inventories[engine] = msgspec.structs.replace(seen, nodes=(*seen.nodes, *copies))
    for engine, inventory in inventories.items():
        removed = frozenset(name for name in core.machines.removed if name.startswith(f"{engine}/"))
        yield MachinesSeen(inventory, removed)
    if question.drain:
        cordons = {_node(core, name).name: Cordon(name, ASKER, "", now, Drain.NOW) for name in question.drain}
        yield CordonsRead({**core.machines.cordons, **cordons})


def _configured(question: Question, core: Core, default: Policy) -> Configured | None:
    if question.documents is None:
        return None
    documents = [document for data in question.documents for document in load_document(data)]
    after = configuration_of(documents, core.configured.now.change)
    policy = scheduler_policy(after.policy, default)
    return Configured(policy, after, planner_settings(policy, after), core.configured.following)


def _copies(model: Node, count: int, names: set[str]) -> Iterator[Node]:
    number = 0
    for _ in range(count):
        while (name := f"{model.name}-added-{(number := number + 1)}") in names:
            pass
        devices = tuple(msgspec.structs.replace(each, id=f"{name}:{each.index}") for each in model.devices)
        yield msgspec.structs.replace(model, name=name, devices=devices, ready=True, ready_reason="", taints=())


def submitted(work: Sequence[NewWork], now: float) -> Iterator[NewJob]:
    """The jobs that a question submits, as the service would store them."""
    number = 0
    for each in work:
        document = UnifiedJob.model_validate_json(each.document)
        for copy in range(each.times):
            number += 1
            name = f"{document.name}-{copy + 1}" if each.times > 1 else document.name
            new = stored_job(
                job_id(int(now * 1000), number), now, each.document, name=name, user=each.user,
                queue=document.spec.queue, priority=document.priority,
            )  # fmt: skip
            summary = msgspec.structs.replace(new.summary, devices=devices(document.device_millis))
            yield msgspec.structs.replace(new, summary=summary)


def _node(core: Core, name: str) -> Node:
    found = core.machines.node(name)
    if found is None:
        near = get_close_matches(name, core.machines.nodes, n=1)
        hint = f"; did you mean {near[0]}?" if near else "; `corral nodes` lists them."
        raise NotFound("node-not-found", f"There is no node {name[:100]}{hint}")
    return found


def _live(core: Core, job: str) -> JobId:
    if JobId(job) not in core.world.jobs:
        raise NotFound("job-is-over", f"The job {job[:100]} is over already; only live jobs can be asked about.")
    return JobId(job)
