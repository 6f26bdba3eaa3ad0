"""The simulator on published traces, in processor time: events a second of Muri's traces, and Philly's jobs.

An event is an arrival, a start, an end or an interruption. The traces come from CORRAL_DATA, else from `shared/data`
beside the checkout.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from corral.sim.comparison import Question
from corral.sim.progress import Costs
from corral.sim.results import Result
from corral.sim.simulation import Knobs
from corral.sim.tables import traces_folder

_ROOT: Final = Path(__file__).resolve().parents[1]
_KNOBS: Final = Knobs(Costs(scatter=0.0))
_PHILLY_JOBS: Final = 10_000
_REVIEW: Final = 36_000.0


def measure() -> dict[str, float]:
    """Return the figures of the benchmark `sim-traces`."""
    found: dict[str, float] = {}
    for policy in ("srtf+order", "las+order"):
        events = seconds = 0.0
        for trace in ("trace1", "trace3"):
            result, took = played(f"muri/{trace}.csv", "8x8", policy)
            events, seconds = events + _events(result), seconds + took
        found[f"muri {policy}"] = events / seconds
    for policy in ("fifo", "fair"):
        _, took = played("philly/philly.csv", "312x8x12", policy, _PHILLY_JOBS)
        found[f"philly {policy}"] = took / _PHILLY_JOBS * 1000
    return found


def played(trace: str, machines: str, policy: str, most: int = 1_000_000) -> tuple[Result, float]:
    """Play a trace to its end; return the result with the processor seconds, without the reading of the file."""
    question = Question(
        traces_folder(_ROOT) / trace, machines, policy, _KNOBS, skip_broken=True, most=most, review_seconds=_REVIEW
    )
    simulation = question.simulation(question.read())
    begun = time.process_time()
    result = simulation.run()
    return result, time.process_time() - begun


def _events(result: Result) -> int:
    return 2 * result.submitted + len(result.held) + sum(job.interruptions for job in result.jobs)
