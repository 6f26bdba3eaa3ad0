"""5,300 of Gavel's continuous arrivals on 36 devices of each of three models under max-min: processor time.

The arrivals are those of seed 0 at 4.0 jobs an hour, as many as the anchor's simulator plays; each device is a node.
"""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path
from typing import Final

from bench.core import plain_loop
from bench.played import DATA, Played, alone, timed
from corral.sim.comparison import Question
from corral.sim.honest.settings import COSTS, REVIEW_SECONDS
from corral.sim.simulation import Knobs

_MACHINES: Final = "36x1:v100,36x1:p100,36x1:k80"
_JOBS: Final = 5300
_TRACE: Final = "gavel/published_continuous_seed0_rate4.0.csv.gz"
_SPEEDS: Final = "gavel/simulation_throughputs.json"


def measure() -> dict[str, float]:
    """Return the figures of the benchmark `sim-gavel`."""
    run = alone(play)
    return {"run": run.seconds, "events": run.events, "loop": plain_loop() * 1000}


def play(jobs: int = _JOBS) -> Played:
    """Play the first jobs of the trace to their ends; jobs say their speed on each model."""
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as folder:
        trace = Path(folder) / "arrivals.csv"
        trace.write_bytes(gzip.decompress((DATA / _TRACE).read_bytes()))
        question = Question(
            trace,
            _MACHINES,
            "gavel",
            Knobs(COSTS),
            profiles=DATA / _SPEEDS,
            most=jobs,
            review_seconds=REVIEW_SECONDS,
        )
        simulation = question.simulation(question.read())
    return timed(simulation.run)
