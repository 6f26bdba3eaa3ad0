"""The simulator on the whole trace of Philly: processor time and memory under FIFO with backfill and under 2D-LAS."""

from __future__ import annotations

from bench.core import plain_loop
from bench.played import alone, played

_MACHINES = "312x8x12"
"""2,496 devices; the trace is of 2,490."""


def measure() -> dict[str, float]:
    """Return the figures of the benchmark `sim-philly`."""
    found: dict[str, float] = {}
    memory = 0.0
    for name, policy in (("fifo", "fifo"), ("2d-las", "las+order")):
        run = alone(played, "philly/philly.csv", _MACHINES, policy)
        found[name] = run.seconds
        memory = max(memory, run.megabytes)
    return {**found, "memory": memory, "loop": plain_loop() * 1000}
