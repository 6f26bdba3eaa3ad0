"""The simulator of Pollux (Qiao et al., OSDI 2021) with its baselines Tiresias and Optimus, for table D.

Time goes in steps of 60 s. A job makes no progress for 30 s after each change of its nodes. Sizes are whole GPUs on 16
nodes of 4. Both baselines take the batch size from the workload ("tuned").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from corral.sim.trace import TraceProblem
from corral.sim.traces.pollux import OUT_OF_RANGE, pollux_lines, progress_rate
from corral.sim.traces.pollux_profiles import KINDS, MOST_NODES, Application, Placement
from corral.sim.traces.pollux_split import NODE_GPUS, filled, split
from corral.sim.traces.rows import without_problems

NODES: Final = MOST_NODES
GPUS: Final = NODE_GPUS
STEP: Final = 60
RESTART: Final = 30
"""Seconds without progress after a change of nodes."""
TIRESIAS_LIMIT: Final = 16 * 3600
"""GPU-seconds after which Tiresias moves a job to its second queue."""

Allocation = list[int]
"""The node of each replica."""


class PolluxJob:
    """One job and its progress; times in whole seconds."""

    def __init__(self, number: int, application: Application, submitted: int, replicas: int, size: int) -> None:
        self.number = number
        self.application = application
        self.submitted = submitted
        self.replicas = replicas
        self.size = size
        self.most_replicas = 1 if application.kind is KINDS["ncf"] else size // application.least_local
        self.completed: int | None = None
        self.now = 0
        self.restarting = 0
        self.placement: Placement = ()
        self.atomic = self.passes = 0
        self.progress = 0.0
        self.epoch = 0

    def place(self, allocation: Sequence[int]) -> None:
        """Move to the nodes of an allocation, or stop without one."""
        runs: list[list[int]] = []
        for node in allocation:
            if runs and runs[-1][0] == node:
                runs[-1][1] += 1
            else:
                runs.append([node, 1])
        self.placement = tuple(count for _, count in runs)
        if self.placement:
            self._split()
            self.restarting = RESTART

    def advance(self, seconds: int) -> None:
        """Run for a time; crossing an epoch takes a whole number of seconds."""
        end = self.now + seconds
        if self.placement:
            delay = min(self.restarting, seconds)
            self.restarting -= delay
            self.now += delay
            while self.now < end and self.completed is None:
                self._run(end - self.now)
                self._split()
        self.now = end

    def _split(self) -> None:
        accumulate = self.size > self.application.kind.smallest
        self.atomic, self.passes = split(self.size, sum(self.placement), self.application, accumulate=accumulate)

    def _run(self, seconds: int) -> None:
        application = self.application
        speed = progress_rate(application, self.placement, self.atomic, self.passes, self.epoch)
        goal = application.progress(self.epoch + 1)
        if self.progress + speed * seconds < goal:
            self.progress += speed * seconds
            self.now += seconds
            return
        self.epoch += 1
        self.now += round((goal - self.progress) / speed)
        self.progress = goal
        if self.epoch >= application.kind.epochs:
            self.completed = self.now


class Scheduler(Protocol):
    """Gives active jobs their nodes."""

    def allocate(
        self, jobs: Mapping[int, PolluxJob], before: Mapping[int, Allocation], now: int
    ) -> dict[int, Allocation]:
        """Return the allocation by number of the job; jobs without one do not run."""


def completions(jobs: Sequence[PolluxJob], scheduler: Scheduler) -> list[int]:
    """Play the jobs to their ends; returns the seconds from submission to end of each."""
    now = 0
    allocations: dict[int, Allocation] = {}
    while any(job.completed is None for job in jobs):
        for job in jobs:
            if job.completed is None:
                job.advance(STEP)
        now += STEP
        active = {job.number: job for job in jobs if job.submitted <= now and job.completed is None}
        if not active:
            continue
        before = {number: nodes for number, nodes in allocations.items() if number in active}
        allocations = scheduler.allocate(active, dict(before), now)
        for number, job in active.items():
            if allocations.get(number) != before.get(number):
                job.place(allocations.get(number, []))
    return [(job.completed or 0) - job.submitted for job in jobs]


def _most_free_first(free: dict[int, int], wanted: int) -> Allocation:
    """Take GPUs from the node with most of them, again and again; ties go to the first node."""
    taken: Allocation = []
    while len(taken) < wanted:
        node = max(free, key=lambda each: free[each])
        count = min(free[node], wanted - len(taken))
        taken += [node] * count
        free[node] -= count
    return taken


def _free(allocations: Mapping[int, Allocation]) -> dict[int, int]:
    free = dict.fromkeys(range(NODES), GPUS)
    for nodes in allocations.values():
        for node in nodes:
            free[node] -= 1
    return free


class Tiresias:
    """Two queues by GPU-seconds attained; each in order of arrival there, with a place for each job whose GPUs are free.

    Tiresias (Gu et al., NSDI 2019) as Pollux' simulator has it: a job that runs keeps its nodes.
    """

    def __init__(self) -> None:
        self.queues: tuple[list[int], list[int]] = ([], [])
        self.running: set[int] = set()
        self.executed: dict[int, int] = {}
        self.checked = 0

    def allocate(
        self, jobs: Mapping[int, PolluxJob], before: Mapping[int, Allocation], now: int
    ) -> dict[int, Allocation]:
        """Demote, choose by count of GPUs, and place the jobs that start."""
        allocations = dict(before)
        for queue in self.queues:
            queue[:] = [number for number in queue if number in jobs]
        self.running &= jobs.keys()
        for number, job in jobs.items():
            if number not in self.executed:
                self.executed[number] = 0
                self.queues[0].append(number)
            elif number in self.running:
                self.executed[number] += now - self.checked
                if number in self.queues[0] and self.executed[number] * job.replicas >= TIRESIAS_LIMIT:
                    self.queues[0].remove(number)
                    self.queues[1].append(number)
        self.checked = now
        left = NODES * GPUS
        order = [*self.queues[0], *self.queues[1]]
        self.running = set()
        for number in order:
            if jobs[number].replicas <= left:
                self.running.add(number)
                left -= jobs[number].replicas
            else:
                allocations.pop(number, None)
        free = _free(allocations)
        for number in order:
            if number in self.running and number not in allocations:
                allocations[number] = _most_free_first(free, jobs[number].replicas)
        return allocations


class Optimus:
    """One GPU for each job, then one at a time to the job whose remaining time falls most (Peng et al., EuroSys 2018).

    The remaining steps and the step times come from the profiles ("oracle").
    """

    def allocate(
        self, jobs: Mapping[int, PolluxJob], before: Mapping[int, Allocation], now: int
    ) -> dict[int, Allocation]:
        """Choose sizes by marginal gain; a job keeps its nodes if its size stays."""
        left = NODES * GPUS
        counts: dict[int, int] = {}
        gains: dict[int, float] = {}
        for number, job in jobs.items():
            counts[number] = 1 if left else 0
            left -= counts[number]
            gains[number] = self._gain(job, 1) if counts[number] and left else 0.0
        while left > 0:
            number = max(gains, key=lambda each: gains[each])
            if gains[number] <= 0:
                break
            counts[number] += 1
            gains[number] = self._gain(jobs[number], counts[number])
            left -= 1
        allocations = {number: nodes for number, nodes in before.items() if len(nodes) == counts[number]}
        free = _free(allocations)
        for number in sorted(jobs, key=lambda each: counts[each]):
            if counts[number] and number not in allocations:
                allocations[number] = _most_free_first(free, counts[number])
        return allocations

    @staticmethod
    def _gain(job: PolluxJob, replicas: int) -> float:
        """Return the seconds that one replica more saves; 0 for a job at its largest size."""
        if replicas + 1 > job.most_replicas:
            return 0.0
        last = job.application.kind.epochs - 1
        remaining = 1.0
        if last > job.epoch:
            done = job.application.iterations(job.size, job.epoch)
            remaining = job.application.iterations(job.size, last) - done
        return (predicted_step(job, replicas) - predicted_step(job, replicas + 1)) * remaining


def predicted_step(job: PolluxJob, replicas: int) -> float:
    """Return the seconds of one optimiser step on nodes filled one after the other."""
    atomic, passes = split(job.size, replicas, job.application, accumulate=True)
    step, sync = job.application.step_times(filled(replicas), atomic)
    return step + (step - sync) * passes


def read_workload(lines: Iterable[str], applications: Mapping[str, Application]) -> list[PolluxJob]:
    """Read a workload, in the order of the file. Raises TraceProblem, which names the line."""
    jobs = []
    for line, job in without_problems(pollux_lines(lines)):
        application = applications.get(job.application)
        if application is None:
            raise TraceProblem(line, f"{job.application} is no known application")
        if not job.suits(application):
            raise TraceProblem(line, OUT_OF_RANGE)
        jobs.append(PolluxJob(line - 2, application, job.submitted, job.replicas, job.size))
    return jobs
