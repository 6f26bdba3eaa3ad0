"""The journal of Philly's busiest week: its size, what it adds to the simulation, and its replay with hashes."""

from __future__ import annotations

import io
import time
from bisect import bisect_left
from pathlib import Path
from typing import Final

from bench.core import plain_loop
from bench.played import KNOBS
from corral import __version__
from corral.control.journal.blocks import BlockWriter
from corral.control.journal.replay import replay
from corral.control.journal.writer import JournalWriter
from corral.sim.comparison import Question
from corral.sim.tables import traces_folder
from corral.sim.trace import Trace, TraceJob

_ROOT: Final = Path(__file__).resolve().parents[1]
_MACHINES: Final = "312x8x12"
_WEEK: Final = 7 * 86_400.0


def measure() -> dict[str, float]:
    """Processor seconds of the replay and of both simulations, bytes an event, and the fixed loop in milliseconds."""
    question = Question(traces_folder(_ROOT) / "philly/philly.csv", _MACHINES, "fair", KNOBS, skip_broken=True)
    trace = Trace(_busiest_week(question.read().jobs))
    begun = time.process_time()
    question.simulation(trace).run()
    plain = time.process_time() - begun
    file = io.BytesIO()
    blocks = BlockWriter(file)
    simulation = question.simulation(trace, JournalWriter(blocks, question.named_rules, __version__, unexplained=True))
    begun = time.process_time()
    simulation.run()
    blocks.close()
    journaled = time.process_time() - begun
    begun = time.process_time()
    found = replay(file)
    seconds = time.process_time() - begun
    if found.difference is not None or found.problem:
        raise RuntimeError(f"The replay differs: {found.difference or found.problem}.")
    return {
        "replay": seconds,
        "bytes": len(file.getvalue()) / found.events,
        "plain": plain,
        "journaled": journaled,
        "jobs": float(len(trace.jobs)),
        "events": float(found.events),
        "loop": plain_loop() * 1000,
    }


def _busiest_week(jobs: tuple[TraceJob, ...]) -> tuple[TraceJob, ...]:
    """The jobs of the seven days with the most submissions, the first at 0."""
    times = [job.submitted for job in jobs]
    ends = [bisect_left(times, at + _WEEK) for at in times]
    first = max(range(len(times)), key=lambda at: ends[at] - at)
    return tuple(job._replace(submitted=job.submitted - times[first]) for job in jobs[first : ends[first]])
