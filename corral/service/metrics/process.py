"""What this process uses, as metrics."""

from __future__ import annotations

import os
from pathlib import Path

from corral.model.metrics.families import Metric
from corral.model.metrics.samples import Samples, Value


def process_samples(name: str) -> Samples:
    """Processor time and memory of this process, under a name; memory is missing where there is no /proc."""
    times = os.times()
    seconds = times.user + times.system + times.children_user + times.children_system
    values = [Value(Metric.PROCESS_CPU, (name,), seconds)]
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return Samples(tuple(values))
    return Samples((*values, Value(Metric.PROCESS_MEMORY, (name,), pages * os.sysconf("SC_PAGE_SIZE"))))
