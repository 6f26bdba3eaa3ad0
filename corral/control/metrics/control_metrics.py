"""All metrics of a control, made anew at most so often that they take a small part of its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from corral.control.loop import Control
from corral.control.metrics.state_gauges import state_gauges
from corral.engines.base import RunsAgents, TaskFolders
from corral.model.metrics.samples import Samples, Value
from corral.service.metrics.process import ProcessFigures

if TYPE_CHECKING:
    from corral.control.health.keeper import HealthKeeper
    from corral.control.metrics.agent_collection import AgentCollection
    from corral.devices.figures.exporter_page import ExporterUrl

_KEPT_FOR: Final = 50.0
"""Multiple of the gauges' cost in thread time for which they are used again."""


class ControlMetrics:
    """Tells the metrics of a control."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._gauges = Samples()
        self._until = 0.0
        self._process = ProcessFigures("control")
        self.sources: list[Callable[[], Samples]] = []
        """What else is told, such as what this machine's collector measured last."""

        self.exporters: Sequence[ExporterUrl] = ()
        """Exporters of this machine that are read."""
        self.take_scalars: Callable[[Iterable[tuple[float, Value]]], None] | None = None
        """Takes values of jobs' own curves with their times; None where no series are kept."""
        self.scalars_for_rules: Callable[[Iterable[tuple[float, Value]]], None] | None = None
        """Takes the same for alert rules; None where no rule reads them."""
        self.agents: AgentCollection | None = None
        """What the agents of other machines tell; None if none are asked. `/metrics` has nothing of it: a Prometheus
        reads the agents itself."""

    def told_scalars(self, scalars: Iterable[tuple[float, Value]]) -> None:
        """Give values of jobs' own curves to all who take them; it is called in a thread."""
        values = list(scalars)
        for take in (self.take_scalars, self.scalars_for_rules):
            if take is not None:
                take(values)

    def of_machines(self, rounds: float) -> Mapping[str, Samples]:
        """By node, what its agent told within this many rounds."""
        return {} if self.agents is None else self.agents.machines(rounds)

    def measured(self) -> Iterator[Value]:
        """What was measured last, here and by the agents of other machines."""
        for source in self.sources:
            yield from source().values
        for each in () if self.agents is None else self.agents.machines().values():
            yield from each.values

    def everywhere(self) -> Samples:
        """Its metrics now, with what the agents of other machines told last; series of machines may be there twice."""
        others = () if self.agents is None else self.agents.machines().values()
        values = chain.from_iterable(each.values for each in others)
        return self.samples() + Samples(tuple(values))

    def samples(self) -> Samples:
        """Its metrics now; the gauges may be some seconds old where they are expensive."""
        if time.monotonic() >= self._until:
            begun = time.thread_time()
            control = self._control
            self._gauges = state_gauges(
                control.world, control.machines, control.engine_set.away, control.epoch, control.clock.now(),
                control.engine_set.certificate_ends(),
            )  # fmt: skip
            self._until = time.monotonic() + _KEPT_FOR * (time.thread_time() - begun)
        found = self._control.counts.samples() + self._gauges + self._process.samples()
        return sum((source() for source in self.sources), found)


class MeasureSettings(NamedTuple):
    """The settings of what is measured, under the names that the server's settings have."""

    metrics_seconds: float
    metrics_parts: str
    metrics_dcgm_folder: Path | None
    metrics_amd_folder: Path | None
    agents: str
    agents_token_file: Path | None
    metrics_dcgm_exporter: str = ""
    metrics_amd_exporter: str = ""
    metrics_node_exporter: str = ""

    @classmethod
    def of(cls, settings: object) -> MeasureSettings:
        """Those among the server's settings."""
        return cls(*(getattr(settings, name) for name in cls._fields))


def measure(
    control: Control,
    metrics: ControlMetrics,
    here: Sequence[str],
    settings: MeasureSettings,
    health: HealthKeeper | None = None,
) -> list[Coroutine[Any, Any, None]]:
    """Return what measures this machine and asks the agents of others, and have `metrics` and `health` know it.

    `here` are the engines whose tasks run on this machine. Raises InvalidInput for settings that cannot be read.
    """
    loops = measure_here(control, metrics, here, settings, health)
    engines = control.engines.values()
    if settings.agents or any(isinstance(each, RunsAgents) and each.node_agents.wanted for each in engines):
        from corral.control.metrics.agent_collection import AgentCollection

        agents = AgentCollection(control, settings.agents, settings.agents_token_file, here=here)
        metrics.agents = agents
        metrics.sources.append(agents.counts)
        if health is not None:
            health.figures.append(agents.figures)
        loops.append(agents.run(control.ready))
    return loops


def measure_here(
    control: Control,
    metrics: ControlMetrics,
    engines: Sequence[str],
    settings: MeasureSettings,
    health: HealthKeeper | None = None,
) -> list[Coroutine[Any, Any, None]]:
    """Return what measures this machine (nothing with 0 `metrics_seconds`), and have `metrics` and `health` know it.

    `engines` are those whose tasks run on this machine. Raises InvalidInput for an unknown part.
    """
    if not engines or not settings.metrics_seconds:
        return []
    from corral.control.metrics.node_collection import (
        Exporters,
        NodeCollection,
    )  # other engines' servers do without its modules

    folders = settings.metrics_dcgm_folder, settings.metrics_amd_folder
    collection = NodeCollection(
        control, engines[0], settings.metrics_seconds, settings.metrics_parts, labels=folders,
        exporters=Exporters(
            settings.metrics_dcgm_exporter, settings.metrics_amd_exporter, settings.metrics_node_exporter
        ),
    )  # fmt: skip
    metrics.sources.append(collection.samples)
    if health is not None:
        health.figures.append(collection.figures)
    metrics.exporters = collection.exporters
    return [collection.run(), *_follow_event_files(control, metrics, engines)]


def _follow_event_files(
    control: Control, metrics: ControlMetrics, engines: Sequence[str]
) -> list[Coroutine[Any, Any, None]]:
    """Return what makes series of the event files of tasks here; nothing where no series are kept."""
    if metrics.take_scalars is None:
        return []
    from corral.control.metrics.event_files import EventFiles  # as above

    found = [control.engines[name] for name in engines if name in control.engines]
    folders = [each.folders for each in found if isinstance(each, TaskFolders)]
    return [EventFiles(each, metrics.told_scalars, control.clock.now).run() for each in folders]
