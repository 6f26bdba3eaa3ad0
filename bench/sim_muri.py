"""The simulator on Muri's traces 1 and 3, in processor time: events a second under SRTF and 2D-LAS.

Both orders preempt, as in their papers. An event is an arrival, a start, an end or an interruption.
"""

from __future__ import annotations

from bench.core import plain_loop
from bench.played import played


def measure() -> dict[str, float]:
    """Return the figures of the benchmark `sim-muri`."""
    found: dict[str, float] = {}
    for name, policy in (("srtf", "srtf+order"), ("2d-las", "las+order")):
        runs = [played(f"muri/{trace}.csv", "8x8", policy) for trace in ("trace1", "trace3")]
        found[name] = sum(run.events for run in runs) / sum(run.seconds for run in runs)
    return {**found, "loop": plain_loop() * 1000}
