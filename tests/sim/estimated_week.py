"""A week of Philly lived with estimates: each half hour the jobs that wait newly are told when they start."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from corral.control.core.configuration import Configured, planner_settings
from corral.control.core.core import Core
from corral.control.core.driver import Driver, Work
from corral.control.core.inputs import Recovered
from corral.control.core.machines import Machines, MachinesSeen
from corral.control.core.memory_store import MemoryStore
from corral.control.core.world import Job
from corral.control.estimates.given import given_in
from corral.control.what_if.changes import Changes
from corral.control.what_if.course import play
from corral.kernel.ids import AttemptId, JobId, job_id
from corral.kernel.quantile import quantile
from corral.launcher import LaunchPolicy
from corral.model.configuration import configuration_of
from corral.model.estimate_correction import FEWEST, Correction, correction
from corral.model.estimates import GivenEstimate, LivedEstimate
from corral.model.phases import Phase, phase
from corral.model.what_if import Courses, PastRun, WaitingJob
from corral.scheduler import find_policy
from corral.sim.job_documents import new_job
from corral.sim.machines import plain_site
from corral.sim.trace import TraceJob
from corral.spec.configuration_file import load_document

DAY: Final = 86_400.0
WEEK: Final = 7 * DAY
HISTORY: Final = 28 * DAY
"""How far back the ended jobs go that are known at the beginning, and how many of them count."""
PAST_RUNS: Final = 5_000
EVERY: Final = 1_800.0
"""Seconds between two forecasts, of which each is made only when a job waits that was told nothing."""
COURSES: Final = 3
HORIZON: Final = 12 * 3600.0
DEVICES: Final = 8
"""Of each node."""


@dataclass
class Lived:
    """What a week gave."""

    estimates: list[LivedEstimate] = field(default_factory=list)
    compared: list[tuple[str, float, bool]] = field(default_factory=list)
    """By job, P90 - P10 of the past waits of its queue when it was estimated (of all queues, where it had few), and whether
    they are of its queue."""
    forecasts: int = 0


class Week:
    """The jobs of some virtual clusters in one week, each with a queue that deserves its part of the machines."""

    def __init__(self, trace: Path, begin: datetime, clusters: tuple[str, ...], nodes: int) -> None:
        self.begin = begin.replace(tzinfo=UTC).timestamp()
        jobs, self._past = self._read(trace, clusters, nodes * DEVICES)
        load = {name: sum(each.seconds * each.devices for each in jobs if each.queue == name) for name in clusters}
        parts = {name: int(nodes * DEVICES * part / sum(load.values())) for name, part in load.items()}
        documents = [
            document
            for name, part in parts.items()
            for document in load_document({"kind": "Queue", "name": name, "deserved": {"devices": part}})
        ]
        site, configuration, policy = plain_site(f"{nodes}x{DEVICES}"), configuration_of(documents, 1), find_policy()
        assert site is not None
        configured = Configured(policy, configuration, planner_settings(policy, configuration))
        recovered = Recovered(configured, machines=(MachinesSeen(site.inventory),))
        core = Core(recovered, LaunchPolicy(), Machines(), self.begin).fork(unexplained=True)
        self._jobs: dict[JobId, TraceJob] = {}
        self._ends: dict[JobId, tuple[int, float]] = {}
        self._started: dict[str, float] = {}
        self._driver = Driver(core, MemoryStore(), self._work, self.begin)
        for number, job in enumerate(jobs, 1):
            identity = job_id(int(job.submitted * 1000), number)
            self._jobs[identity] = job
            self._driver.at(job.submitted, new_job(job, identity, job.submitted, DEVICES, 0))

    def _read(self, trace: Path, clusters: tuple[str, ...], devices: int) -> tuple[list[TraceJob], list[PastRun]]:
        """The jobs of the week, and the runs that had ended before it."""
        jobs, past = [], []
        with trace.open() as lines:
            for row in csv.DictReader(lines):
                at = datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC).timestamp()
                cluster, seconds, count = row["cluster"], float(row["duration"]), int(row["num_gpus"])
                if cluster not in clusters or count > devices:
                    continue
                if self.begin <= at < self.begin + WEEK:
                    jobs.append(TraceJob("job", at, seconds, count, cluster, cluster))
                elif self.begin - HISTORY <= at and at + seconds < self.begin:
                    past.append((at + seconds, PastRun(cluster, "job", cluster, float(count), seconds)))
        return sorted(jobs, key=lambda job: job.submitted), [run for _, run in sorted(past, key=lambda each: each[0])]

    def live(self) -> Lived:
        """Play the week with estimates, then on until all have started."""
        found, told = Lived(), dict[str, GivenEstimate]()
        waits: dict[str, list[float]] = defaultdict(list)
        for number in range(1, int(WEEK / EVERY) + 1):
            self._until(self.begin + number * EVERY)
            ended = [self._lived(each) for each in told.values() if each.job in self._started]
            waits.clear()
            for each in ended:
                waits[each.given.queue].append(each.waited(0.0) or 0.0)
            waiting = [job for job in self._driver.core.world.jobs.values() if phase(job.run) is Phase.WAITING]
            new = [job for job in waiting if job.id not in told and job.id not in self._started]
            if new:
                found.forecasts += 1
                ended.sort(key=lambda each: each.started or 0.0)
                outcomes = [outcome for each in ended if (outcome := each.outcome()) is not None]
                for given in self._estimates(new, correction(outcomes)):
                    told[given.job] = given
                    of_queue, of_all = waits[given.queue], [wait for of_one in waits.values() for wait in of_one]
                    past = of_queue if len(of_queue) >= FEWEST else of_all
                    if len(past) >= FEWEST:
                        found.compared.append((given.job, _spread(past), past is of_queue))
        self._until(self.begin + 4 * WEEK)
        found.estimates = [self._lived(each) for each in told.values()]
        return found

    def _estimates(self, jobs: list[Job], by: Correction) -> list[GivenEstimate]:
        now, core = self._driver.now, self._driver.core
        past = self._past[-PAST_RUNS:]
        courses = tuple(play(core, Changes(), past, now=now, horizon=HORIZON, seed=seed) for seed in range(COURSES))
        named = tuple(WaitingJob(job.id, job.name, job.user, job.terms.queue, 0.0, 0.0) for job in jobs)
        return list(given_in(Courses(now, 0, named, courses, (), correction=by), HORIZON))

    def _lived(self, given: GivenEstimate) -> LivedEstimate:
        return LivedEstimate(given, self._started.get(given.job))

    def _until(self, at: float) -> None:
        self._driver.run(at)
        facts = self._driver.store.facts
        for each in facts:
            if each.fact.kind == "job.started":
                self._started.setdefault(each.job, each.at)
            elif each.fact.kind == "job.completed":
                job = self._jobs[each.job]
                self._past.append(PastRun(job.user, job.name, job.queue, float(job.devices), job.seconds))
        facts.clear()

    def _work(self, job: Job, attempt: AttemptId) -> Work:
        now = self._driver.now
        if self._driver.runs(attempt):
            return Work(0.0)
        known = self._ends.get(job.id)
        if known is None or known[0] != job.run.attempt:
            known = self._ends[job.id] = (job.run.attempt, now + self._jobs[job.id].seconds)
        return Work(known[1] - now)


def _spread(waits: list[float]) -> float:
    found = sorted(waits)
    return quantile(found, 0.9) - quantile(found, 0.1)
