"""The simulator's time a job among 10,000, 40,000 and 80,000 jobs on the same machines, which they use to 80 %.

Jobs come at random, mostly of one device, and are longer than they wait; the longer trace is only longer.
"""

from __future__ import annotations

import random
from typing import Final

from bench.core import plain_loop
from bench.played import KNOBS, Played, alone, timed
from corral.scheduler import find_policy
from corral.sim.machines import plain_site
from corral.sim.simulation import Simulation
from corral.sim.trace import TraceJob

_MACHINES: Final = "32x8"
_DEVICES: Final = (1, 1, 1, 1, 2, 2, 4, 8)
_MEAN_SECONDS: Final = 7200.0
_LOAD: Final = 0.8
_USERS: Final = 20


def measure() -> dict[str, float]:
    """Return the figures of the benchmark `sim-growth`."""
    each = {count: (run := alone(play, count)).seconds / run.jobs * 1000 for count in (10_000, 40_000, 80_000)}
    return {
        "40,000": each[40_000] / each[10_000],
        "80,000": each[80_000] / each[10_000],
        "job": each[10_000],
        "loop": plain_loop() * 1000,
    }


def play(count: int) -> Played:
    """Play so many jobs under FIFO with backfill."""
    site = plain_site(_MACHINES)
    assert site is not None
    mean = sum(_DEVICES) / len(_DEVICES)
    gap = mean * _MEAN_SECONDS / (_LOAD * site.devices)
    draw, at = random.Random(1), 0.0
    jobs: list[TraceJob] = []
    for number in range(count):
        seconds = 60.0 + draw.expovariate(1 / (_MEAN_SECONDS - 60.0))
        jobs.append(TraceJob(f"job-{number}", at, seconds, draw.choice(_DEVICES), f"user{number % _USERS}"))
        at += draw.expovariate(1 / gap)
    return timed(Simulation(jobs, site, find_policy("fifo"), KNOBS).run)
