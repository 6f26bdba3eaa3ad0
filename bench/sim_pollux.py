"""Workload 6 of Pollux on 16 nodes of 4 devices, every job elastic and sized by its goodput: processor time."""

from __future__ import annotations

from bench.core import plain_loop
from bench.played import DATA, Played, alone, timed
from corral.sim.honest.pieces import Piece
from corral.sim.honest.pollux_rows import POLICY, simulation


def measure() -> dict[str, float]:
    """Return the figures of the benchmark `sim-pollux`."""
    run = alone(play)
    return {"run": run.seconds, "events": run.events, "loop": plain_loop() * 1000}


def play() -> Played:
    """Play the workload to its end."""
    return timed(simulation(Piece("D", "goodput", POLICY, ("6",)), DATA).run)
