"""Play a trace: the control core that production runs, in virtual time, with tasks that take the trace's time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Final, NamedTuple

import msgspec

from corral.control.core.configuration import Configured, planner_settings
from corral.control.core.core import Core
from corral.control.core.driver import Driver, Work
from corral.control.core.inputs import Recovered
from corral.control.core.machines import Machines, MachinesSeen
from corral.control.core.memory_store import MemoryStore
from corral.control.core.world import Job
from corral.control.journal.writer import JournalWriter
from corral.kernel.errors import InvalidInput
from corral.kernel.garbage import rarely_collected
from corral.kernel.ids import AttemptId, JobId, job_id
from corral.launcher import LaunchPolicy
from corral.model.placement import TaskPlacement
from corral.model.states import TaskState
from corral.model.store_writes import IntentKind
from corral.scheduler import Policy
from corral.sim.job_documents import new_job
from corral.sim.machines import Site
from corral.sim.node_failures import Seen, node_failures
from corral.sim.occupancy import Recorder
from corral.sim.profiled import Leg, ProfiledProgress
from corral.sim.progress import Costs, Progress, slowdown
from corral.sim.regimes import reported
from corral.sim.results import JobResult, Result
from corral.sim.trace import LONGEST_SECONDS, WHOLE, TraceJob

BEGIN: Final = 1_000_000_000.0
"""When the virtual clock begins, in seconds since 1970."""
_SLICES: Final = 200
_CHECKPOINTS: Final = 20
"""Slices between two checkpoints of a journal."""


@dataclass(frozen=True)
class Knobs:
    """What a simulation assumes beside trace, machines and policy."""

    costs: Costs = field(default_factory=Costs)
    told: bool = True
    """Whether jobs declare a longest duration (`maxDuration`), which some policies and backfill use."""
    overestimate: float = 0.0
    """How much more than needed jobs declare at most: 0.5 draws from 1 to 1.5 times."""
    underestimate: float = 0.0
    """How much less than needed jobs declare at most: 0.5 draws from 0.5 to 1 times; a server ends such jobs, too."""
    stragglers: float = 0.0
    """The part of jobs that run at half their speed."""
    node_failures_per_day: float = 0.0
    """Failures of each node a day, at random times; a failed node is back after an hour."""
    seed: int = 0
    reports: float = 0.0
    """Seconds between two reports of the progress of all jobs that run; 0: jobs report nothing."""
    elastic: bool = False
    """Whether jobs with a profile run on any number of devices, and choose their batch size."""

    def named(self) -> dict[str, float]:
        """Return the numbers by the names of the options of `corral sim` that set them."""
        return {
            "seed": self.seed,
            "restart-cost": self.costs.restart,
            "checkpoint": self.costs.checkpoint,
            "scatter": self.costs.scatter,
            "untold": 0.0 if self.told else 1.0,
            "overestimate": self.overestimate,
            "underestimate": self.underestimate,
            "stragglers": self.stragglers,
            "node-failures": self.node_failures_per_day,
            "reports": self.reports,
            "elastic": 1.0 if self.elastic else 0.0,
        }


Size = tuple[tuple[str, int], ...]
"""Nodes with the number of devices on each."""


class Life(NamedTuple):
    """One job of the trace and what became of it; times in seconds after the beginning."""

    job: TraceJob
    result: JobResult | None
    """None: it has not ended."""
    started: float | None
    """Its first start; None: it has not started."""
    held: float
    """Device-seconds that it has held in runs that are over."""
    interruptions: int
    lost: float
    """Seconds of work that interruptions cost."""


class Simulation:
    """One trace under one policy; `run` plays it."""

    def __init__(
        self,
        jobs: Sequence[TraceJob],
        site: Site,
        policy: Policy,
        knobs: Knobs | None = None,
        *,
        placements: bool = False,
        journal: JournalWriter | None = None,
    ) -> None:
        """With `placements` the result says which devices each run held; `journal` gets each step.

        Raises InvalidInput for a job that is larger than the machines, or a queue that the documents lack.
        """
        self.knobs = knobs or Knobs()
        self.site = site
        self.policy = policy
        self._jobs: dict[JobId, TraceJob] = {}
        self._progress: dict[JobId, Progress] = {}
        self._runs: dict[JobId, tuple[int, float]] = {}
        """The attempt of each job that runs, and when it ends by itself."""
        self._started: dict[JobId, float] = {}
        """When each job that is not over started first, in seconds after the beginning."""
        self._ended: dict[JobId, JobResult] = {}
        self._held: list[tuple[float, float, int | float]] = []
        """Begin, end and devices of each run that is over."""
        self._held_by: dict[JobId, float] = {}
        """The device-seconds of the runs of each job that are over."""
        self._size_of: dict[JobId, Size] = {}
        """What each elastic job that runs holds."""
        self._recorder = Recorder(site.inventory) if placements else None
        _check(jobs, site)
        self._reports_at = BEGIN + self.knobs.reports if self.knobs.reports else inf
        """When the jobs that run report next."""
        self._last = max((job.submitted for job in jobs), default=0.0)
        """When the last job is submitted."""
        self._rack = {node.name: node.cells for node in site.inventory.nodes}
        settings = planner_settings(policy, site.configuration)
        configured = Configured(policy, site.configuration, settings)
        recovered = Recovered(configured, machines=(MachinesSeen(site.inventory),))
        self._journal = journal
        if journal is not None:
            journal.begin(recovered, LaunchPolicy(), Machines(), BEGIN)
        core = Core(recovered, LaunchPolicy(), Machines(), BEGIN).fork(unexplained=True)
        self._driver = Driver(core, MemoryStore(), self._work, BEGIN)
        if journal is not None:
            self._driver.stepped = journal.step
        self._submit(jobs)

    @property
    def size(self) -> int:
        """Return the number of jobs."""
        return len(self._jobs)

    def run(self, told: Callable[[int], None] = lambda ended: None) -> Result:
        """Play until nothing is to come; `told` hears now and then how many jobs have ended."""
        with rarely_collected():
            self._run(told)
        return self.result()

    def _run(self, told: Callable[[int], None]) -> None:
        failures = self._failures()
        due = next(failures, None)
        for number, until in enumerate(self._slices(), 1):
            while due is not None and due[0] <= until:
                self._driver.at(due[0], MachinesSeen(due[1]))
                if self._recorder is not None:
                    self._recorder.seen(due[1], due[0] - BEGIN)
                due = next(failures, None)
            self._play(until)
            self._collect()
            if not number % _CHECKPOINTS:
                self._checkpoint()
            told(len(self._ended))

    def started_by(self, seconds: float) -> dict[str, float]:
        """Play until so many seconds after the beginning, and return when each job that is not over then started.

        Failures of nodes are left out.
        """
        self._driver.run(BEGIN + seconds)
        self._collect()
        return {self._jobs[job].name: started for job, started in self._started.items()}

    def result(self) -> Result:
        """Return what is known so far: the jobs that have ended."""
        jobs = sorted(self._ended.values(), key=lambda each: (each.submitted, each.name))
        knobs = {**self.knobs.named(), "review": self.policy.review_seconds}
        held = tuple(sorted(self._held))
        return Result(
            policy=self.policy.name,
            devices=self.site.devices,
            jobs=tuple(jobs),
            submitted=len(self._jobs),
            held=held,
            knobs=knobs,
            occupancy=None if self._recorder is None else self._recorder.occupancy(self._driver.now - BEGIN),
        )

    def lives(self) -> list[Life]:
        """Return what has become of each job of the trace so far, also of those that have not ended."""
        return [self._life(identity, job) for identity, job in self._jobs.items()]

    def _life(self, identity: JobId, job: TraceJob) -> Life:
        result, progress = self._ended.get(identity), self._progress[identity]
        started = self._started.get(identity) if result is None else result.started
        held = self._held_by.get(identity, 0.0)
        return Life(job, result, started, held, max(0, progress.runs - 1), progress.lost)

    # ---- jobs

    def _submit(self, jobs: Sequence[TraceJob]) -> None:
        draw, costs = random.Random(self.knobs.seed), self.knobs.costs
        for number, job in enumerate(map(self._here, jobs)):
            at = BEGIN + job.submitted
            identity = job_id(int(at * 1000), number + 1)
            seconds = job.seconds * (2.0 if draw.random() < self.knobs.stragglers else 1.0)
            longest = costs.longest(seconds * self._widest(job) / self._slowest(job)) * (
                1 + draw.random() * self.knobs.overestimate
            )
            if self.knobs.underestimate:  # without it the random numbers of a seed stay what they were
                longest *= 1 - draw.random() * self.knobs.underestimate
            most = min(job.profile.most, self.site.devices) if self.knobs.elastic and job.profile is not None else 0
            declared = max(1, ceil(longest)) if self.knobs.told else 0
            if declared > LONGEST_SECONDS:
                declared = 0
            self._jobs[identity] = job
            self._progress[identity] = Progress(seconds) if job.profile is None else ProfiledProgress(seconds)
            self._driver.at(at, new_job(job, identity, at, self.site.devices_per_node, declared, most))

    def _here(self, job: TraceJob) -> TraceJob:
        """Return the job with its speeds on the models of this site alone."""
        here = tuple((model, speed) for model, speed in job.speeds if model in self.site.models)
        return job if here == job.speeds else job._replace(speeds=here)

    def _slowest(self, job: TraceJob) -> float:
        """Return the speed of a job on the slowest model on which it can run here; what it declares is for that one."""
        speeds = (job.speed_on((model,)) for model in self.site.models)
        return min((speed for speed in speeds if speed > 0), default=1.0)

    def _widest(self, job: TraceJob) -> float:
        """Return how much longer than in the trace a job with a profile may take here: on one device if it is elastic."""
        if job.profile is None or not job.seconds:
            return 1.0
        devices, nodes = 1, 1
        if not self.knobs.elastic:
            devices, nodes = job.devices, min(job.devices, len(self.site.inventory.nodes))
        spread = [devices // nodes + (at < devices % nodes) for at in range(nodes)]
        legs = job.profile.legs(spread, adapts=self.knobs.elastic)
        return max(1.0, sum(leg.seconds for leg in legs) / job.seconds)

    def _failures(self) -> Iterator[Seen]:
        """Yield the failures of nodes until the last submission; later ones could go on for ever."""
        return node_failures(
            self.site.inventory, self.knobs.node_failures_per_day, self.knobs.seed, BEGIN, BEGIN + self._last
        )

    def _slices(self) -> Iterator[float]:
        for number in range(1, _SLICES + 1):
            yield BEGIN + self._last * number / _SLICES
        yield float("inf")

    def _play(self, until: float) -> None:
        """Go on to a time, with the reports of jobs until then."""
        while self._reports_at <= until and (self._runs or self._reports_at <= BEGIN + self._last):
            self._driver.run(self._reports_at)
            self._collect()
            for job, (attempt, _) in self._runs.items():
                progress, now = self._progress[job], self._driver.now
                if isinstance(progress, ProfiledProgress):
                    said = progress.report(now)
                else:
                    said = reported(self._jobs[job].regimes, progress.part(now), now)
                self._driver.request(
                    job, IntentKind.WORK_REPORTED, jobAttempt=attempt, report=msgspec.to_builtins(said)
                )
            self._reports_at += self.knobs.reports
        self._driver.run(until)

    def _checkpoint(self) -> None:
        """Have the journal keep the present state, so that a replay may begin there."""
        if self._journal is not None:
            core, now = self._driver.core, self._driver.now
            seen = [MachinesSeen(each) for each in core.machines.remembered().seen]
            recovered = self._driver.store.recovered(core.configured, core.intents.cursor, seen)
            self._journal.checkpoint(core, recovered, now)

    # ---- work

    def _work(self, job: Job, attempt: AttemptId) -> Work:
        """Answer the driver's question: at a start how long the attempt runs, at a stop that it ends at once."""
        now = self._driver.now
        if self._driver.runs(attempt):
            if not self._resize(job, now):
                self._interrupt(job.id, now)
            return Work(0.0)
        known = self._runs.get(job.id)
        if known is None or known[0] != job.run.attempt:
            self._interrupt(job.id, now)
            known = self._runs[job.id] = (job.run.attempt, self._begin(job, now))
            self._hold(job, now, job.placements())
        elif self._resize(job, now):
            known = self._runs[job.id]
        return Work(known[1] - now)

    def _resize(self, job: Job, now: float) -> bool:
        """Have an elastic job go on with the tasks that it has and that are not leaving; False if it has none, or is not
        elastic.
        """
        progress = self._progress[job.id]
        if not (self.knobs.elastic and isinstance(progress, ProfiledProgress) and job.id in self._runs):
            return False
        left = [task for task in job.tasks.values() if task.holds and task.state is not TaskState.DELETION_PENDING]
        placements = [task.placement for task in left if task.placement is not None]
        if not placements:
            return False
        if self._size_of.get(job.id) == _on_nodes(placements):
            return True
        self._release(job.id, now)
        ends = progress.resize(now, self._legs(job, placements), self.knobs.costs)
        self._runs[job.id] = (job.run.attempt, ends)
        self._hold(job, now, placements)
        for task in left:
            if self._driver.runs(attempt := job.run.attempt_of(task)):
                self._driver.adopt(attempt, ends - now)
        return True

    def _hold(self, job: Job, now: float, placements: Sequence[TaskPlacement]) -> None:
        """Note what a job holds from now on."""
        if self.knobs.elastic:
            self._size_of[job.id] = _on_nodes(placements)
        if self._recorder is not None:
            trace = self._jobs[job.id]
            self._recorder.begin(job.id, now - BEGIN, trace.name, trace.user, placements)

    def _legs(self, job: Job, placements: Sequence[TaskPlacement]) -> Sequence[Leg]:
        """Return the work of a job with a profile on its devices."""
        trace, progress = self._jobs[job.id], self._progress[job.id]
        assert trace.profile is not None
        legs = trace.profile.legs([count for _, count in _on_nodes(placements)], adapts=self.knobs.elastic)
        longer = progress.seconds / trace.seconds if trace.seconds else 1.0
        return [leg._replace(work=leg.work * longer, seconds=leg.seconds * longer) for leg in legs]

    def _begin(self, job: Job, now: float) -> float:
        progress = self._progress[job.id]
        if isinstance(progress, ProfiledProgress):
            progress.legs = self._legs(job, job.placements())
            return progress.begin(now, 1.0, self.knobs.costs)
        nodes = {placement.node for placement in job.placements()}
        racks = {self._rack[node] for node in nodes}
        devices = self._jobs[job.id].devices
        fewest = ceil(max(1, devices) / self.site.devices_per_node)
        slow = slowdown(len(nodes), fewest, len(racks), self.knobs.costs) / self._speed(job)
        return progress.begin(now, slow, self.knobs.costs)

    def _speed(self, job: Job) -> float:
        """Return the speed of a job on the models of the devices that it has now."""
        trace, model_of = self._jobs[job.id], self.site.model_of
        if not (trace.speeds and model_of):
            return 1.0
        held = {model_of[each.node, device] for each in job.placements() for device in each.devices}
        return trace.speed_on(held)

    def _interrupt(self, job: JobId, now: float) -> None:
        if self._runs.pop(job, None) is not None:
            self._release(job, now)
            self._progress[job].interrupt(now, self.knobs.costs)

    def _release(self, job: JobId, now: float) -> None:
        """Note that a run held its devices until now."""
        running = self._progress[job].running
        if running is not None:
            size = self._size_of.pop(job, None)
            devices = _held(self._jobs[job]) if size is None else sum(count for _, count in size)
            self._held.append((running.begun - BEGIN, now - BEGIN, devices))
            self._held_by[job] = self._held_by.get(job, 0.0) + (now - running.begun) * devices
        if self._recorder is not None:
            self._recorder.end(job, now - BEGIN)

    # ---- results

    def _collect(self) -> None:
        """Take over the ends since the last look, and drop what else was stored as events."""
        facts = self._driver.store.facts
        for each in facts:
            if each.fact.kind == "job.started":
                self._started.setdefault(each.job, each.at - BEGIN)
            elif each.fact.kind == "job.completed":
                self._end(each.job, each.at)
        facts.clear()

    def _end(self, job: JobId, at: float) -> None:
        trace, progress, ended = self._jobs[job], self._progress[job], at - BEGIN
        if self._runs.pop(job, None) is not None:
            self._release(job, at)
            progress.finish(at)
        self._ended[job] = JobResult(
            name=trace.name,
            user=trace.user,
            devices=trace.devices,
            seconds=trace.seconds,
            submitted=trace.submitted,
            started=self._started.pop(job, ended),
            ended=ended,
            interruptions=max(0, progress.runs - 1),
            lost=progress.lost,
            finished=progress.complete,
        )


def _on_nodes(placements: Sequence[TaskPlacement]) -> Size:
    """Return how many devices are held on each node, in order of the tasks."""
    found: dict[str, int] = {}
    for each in placements:
        found[each.node] = found.get(each.node, 0) + len(each.devices)
    return tuple(found.items())


def _held(job: TraceJob) -> int | float:
    """Return the devices that a job holds: a whole number, or a part of one."""
    return job.devices if job.part == WHOLE else job.part / WHOLE


def _check(jobs: Sequence[TraceJob], site: Site) -> None:
    big = next((job for job in jobs if job.devices > site.devices), None)
    if big is not None:
        raise InvalidInput(
            "larger-than-the-cluster", f"{big.name} needs {big.devices} devices, and the machines have {site.devices}."
        )
    for job in jobs if any(job.speeds for job in jobs) else ():
        fitting = sum(count for model, count in site.models.items() if job.speed_on((model,)) > 0)
        if job.devices > fitting:
            raise InvalidInput(
                "larger-than-the-cluster", f"{job.name} needs {job.devices} devices, and can run on {fitting}."
            )
    unknown = sorted({job.queue for job in jobs} - set(site.configuration.queues))
    if unknown:
        raise InvalidInput("unknown-queue", f"The trace names the queue {unknown[0]}, which no document describes.")
