"""Play published traces under Corral's own rules, each in a process of its own: processor time and memory.

The traces come from CORRAL_DATA, else from `shared/data` beside the checkout.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple, ParamSpec, TypeVar

from corral.sim.comparison import Question
from corral.sim.progress import Costs
from corral.sim.results import Result
from corral.sim.simulation import Knobs
from corral.sim.tables import traces_folder

DATA: Final = traces_folder(Path(__file__).resolve().parents[1])
KNOBS: Final = Knobs(Costs(scatter=0.0))
_REVIEW: Final = 36_000.0

Answer = TypeVar("Answer")
P = ParamSpec("P")


class Played(NamedTuple):
    """What a simulation took."""

    jobs: int
    events: int
    """Arrivals, starts, ends and interruptions."""
    seconds: float
    """Of processor time, without the reading of the trace."""
    digest: str
    megabytes: float
    """The most memory that the process had."""


def played(trace: str, machines: str, policy: str, most: int = 1_000_000) -> Played:
    """Play the first `most` jobs of a trace to their ends."""
    question = Question(DATA / trace, machines, policy, KNOBS, skip_broken=True, most=most, review_seconds=_REVIEW)
    simulation = question.simulation(question.read())
    return timed(simulation.run)


def timed(run: Callable[[], Result]) -> Played:
    """Run a simulation and return what it took."""
    begun = time.process_time()
    result = run()
    seconds = time.process_time() - begun
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Played(result.submitted, _events(result), seconds, result.digest, most)


def alone(run: Callable[P, Answer], *arguments: P.args, **named: P.kwargs) -> Answer:
    """Call a function in a new process, so that its memory is its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(run, *arguments, **named).result()


def _events(result: Result) -> int:
    return 2 * result.submitted + len(result.held) + sum(job.interruptions for job in result.jobs)
