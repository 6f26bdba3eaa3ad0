"""All metrics of a control, made anew at most so often that they take a small part of its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final

from corral.control.loop import Control
from corral.control.metrics.state_gauges import state_gauges
from corral.model.metrics.samples import Samples
from corral.service.metrics.process import ProcessFigures

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

    def samples(self) -> Samples:
        """Its metrics now; the gauges may be some seconds old where they are expensive."""
        if time.monotonic() >= self._until:
            begun = time.thread_time()
            control = self._control
            self._gauges = state_gauges(
                control.world, control.machines, control.engine_set.away, control.epoch, control.clock.now()
            )
            self._until = time.monotonic() + _KEPT_FOR * (time.thread_time() - begun)
        found = self._control.counts.samples() + self._gauges + self._process.samples()
        return sum((source() for source in self.sources), found)


def measure_here(
    control: Control,
    metrics: ControlMetrics,
    engines: Sequence[str],
    seconds: float,
    parts: str,
    labels: tuple[Path | None, Path | None] = (None, None),
) -> list[Coroutine[Any, Any, None]]:
    """Return what measures this machine every `seconds` (0: not), and have `metrics` tell it.

    `engines` are those whose tasks run on this machine; `labels` are the folders of jobs of DCGM's and AMD's exporters.
    Raises InvalidInput for an unknown part of `parts`.
    """
    if not engines or not seconds:
        return []
    from corral.control.metrics.node_collection import NodeCollection  # other engines' servers do without its modules

    collection = NodeCollection(control, engines[0], seconds, parts, labels=labels)
    metrics.sources.append(collection.samples)
    return [collection.run()]
