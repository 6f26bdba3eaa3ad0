"""Play a workload for schedulers as Jobs of a Kubernetes cluster, for whichever scheduler serves them there.

Times are those at which this program hears of a change: Kubernetes' own have whole seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from corral.benchmarks.pace import Played, submit_at_pace
from corral.benchmarks.suite.jobs import LABEL
from corral.benchmarks.workloads.document import Arrival
from corral.benchmarks.workloads.gang_pods import GangPods
from corral.benchmarks.workloads.outcome import Life
from corral.engines.kubernetes.api.access import kubeconfig_access
from corral.engines.kubernetes.api.quantities import amount
from corral.engines.kubernetes.api.resources import NODES, PODS, Call, Resource
from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.benchmark.gang_job import GANG, Asked, job_of
from corral.engines.kubernetes.watch.node_structs import Node
from corral.engines.kubernetes.watch.pod_structs import Condition, Object, Pod, Slim
from corral.engines.kubernetes.watch.reflector import Reflector
from corral.kernel.errors import Unavailable

_JOBS: Final = Resource("jobs", "batch")
_LOOK_SECONDS: Final = 0.5
_CLEAN_SECONDS: Final = 60.0


class _JobStatus(Slim, frozen=True):
    conditions: tuple[Condition, ...] | None = None


class _Job(Object, frozen=True):
    """`batch/v1` Job."""

    status: _JobStatus = _JobStatus()


@dataclass
class _Gang:
    arrival: Arrival
    pods: GangPods
    submitted: float | None = None
    failed: bool = False

    @property
    def over(self) -> bool:
        return self.failed or self.pods.ended is not None


class WorkloadRun:
    """One run of a workload; its Jobs and pods have the label `corral.dev/benchmark` with the run's name."""

    def __init__(
        self, transport: Transport, run: str, arrivals: Sequence[Arrival], asked: Asked, played: Played
    ) -> None:
        """`played` is filled."""
        self._transport, self._run, self._asked = transport, run, asked
        self._gangs = [_Gang(arrival, GangPods(arrival.kind.tasks)) for arrival in arrivals]
        self._changed = 0.0
        self._played = played

    async def play(self, *, speed: float, tell: Callable[[str], None]) -> None:
        """Create everything, wait until all has ended, and delete it. Raises CorralError."""
        where, label = self._asked.namespace, f"{LABEL}={self._run}"
        pods = Reflector(self._transport, PODS, Pod, namespace=where, labels=label, seed=self._run)
        jobs = Reflector(self._transport, _JOBS, _Job, namespace=where, labels=label, seed=self._run)
        following = [asyncio.create_task(each) for each in (pods.run(), jobs.run(), self._read(pods), self._end(jobs))]
        total = len(self._gangs)
        try:
            self._played.capacity = await self._capacity()
            await self._synced(pods, jobs)
            arrivals = [gang.arrival for gang in self._gangs]
            self._played.late = await submit_at_pace(
                arrivals,
                self._submit,
                speed=speed,
                tell=lambda number: tell(f"{number + 1} of {total} gangs submitted"),
            )
            await self._wait(following, tell)
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)
            await self._delete()
            self._played.lives = [life for gang in self._gangs if (life := _life(gang)) is not None]

    async def _synced(self, *followed: Reflector[Any]) -> None:
        try:
            async with asyncio.timeout(self._asked.wait_seconds):
                for each in followed:
                    await each.synced.wait()
        except TimeoutError:
            trouble = next((each.trouble for each in followed if each.trouble is not None), None)
            raise trouble or Unavailable("kubernetes-timeout", "The cluster does not list its pods.") from None

    async def _submit(self, number: int) -> None:
        gang = self._gangs[number]
        gang.submitted = time.monotonic()
        body = json.dumps(job_of(gang.arrival, number, self._run, self._asked)).encode()
        await self._transport.ask(Call("create", _JOBS, self._asked.namespace), body=body)

    async def _read(self, pods: Reflector[Pod]) -> None:
        while True:
            for change in await pods.take():
                pod, now = change.object, time.monotonic()
                gang = self._gang(pod.metadata.labels)
                if gang is not None:
                    gang.pods.fold(pod.key, "" if change.gone else pod.status.phase, now)
                    self._changed = now

    async def _end(self, jobs: Reflector[_Job]) -> None:
        while True:
            for change in await jobs.take():
                gang = self._gang(change.object.metadata.labels)
                conditions = change.object.status.conditions or ()
                if gang is not None and any(each.type == "Failed" and each.status == "True" for each in conditions):
                    gang.failed = True

    def _gang(self, labels: Mapping[str, str]) -> _Gang | None:
        number = labels.get(GANG, "")
        return self._gangs[int(number)] if number.isdecimal() and int(number) < len(self._gangs) else None

    async def _wait(self, following: Sequence[asyncio.Task[None]], tell: Callable[[str], None]) -> None:
        self._changed = time.monotonic()
        while left := sum(not gang.over for gang in self._gangs):
            for task in following:
                if task.done():
                    task.result()
            if time.monotonic() - self._changed > self._asked.wait_seconds:
                sentence = f"{left} gangs are deleted: nothing happened for {self._asked.wait_seconds:g} seconds."
                self._played.problems.append(sentence)
                return
            running = sum(gang.pods.started is not None and not gang.over for gang in self._gangs)
            tell(f"{left - running} gangs wait, {running} run")
            await asyncio.sleep(_LOOK_SECONDS)

    async def _capacity(self) -> int:
        """The units of all nodes that are open."""
        nodes = Reflector(self._transport, NODES, Node, seed=self._run)
        following = asyncio.create_task(nodes.run())
        try:
            await self._synced(nodes)
            open_nodes = [node for node in nodes.items.values() if not node.spec.unschedulable]
            amounts = [amount(node.status.allocatable.get(self._asked.resource, "0"), 1000) for node in open_nodes]
            return sum(each // self._asked.unit_millis for each in amounts)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def _delete(self) -> None:
        params = {"labelSelector": f"{LABEL}={self._run}", "propagationPolicy": "Background"}
        call = Call("deletecollection", _JOBS, self._asked.namespace)
        await self._transport.ask(call, params=params, deadline=_CLEAN_SECONDS, repeatable=True)


def _life(gang: _Gang) -> Life | None:
    kind = gang.arrival.kind
    if gang.submitted is None:
        return None
    ended = None if gang.failed else gang.pods.ended
    return Life(kind.name, kind.tasks * kind.units, gang.submitted, gang.pods.started, ended)


async def play_workload(
    cluster: tuple[str, str],
    run: str,
    arrivals: Sequence[Arrival],
    asked: Asked,
    played: Played,
    *,
    speed: float,
    tell: Callable[[str], None],
) -> None:
    """Play gangs on a `cluster`: a kubeconfig file, "" for the usual one, and its context. Raises CorralError."""
    file, context = cluster
    path = file or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    transport = Transport(kubeconfig_access(path, context), seed=run)
    await transport.open()
    try:
        await WorkloadRun(transport, run, arrivals, asked, played).play(speed=speed, tell=tell)
    finally:
        await transport.close()
