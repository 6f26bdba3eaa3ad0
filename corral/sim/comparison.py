"""Play one trace under several policies, in processes beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from corral.kernel.errors import InvalidInput, NotFound
from corral.scheduler import Policy, find_policy, find_preempt
from corral.sim.machines import Site, read_site
from corral.sim.results import Result
from corral.sim.simulation import Knobs, Simulation
from corral.sim.trace import MOST_JOBS, Trace, read_trace
from corral.sim.trace_readers import find_reader, format_of

_MOST_BYTES: Final = 1 << 30


@dataclass(frozen=True)
class Question:
    """What a simulation is asked: everything that its result depends on."""

    trace: Path
    machines: str
    """`NODESxDEVICES`, or the path of a file of documents."""
    policy: str
    """`NAME`, or `NAME+order`: with preemption by the policy's order."""
    knobs: Knobs
    format: str = ""
    """The trace's format; "" finds it by its columns."""
    skip_broken: bool = False
    most: int = MOST_JOBS
    review_seconds: float = 60.0
    """How often a plan is made without an event, where the policy's answer may change with time."""

    def read(self) -> Trace:
        """Read the trace; raises InvalidInput or NotFound."""
        if not self.trace.is_file():
            raise NotFound("no-trace", f"{self.trace} is not there.")
        if self.trace.stat().st_size > _MOST_BYTES:
            raise InvalidInput("trace-too-large", f"{self.trace} is larger than {_MOST_BYTES >> 20} MiB.")
        with self.trace.open(encoding="utf-8", errors="replace", newline="") as file:
            name = self.format or format_of(file.readline(4096))
            if name is None:
                raise InvalidInput("unknown-trace-format", f"The columns of {self.trace} fit no format; name one.")
            file.seek(0)
            return read_trace(find_reader(name), file, skip_broken=self.skip_broken, most=self.most)

    def site(self) -> Site:
        """Read the machines; raises InvalidInput, or SpecError with every problem."""
        file = Path(self.machines)
        if file.suffix in (".yaml", ".yml", ".json"):
            if not file.is_file():
                raise NotFound("no-cluster-file", f"{file} is not there.")
            return read_site(file.read_text(), file.name)
        return read_site(self.machines, self.machines)

    def rules(self, site: Site) -> Policy:
        """Return the policy; raises InvalidInput if there is none of the name."""
        name, _, preempt = self.policy.partition("+")
        policy = find_policy(name) if name else site.policy(find_policy())
        policy = replace(policy, name=self.policy or policy.name, review_seconds=self.review_seconds)
        return replace(policy, preempt=find_preempt(preempt), preemption=True) if preempt else policy

    def simulation(self) -> Simulation:
        """Return the simulation, ready to be played."""
        site = self.site()
        return Simulation(self.read().jobs, site, self.rules(site), self.knobs)


def answer(question: Question) -> Result:
    """Play a simulation to its end."""
    return question.simulation().run()


def answers(questions: Sequence[Question], processes: int) -> Iterator[tuple[Question, Result]]:
    """Yield each result as soon as it is there; the processes end with the iteration."""
    pool = ProcessPoolExecutor(max(1, processes), mp_context=get_context("spawn"))
    try:
        asked = {pool.submit(answer, question): question for question in questions}
        for done in as_completed(asked):
            yield asked[done], done.result()
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
