"""Measure the machine that control runs on, with the names of its jobs: the node's agent of the local engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from corral.control.loop import Control
from corral.control.metrics.names_of_tasks import task_names
from corral.devices.figures.exporter_page import (
    AMD_EXPORTER,
    DCGM_EXPORTER,
    NODE_EXPORTER,
    ExporterUrl,
    exporter_url,
)
from corral.devices.figures.reader import reader_finder
from corral.kernel.ids import AttemptId, TaskKey, parse_attempt_id
from corral.model.metrics.device_families import DEVICE_FAMILIES
from corral.model.metrics.samples import Samples
from corral.monitor.agent.collector import Collector
from corral.monitor.agent.job_labels import LabelFolders
from corral.monitor.agent.node_exporter import machine_source
from corral.monitor.agent.rounds import Rounds, parts_of
from corral.monitor.agent.task_names import TaskNames
from corral.monitor.health.figure_signs import Figures


class Exporters(NamedTuple):
    """The addresses of the exporters that tell of this machine already; "" is none."""

    dcgm: str = ""
    amd: str = ""
    node: str = ""

    def urls(self) -> tuple[ExporterUrl, ...]:
        """Where they are asked. Raises InvalidInput for an address that is none."""
        said = ((self.dcgm, DCGM_EXPORTER), (self.amd, AMD_EXPORTER), (self.node, NODE_EXPORTER))
        return tuple(exporter_url(text, exporter) for text, exporter in said if text)


NO_EXPORTERS: Final = Exporters()
_OF_DEVICES: Final = frozenset(each.name for each in DEVICE_FAMILIES)
_MOST_NODES: Final = 256
"""Nodes of this machine that are looked at."""


class NodeCollection:
    """The rounds of a collector whose tasks are those of this control on its own machine."""

    def __init__(
        self,
        control: Control,
        engine: str,
        seconds: float,
        parts: str,
        collector: Collector | None = None,
        *,
        labels: tuple[Path | None, Path | None] = (None, None),
        exporters: Exporters = NO_EXPORTERS,
    ) -> None:
        """`engine` is the one whose tasks run here; `parts` are separated by commas.

        `labels` are the folders in which vendors' exporters look for jobs, DCGM's and AMD's.

        Raises InvalidInput for an unknown part, and an address that is none.
        """
        self._control, self._engine = control, engine
        self.exporters = exporters.urls()
        """The exporters that are read."""
        if collector is None:
            collector = Collector(
                parts=parts_of(parts),
                find=reader_finder(exporters.dcgm, exporters.amd),
                machine=machine_source(exporters.node),
                labels=LabelFolders(*labels),
                has_tasks=lambda: bool(control.world.jobs),
            )
        self._rounds = Rounds(collector, self.name_task, seconds)

    async def run(self) -> None:
        """Collect until cancelled. No failure ends it."""
        await self._rounds.run()

    async def collect(self) -> None:
        """Collect once."""
        await self._rounds.collect()

    def samples(self) -> Samples:
        """What was measured last; nothing once it is too old."""
        return self._rounds.samples()

    def figures(self) -> Mapping[str, Figures]:
        """What signs of trouble are looked for in, by node of this machine; nothing once it is too old.

        Where a document makes several nodes of the machine, each has its links and disks, and none the devices, whose
        numbers are the machine's.
        """
        samples, inventory = self.samples(), self._control.machines.inventory(self._engine)
        if inventory is None or not samples.values:
            return {}
        if len(inventory.nodes) > 1:
            samples = Samples(tuple(each for each in samples.values if each.family not in _OF_DEVICES))
        return {node.name: Figures(samples, None) for node in inventory.nodes[:_MOST_NODES]}

    def name_task(self, attempt: AttemptId, pid: int) -> TaskNames | None:
        """Return the names of a task of this control; None for another one's, and one that is no longer known.

        It is called in a thread: it only looks into dictionaries, whose values never change.
        """
        key = parse_attempt_id(attempt)
        job = self._control.world.jobs.get(key.job)
        task = None if job is None else job.tasks.get(TaskKey(key.role, key.index))
        if job is None or task is None or task.placement is None:
            return None
        if (job.run.attempt, task.attempt) != (key.job_attempt, key.task_attempt):
            return None
        if task.placement.node.partition("/")[0] != self._engine:
            return None
        return task_names(self._control, job, TaskKey(key.role, key.index), task)
