"""Run the jobs of a benchmark suite through the API: submit, watch, collect results, end what is left."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from corral.benchmarks.results.lines import NodeResult, of_nodes, told_in
from corral.benchmarks.results.matrices import to_nodes
from corral.benchmarks.suite.jobs import Machine, Programs, Run, document_of
from corral.kernel.errors import Conflict, CorralError, NotFound, Unavailable
from corral.model.usage import NOT_LOST

if TYPE_CHECKING:
    from corral.client.schema import JobDetail, NodeView, TaskRecord
    from corral.client.sync import Client

ENDED: Final = ("succeeded", "failed", "stopped")
_LOOK_SECONDS: Final = 0.5
_LONGEST_LOG: Final = 4 * 1024 * 1024
"""Bytes of a log's end that are looked through."""
_GIB: Final = 1024**3
_YARN_MILLIS, _YARN_BYTES = 4000, 8 * _GIB
"""The most that YARN gives one container unless it is configured (`yarn.scheduler.maximum-allocation-*`)."""


@dataclass
class Outcome:
    """What came of a suite: metrics by node, and a sentence for each run that failed."""

    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    """What the nodes have not, in a sentence, with the runs that say so; no fault."""

    def results(self, machines: Sequence[Machine]) -> list[NodeResult]:
        """The results of the machines that told anything, in the machines' order."""
        return [
            NodeResult(each.name, self.metrics[each.name], sku_of(each))
            for each in machines
            if each.name in self.metrics
        ]


@dataclass
class _Live:
    """A submitted job."""

    run: Run
    job: str
    until: float
    """When it is stopped, by the monotonic clock."""


def machine_of(node: NodeView) -> Machine:
    """Return what a task on this node asks for: an idle node's free resources, else little, and all devices.

    On YARN a node also has room for the masters of the jobs: half of its processors is the most that is asked for.
    """
    idle = node["tasks"] == 0
    free, model = node["free"], next((device["model"] for device in node["devices"]), "")
    whole = [device for device in node["devices"] if device["healthy"] and device["parent"] < 0]
    millis, size = (free["cpuMillis"], free["memoryBytes"] * 4 // 5) if idle else (1000, 2 * _GIB)
    if node["engine"] == "yarn":
        millis = max(1000, min(millis, free["cpuMillis"] // 2, _YARN_MILLIS) // 1000 * 1000)
        size = min(size, _YARN_BYTES)
    return Machine(
        node["name"],
        millis,
        size,
        len(whole),
        model or node["labels"].get("node.kubernetes.io/instance-type", ""),
    )


def sku_of(machine: Machine) -> str:
    """Return the name under which a machine's like have a baseline."""
    return f"{machine.devices}x {machine.model}" if machine.devices else machine.model


class SuiteRun:
    """Runs of one suite; a benchmark begins when the one before it has ended everywhere."""

    def __init__(
        self,
        client: Client,
        programs: Programs,
        code: str,
        *,
        queue: str,
        most: int,
        wait_seconds: float,
        tell: Callable[[str], None],
    ) -> None:
        """At most `most` jobs are open at a time; one that has not ended `wait_seconds` after its time is stopped."""
        self._client = client
        self._programs = programs
        self._code = code
        self._queue = queue
        self._most = most
        self._wait_seconds = wait_seconds
        self._tell = tell
        self._live: list[_Live] = []
        self._name = f"bench-{secrets.token_hex(3)}"
        self._number = 0
        self._done = 0
        self.outcome = Outcome()

    def run(self, runs: Sequence[Run]) -> Outcome:
        """Carry out all runs. Raises the error of the first submission where none is accepted at all."""
        try:
            for group in _by_benchmark(runs):
                waiting = list(reversed(group))
                while waiting or self._live:
                    while waiting and len(self._live) < self._most:
                        self._submit(waiting.pop())
                    self._show(len(runs))
                    self._look()
                    if self._live:
                        time.sleep(_LOOK_SECONDS)
        finally:
            self._end_all()
        return self.outcome

    def _submit(self, run: Run) -> None:
        self._number += 1
        document = document_of(run, f"{self._name}-{self._number}", self._programs)
        if self._queue:
            document["queue"] = self._queue
        try:
            job = self._client.submit(json.dumps(document), code=self._code, idempotency_key=document["name"])
        except Unavailable:
            raise
        except CorralError as error:
            if self._number == 1:
                raise
            self._failed(run, error.message)
            return
        until = time.monotonic() + run.benchmark.timeout_seconds + self._wait_seconds
        self._live.append(_Live(run, job["id"], until))

    def _show(self, total: int) -> None:
        if self._live:
            run = self._live[0].run
            others = f" and {len(self._live) - 1} more" if len(self._live) > 1 else ""
            self._tell(f"{self._done} of {total}: {run.benchmark.name} on {_places(run)}{others}")

    def _look(self) -> None:
        for live in list(self._live):
            try:
                job = self._client.job(live.job)
            except NotFound:
                self._live.remove(live)
                self._failed(live.run, "its job was removed.")
                continue
            except Unavailable:
                return  # the server is away; its jobs go on
            if job["state"] in ENDED:
                try:
                    self._collect(live.run, job)
                except Unavailable as error:
                    if time.monotonic() <= live.until:
                        continue  # its log is asked for again
                    self._failed(live.run, f"its job {job['state']}, and its log cannot be read: {error.message}")
                self._live.remove(live)
            elif time.monotonic() > live.until:
                self._live.remove(live)
                self._stop(live.job)
                self._failed(live.run, f"it had not ended after its time; its job was {job['state']} and is stopped.")

    def _collect(self, run: Run, job: JobDetail) -> None:
        told = told_in(self._log(job["id"]), run.benchmark.name)
        tasks = self._client.tasks(job["id"], limit=1000)["items"]
        placed = {task["index"]: task["node"] for task in tasks if task["node"]}
        problems = [problem for each in told for problem in each.problems]
        ended = job["exit"]
        why = f": {ended['message']}" if ended is not None and ended["message"] else ""
        if not told:
            self._failed(run, f"its job {job['name']} {job['state']} and told no figures{why}")
            return
        if job["state"] != "succeeded" and not problems:
            problems = [f"its job {job['name']} {job['state']}, so figures are missing{why}"]
        for node, metrics in of_nodes(told, placed, run.benchmark.name).items():
            self.outcome.metrics.setdefault(node, {}).update(metrics)
        ways = {metric: value for each in told for metric, value in each.metrics.items()}
        for node, metrics in to_nodes(ways, placed, run.benchmark.name).items():
            self.outcome.metrics.setdefault(node, {}).update(metrics)
        if job["state"] != "succeeded":
            self._mark(run, _broken(run, tasks))
        self._done += 1
        self.outcome.problems += [f"{run.benchmark.name} on {_places(run)}: {problem}" for problem in problems]
        for reason in sorted({reason for each in told for reason in each.left_out}):
            self.outcome.left_out.setdefault(f"{run.benchmark.name}: {reason}", []).append(_places(run))

    def _log(self, job: str) -> bytes:
        """The end of a job's log."""
        kept = bytearray()
        for piece in self._client.log(job):
            kept += piece
            if len(kept) > 2 * _LONGEST_LOG:
                del kept[:-_LONGEST_LOG]
        return bytes(kept)

    def _failed(self, run: Run, why: str) -> None:
        """Record on each of its nodes that a run gave nothing; other runs go on."""
        self._done += 1
        self._mark(run, [machine.name for machine in run.machines])
        self.outcome.problems.append(f"{run.benchmark.name} on {_places(run)}: {why}")

    def _mark(self, run: Run, nodes: Sequence[str]) -> None:
        for node in nodes:
            self.outcome.metrics.setdefault(node, {})[f"{run.benchmark.name}/return_code"] = 1

    def _end_all(self) -> None:
        for live in self._live:
            self._stop(live.job)

    def _stop(self, job: str) -> None:
        try:
            self._client.stop(job)
        except (Conflict, NotFound, Unavailable) as error:
            self.outcome.problems.append(f"The job {job} could not be stopped: {error.message}")


def _by_benchmark(runs: Sequence[Run]) -> Iterator[list[Run]]:
    group: list[Run] = []
    for run in runs:
        if group and (run.benchmark, run.mode) != (group[0].benchmark, group[0].mode):
            yield group
            group = []
        group.append(run)
    if group:
        yield group


def _broken(run: Run, tasks: Sequence[TaskRecord]) -> list[str]:
    """The nodes of a run whose task failed by itself, or lost its place with its node; all where there is none.

    A task that was ended with its job did not fail.
    """
    ended = {task["node"] for task in tasks if task["exit"] is not None and task["exit"]["code"] in NOT_LOST}
    names = [machine.name for machine in run.machines]
    return [name for name in names if name not in ended] or names


def _places(run: Run) -> str:
    first = run.machines[0].name
    return first if len(run.machines) == 1 else f"{len(run.machines)} nodes from {first} on"
