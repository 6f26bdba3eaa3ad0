"""Play the trace of a policy test under each set of documents, and check the assertions on what came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from corral.kernel.errors import InvalidInput
from corral.sim.comparison import Question
from corral.sim.policy_test.documents import DocumentFiles
from corral.sim.policy_test.measurement import Figures, Measurement
from corral.sim.simulation import Life, Simulation
from corral.sim.trace import Trace
from corral.sim.workers import answered
from corral.spec.assertions.evaluation import Outcome, check_known, evaluate
from corral.spec.assertions.parser import AssertionProblem
from corral.spec.assertions.syntax import Assertion

MOST_ASSERTIONS: Final = 200
"""The most assertions of one test."""


@dataclass(frozen=True)
class Side:
    """A trace and the documents under which it is played."""

    question: Question
    """Its machines may be "": those of the documents' own Cluster document. Its policy is theirs."""
    documents: DocumentFiles

    def simulation(self, trace: Trace) -> Simulation:
        """Return the simulation, ready to be played.

        Raises as `DocumentFiles.site` does, and InvalidInput for a trace that does not fit the documents.
        """
        site = self.documents.site(self.question.machines)
        try:
            return Simulation(trace.jobs, site, self.question.rules(site), self.question.knobs)
        except InvalidInput as error:
            raise InvalidInput(error.code, f"{self.documents.name}: {error.message}") from None


class Played(NamedTuple):
    """A side that was played."""

    name: str
    policy: str
    devices: int
    lives: list[Life]


class QueueRow(NamedTuple):
    """One queue of the report; "" is all of them."""

    name: str
    after: Figures
    before: Figures | None


@dataclass(frozen=True)
class Report:
    """What a policy test found."""

    trace: str
    documents: str
    base: str
    """"": there is none."""
    outcomes: Sequence[Outcome]
    queues: Sequence[QueueRow]
    """All queues together first."""
    notes: Sequence[str]

    @property
    def held(self) -> bool:
        """Whether all assertions hold."""
        return all(outcome.held for outcome in self.outcomes)

    @property
    def headline(self) -> str:
        """Whether the assertions hold, as a sentence."""
        failed = sum(not outcome.held for outcome in self.outcomes)
        count = len(self.outcomes)
        if count == 1:
            return "The assertion does not hold." if failed else "The assertion holds."
        if not failed:
            return f"All {count} assertions hold."
        verb = "does" if failed == 1 else "do"
        return f"{failed} of {count} assertions {verb} not hold."


def play(side: Side) -> Played:
    """Play a trace under documents to its end."""
    return _run(side, side.simulation(side.question.read()))


def play_all(sides: Sequence[Side], simulations: Sequence[Simulation], processes: int) -> list[Played]:
    """Play each side, in processes beside each other if there may be several, else its simulation."""
    if processes > 1 and len(sides) > 1:
        found = dict(answered(play, sides, processes))
        return [found[side] for side in sides]
    return [_run(side, simulation) for side, simulation in zip(sides, simulations, strict=True)]


def _run(side: Side, simulation: Simulation) -> Played:
    simulation.run()
    return Played(side.documents.name, simulation.policy.name, simulation.site.devices, simulation.lives())


def check_assertions(
    assertions: Sequence[Assertion], trace: Trace, queues: Sequence[str], *, has_base: bool
) -> None:  # fmt: skip
    """Refuse assertions about queues, users and jobs that there are not, before anything is played.

    Raises AssertionProblem.
    """
    jobs = Measurement([Life(job, None, None, 0.0, 0, 0.0) for job in trace.jobs], 1)
    for assertion in assertions:
        check_known(assertion, queues={*queues, *jobs.queues}, users=jobs.users, where="the trace")
        for metric in assertion.metrics:
            if not jobs.count(metric):
                column = metric.column_of("metric")
                raise AssertionProblem(assertion.text, column, f"no job of the trace is one of {metric}")
        if assertion.needs_base and not has_base:
            column = assertion.text.find("base") + 1
            raise AssertionProblem(assertion.text, column, "there is no base to compare with; give --base")


def report_of(trace: str, assertions: Sequence[Assertion], played: Sequence[Played]) -> Report:
    """Return the report of the documents, and of the base if it was played too."""
    sides = [Measurement(each.lives, each.devices) for each in played]
    after, before = sides[0], sides[1] if len(sides) > 1 else None
    outcomes = [evaluate(each, after.measure, None if before is None else before.measure) for each in assertions]
    rows = [
        QueueRow(name, after.figures(name), None if before is None else before.figures(name))
        for name in ("", *after.queues)
    ]
    notes = [
        f"{each.never_ended} of {len(one.lives)} jobs never end under {one.name}; a job that never starts waits for ever."
        for each, one in zip(sides, played, strict=True)
        if each.never_ended
    ]
    if before is not None and played[0].devices != played[1].devices:
        notes.append(f"{played[0].name} has {played[0].devices} devices, {played[1].name} {played[1].devices}.")
    return Report(trace, played[0].name, played[1].name if before is not None else "", outcomes, rows, notes)
