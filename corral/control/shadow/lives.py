"""The two lives that are compared: what was decided, from the journal, and what the candidate decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from math import inf, nextafter

import msgspec

from corral.control.core.configuration import Configured
from corral.control.core.core import Batch, Core
from corral.control.core.driver import Driver, Work
from corral.control.core.inputs import ConfigurationRead, CordonsRead, Input
from corral.control.core.memory_store import MemoryStore
from corral.control.core.world import Job
from corral.control.journal.beginnings import core_of
from corral.control.journal.decisions import digest_of
from corral.control.journal.pace import Grounds
from corral.control.journal.played_work import PlayedJobs
from corral.control.journal.recorded_runs import Outside, Ran
from corral.control.journal.records import (
    Begun,
    DocumentsRead,
    Step,
    configured,
    documents_of,
    folded,
)
from corral.control.journal.retold import Retold
from corral.control.journal.rules import Rules
from corral.control.shadow.foresight import KnownRuns
from corral.control.what_if.adoption import Ending, adopt_tasks
from corral.control.what_if.course import live_record
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId, JobId
from corral.model.runs import TaskRun
from corral.spec.errors import shorten

Told = Callable[[Core, Batch, float], None]
"""Hears of each step after it was made, with its time."""


class InForce:
    """The core that decided, replayed; `core` is it after the last step."""

    def __init__(self, begun: Begun) -> None:
        self._number: int | None = None
        self._begin(begun)

    def begin_again(self, begun: Begun) -> bool:
        """Go on with a core that was built anew; returns whether the journal lacks requests from before that."""
        missing = begun.state.cursor > self.core.intents.cursor
        self._number = None
        self._begin(begun)
        return missing

    def _begin(self, begun: Begun) -> None:
        self.core = core_of(begun)
        self.rules = begun.rules

    def step(self, step: Step) -> Batch:
        """Replay a step; raises InvalidInput where steps are missing, or where it decides otherwise than it did."""
        if self._number is not None and step.number != self._number + 1:
            message = f"The journal has no steps between {self._number} and {step.number}; a part of it is missing."
            raise InvalidInput("steps-missing", message)
        self._number = step.number
        try:
            batch = self.core.step(folded(step.inputs, self.rules), step.at)
        except InvalidInput:
            raise
        except Exception as error:  # the inputs of a broken journal may be anything
            why = shorten(f"{type(error).__name__}: {error}", 300).rstrip(".")
            raise InvalidInput("broken-step", f"Step {step.number} of the journal cannot be replayed: {why}.") from None
        if digest_of(batch) != step.digest:
            message = (
                f"Step {step.number} of the journal is decided otherwise by this version of Corral; begin after it, "
                "or use the version that wrote it."
            )
            raise InvalidInput("step-of-another", message)
        return batch


class CandidateRules:
    """The policy and the documents by which the candidate decides; what is not given is as it is in force."""

    def __init__(self, policy: str = "", documents: Sequence[str] | None = None) -> None:
        """`policy` is `NAME` or `NAME+PART`, `documents` are canonical texts."""
        self._policy = policy
        self._documents = None if documents is None else tuple(documents)

    @property
    def follow_documents(self) -> bool:
        """Whether documents in force that change, change for the candidate too."""
        return self._documents is None

    def configured(self, read: DocumentsRead, rules: Rules) -> Configured:
        """The candidate's configuration, with these documents and rules in force.

        Raises InvalidInput for a policy or documents that the scheduler cannot follow.
        """
        if self._policy:
            rules = msgspec.structs.replace(rules, policy=self._policy, documents=False)
        texts = read.documents if self._documents is None else self._documents
        return configured(DocumentsRead(texts, read.change, read.following), rules)


class Candidate:
    """A fork of the core in force that goes on under other rules, with the same requests and machines."""

    def __init__(self, in_force: InForce, rules: CandidateRules, runs: KnownRuns, now: float, told: Told) -> None:
        """`in_force` is between two steps; `told` hears of the candidate's own."""
        self.core = in_force.core.fork()
        self._rules = rules
        self._runs = runs
        self._told = told
        self._store = MemoryStore(first_intent=self.core.intents.cursor + 1)
        self._driver = Driver(self.core, self._store, self._work, now)
        self._driver.stepped = self._step
        self._retold = Retold(self._driver)
        self._played = PlayedJobs(runs.work, self._driver, runs.expected, runs.recorded_now)
        self._played.learn(runs.read_until)
        jobs = self.core.world.jobs.values()
        self._retold.know(map(live_record, jobs), {job.user: job.groups for job in jobs})
        for job in jobs:
            adopt_tasks(self._driver, job, lambda task, job=job: self._ending(job, task))  # type: ignore[misc]
        now_in_force = documents_of(in_force.core.configured)
        self._driver.at(now, ConfigurationRead(rules.configured(now_in_force, in_force.rules)))
        self._driver.run(now)

    def learn(self) -> None:
        """Have running tasks end as is known now that more of the journal has been read."""
        self._played.learn(self._runs.read_until)
        for attempt, end, code in self._runs.learn(self._driver.runs):
            self._driver.end_at(attempt, max(self._driver.now, end), code)

    @property
    def elastic(self) -> Mapping[Grounds, int]:
        """The elastic jobs so far, by what their speed follows from."""
        return self._played.elastic

    def forget(self, jobs: AbstractSet[JobId]) -> None:
        """Drop jobs that are over under both."""
        self._retold.forget(jobs)
        self._runs.forget(jobs)
        self._played.forget(jobs)

    def run_before(self, at: float) -> None:
        """Go on through all that happens before a time."""
        self._driver.run(nextafter(at, -inf))

    def run(self, at: float) -> None:
        """Go on through all that happens up to a time."""
        self._driver.run(at)

    def take(self, at: float, happening: Outside, rules: Rules) -> None:
        """Have something happen that happened to the core in force under `rules`."""
        if not isinstance(happening, DocumentsRead):
            self._retold.tell(at, happening)
        elif self._rules.follow_documents:
            self._driver.at(at, ConfigurationRead(self._rules.configured(happening, rules)))

    def take_beginning(self, begun: Begun) -> None:
        """Take over what a core in force that was built anew sees of the machines, nodes and documents."""
        for seen in begun.state.machines:
            self._retold.tell(begun.at, seen)
        self._retold.tell(begun.at, CordonsRead(begun.state.cordons))
        if begun.state.configured.change != self.core.configured.now.change:
            self.take(begun.at, begun.state.configured, begun.rules)

    def _step(self, core: Core, inputs: Sequence[Input], now: float) -> Batch:
        self._store.facts.clear()  # told already; a comparison of weeks would keep them all
        self._store.server_events.clear()
        self._store.receipts.clear()  # the core has those that it needs
        batch = core.step(inputs, now)
        self._told(core, batch, now)
        return batch

    def _ending(self, job: Job, task: TaskRun) -> Ending:
        begun, attempt = task.started_at or self._driver.now, job.run.attempt_of(task)
        self._played.begin(job, attempt, begun)
        if self._played.is_elastic(job):
            return Ending(inf)
        ran = self._runs.begin(job, attempt, begun, started=True)
        return Ending(max(self._driver.now, begun + ran.seconds), ran.code)

    def _work(self, job: Job, attempt: AttemptId) -> Work:
        """Answer the driver: a task takes as long to start and to stop as it did, and runs as long.

        That of an elastic job runs until the work of its job is done.
        """
        stop_seconds = self._runs.stop_seconds(job.id)
        elastic = self._played.is_elastic(job)
        if self._driver.runs(attempt):
            self._played.stop(job, attempt)
            if not elastic:
                self._runs.stop(attempt, self._driver.now + stop_seconds)
            return Work(0.0, stop_seconds=stop_seconds)
        if elastic:
            ran = Ran(inf, 0, self._played.start_seconds(job, attempt))
        else:
            ran = self._runs.begin(job, attempt, self._driver.now)
        self._played.begin(job, attempt, self._driver.now + ran.start_seconds)
        return Work(ran.seconds, ran.code, ran.start_seconds, stop_seconds)
