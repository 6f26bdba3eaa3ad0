"""All that watches the health of nodes, as one value without I/O: control's keeper and simulations drive it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

import msgspec

from corral.kernel.ids import JobId, TaskKey
from corral.kernel.units import format_duration
from corral.model.cordons import Cordon
from corral.model.hangs.scores import Progress, RankScores
from corral.model.health.ledger import HealthTerms, Ledger
from corral.model.health.records import HEALTH, NodeHealth
from corral.model.health.signs import Sign, SignKind
from corral.model.health.states import HealthState
from corral.model.inventory import Inventory, Node, Taint
from corral.model.runs import TaskStep
from corral.model.store_writes import ControlBatch, Intent, IntentKind
from corral.monitor.health.evidence import Evidence
from corral.monitor.health.hangs import HangingTask, Hangs, NodeOf
from corral.monitor.health.pace import Paces

SUSPECTED: Final = Taint("corral.dev/suspected", "", "PreferNoSchedule")
"""Laid over suspected nodes for the scheduler, which then takes others while some fit."""


class Watch:
    """The ledger with its sources of signs."""

    def __init__(self, terms: HealthTerms, known: Iterable[NodeHealth] = ()) -> None:
        self.ledger = Ledger(terms, known)
        self._evidence = Evidence(self.ledger)
        self._paces = Paces()
        self._hangs = Hangs()

    def stored(self, writes: ControlBatch, now: float) -> None:
        """Look at what a step has decided, once it is stored; `now` in seconds since 1970."""
        self._evidence.stored(writes.attempts, now)
        for job in writes.jobs:
            if not job.live:
                self._paces.forget(job.id)
                self._hangs.forget(job.id)

    def heard(self, intents: Iterable[Intent], node_of: Callable[[JobId, TaskKey], str], now: float) -> None:
        """Look at what programs reported; `node_of` tells the node of a task that runs, or ""."""
        for each in intents:
            if each.kind != IntentKind.WORK_REPORTED or "role" not in each.data:
                continue
            attempt = int(each.data["jobAttempt"])
            for said in _steps_in(each.data):
                self._step(each.job, attempt, said, node_of(each.job, TaskKey(said.role, said.index)), now)

    def _step(self, job: JobId, attempt: int, said: TaskStep, node: str, now: float) -> None:
        if not node:
            return
        key = TaskKey(said.role, said.index)
        self._hangs.reported(job, attempt, key, node, said.step, said.at, said.steps)
        progress = Progress(said.at, said.step, said.waited)
        for slow in self._paces.reported(job, attempt, str(key), node, progress):
            reason = f"{slow.task} made {slow.pace:.3g} steps a second, and its peers in the same gang {slow.peers:.3g}"
            reason += ", without their waits for each other" if slow.alone else ""
            self.ledger.add(Sign(SignKind.SLOW_TASK, slow.node, now, reason, job=slow.job))

    def scores(self, job: JobId, attempt: int) -> RankScores:
        """How fast the tasks of a job's attempt make steps now, beside each other."""
        return self._paces.scores(job, attempt)

    def hanging(self, node_of: NodeOf, device_of: Callable[[JobId, TaskKey], int], now: float) -> list[HangingTask]:
        """Look for tasks that hang since the last call, which are signs of their nodes.

        `device_of` tells the only device of a task, or `NODE` for none or several.
        """
        found = list(self._hangs.look(node_of, now))
        for each in found:
            lasted, took = format_duration(int(each.seconds) // 60 * 60), f"{each.step_seconds:.3g} s"
            reason = f"{each.key} reported no step for {lasted} while its peers went on; one took {took} before"
            device = device_of(each.job, each.key)
            self.ledger.add(Sign(SignKind.HANG, each.node, now, reason, device=device, job=each.job))
        return found

    def machines(self, nodes: Mapping[str, Node], lost: Callable[[str], str], now: float) -> None:
        """Look at all nodes as they were last seen."""
        self._evidence.machines(nodes, lost, now)

    def overlaid(self, inventory: Inventory) -> Inventory:
        """An inventory with a taint on suspected nodes, so that tasks go elsewhere while they can."""
        suspects = self.ledger.suspects
        if not any(node.name in suspects for node in inventory.nodes):
            return inventory
        nodes = tuple(
            msgspec.structs.replace(node, taints=(*node.taints, SUSPECTED)) if node.name in suspects else node
            for node in inventory.nodes
        )
        return msgspec.structs.replace(inventory, nodes=nodes)

    def cordons_wanted(self, cordons: Mapping[str, Cordon]) -> tuple[list[Cordon], list[str]]:
        """The cordons to set, and the nodes whose cordons of the ledger's own are to be removed."""
        new = []
        for health in self.ledger.closed:
            known, validating = cordons.get(health.node), health.state is HealthState.VALIDATING and bool(health.job)
            if known is None and health.closed:
                continue  # people have removed it; the next review sees it
            if known is None or (known.by == HEALTH and known.validating != validating):
                why = "it is being validated" if validating else health.why
                new.append(Cordon(health.node, HEALTH, why, health.since, validating=validating))
        mine = [name for name, each in cordons.items() if each.by == HEALTH]
        return new, [name for name in mine if not self.ledger.of(name).state.closed]


def _steps_in(data: Mapping[str, Any]) -> list[TaskStep]:
    """The steps of tasks in the data of a report: those of others that came before it, then its own."""
    found = msgspec.convert(data.get("others", []), list[TaskStep])
    report = data["report"]
    if report.get("step") is not None:
        whole, waited = report.get("steps"), report.get("waited")
        role, index = str(data["role"]), int(data["index"])
        found.append(TaskStep(role, index, float(report["step"]), float(report["at"]), whole, waited))
    return found


def empty_nodes(closed: Iterable[NodeHealth], held: Callable[[], Collection[str]]) -> frozenset[str]:
    """The closed nodes on which no task is; `held`, which costs O(tasks), is asked only if one waits for that."""
    waiting = {HealthState.CORDONED, HealthState.VALIDATING}
    names = {each.node for each in closed if each.state in waiting and not each.job}
    return frozenset(names - set(held())) if names else frozenset()
