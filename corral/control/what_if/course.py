"""One course of the cluster: a copy of the core that is played to the horizon, and what became of jobs and queues."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from corral.control.core.core import Core
from corral.control.core.driver import Driver, Work
from corral.control.core.memory_store import MemoryStore
from corral.control.core.world import Job
from corral.control.what_if.changes import Changes
from corral.control.what_if.run_times import RunTimes
from corral.control.what_if.stays import Stays
from corral.kernel.ids import AttemptId, JobId, TaskKey, parse_attempt_id
from corral.kernel.units import DEVICE
from corral.model.inventory import Device, Node
from corral.model.launch import Started
from corral.model.phases import Phase, phase
from corral.model.runs import TaskRun
from corral.model.states import TaskState
from corral.model.store_writes import LiveJob
from corral.model.what_if import Course, PastRun, QueueCourse
from corral.scheduler.queues.lending import lending, owned_devices

SAMPLES: Final = 96
"""How often devices and waiting jobs are counted, at equal distances."""
_INSTANCE: Final = frozenset({TaskState.PREPARING, TaskState.RUNNING})


def play(
    core: Core,
    changes: Changes,
    past: Iterable[PastRun],
    *,
    now: float,
    horizon: float,
    seed: int,
    timeline: bool = False,
) -> Course:
    """Play a copy of a core from `now` for `horizon` seconds, with changes that take effect at once; O(events).

    No failures are drawn, and nobody submits anything but the changes. A preempted job begins anew. With `timeline` the
    course tells what ran where.
    """
    stays = Stays() if timeline else None
    return _Play(core.fork(unexplained=True), changes, RunTimes(past, seed), now, stays).run(horizon)


class _Play:
    def __init__(self, core: Core, changes: Changes, run_times: RunTimes, now: float, stays: Stays | None) -> None:
        self.core = core
        self.stays = stays
        self.now = now
        self.run_times = run_times
        self.store = MemoryStore(users=changes.users, first_intent=core.intents.cursor + 1)
        self.driver = Driver(core, self.store, self._work, now)
        self.queues: dict[str, QueueCourse] = {}
        self.starts: dict[str, float] = {}
        self.waits_since: dict[JobId, float] = {}
        self.queue_of: dict[JobId, str] = {}
        self._ends: dict[JobId, tuple[int, float]] = {}
        """The attempt of each job, and when it ends by itself."""
        for job in core.world.jobs.values():
            self._take_over(job)
        for new in changes.submitted:
            self.waits_since[new.id], self.queue_of[new.id] = now, new.queue
            self.driver.at(now, new)
        self.asked = frozenset(self.waits_since)
        """The jobs whose starts are told."""
        changes.apply(self.driver)

    def run(self, horizon: float) -> Course:
        """Play to the horizon and tell what became of everything."""
        times, used, waiting = [], [], []
        for number in range(SAMPLES + 1):
            at = horizon * number / SAMPLES
            self.driver.run(self.now + at)
            self._collect()
            times.append(at)
            used.append(self._look())
            waiting.append(len(self.waits_since))
        self._end_waits()
        for each in self.queues.values():
            each.used, each.lent, each.borrowed = (
                total / (SAMPLES + 1) for total in (each.used, each.lent, each.borrowed)
            )
        course = Course(self.starts, self.queues, self.run_times.known, times, used, self._devices(), waiting)
        if self.stays is not None:
            course.stays, course.stays_left_out = self.stays.told()
            course.nodes = {name: len(_whole(node)) for name, node in sorted(self.core.machines.nodes.items())}
        return course

    # ---- jobs that are there

    def _take_over(self, job: Job) -> None:
        self.store.hold(_record(job))
        self.queue_of[job.id] = job.terms.queue
        if phase(job.run) is Phase.WAITING and not job.run.suspended:
            self.waits_since[job.id] = job.run.waits_since or job.created_at
        for task in job.tasks.values():
            if task.state in _INSTANCE:
                self._adopt(job, task)
            elif task.state is TaskState.DELETION_PENDING:
                self.driver.adopt(job.run.attempt_of(task), 0.0)

    def _adopt(self, job: Job, task: TaskRun) -> None:
        attempt = job.run.attempt_of(task)
        if task.state is TaskState.PREPARING:
            self.driver.at(self.now, Started(attempt, self.now))
        self.driver.adopt(attempt, self._end_of(job) - self.now)
        if self.stays is not None:
            self.stays.begin(job, task, 0.0)

    def _work(self, job: Job, attempt: AttemptId) -> Work:
        """Answer the driver: a start lasts as long as its job's attempt, a stop is obeyed at once."""
        if self.driver.runs(attempt):
            return Work(0.0)
        if self.stays is not None:
            name = parse_attempt_id(attempt)
            self.stays.begin(job, job.tasks[TaskKey(name.role, name.index)], self.driver.now - self.now)
        return Work(max(0.0, self._end_of(job) - self.driver.now))

    def _end_of(self, job: Job) -> float:
        """When the present attempt of a job ends by itself: all its tasks at once."""
        known = self._ends.get(job.id)
        if known is None or known[0] != job.run.attempt:
            now = self.driver.now
            begun = job.run.started_at or now
            seconds = self.run_times.drawn(job, now - begun)
            known = self._ends[job.id] = (job.run.attempt, begun + seconds)
        return known[1]

    # ---- what happens

    def _collect(self) -> None:
        for each in self.store.facts:
            kind, job = each.fact.kind, each.job
            if kind == "job.started":
                self._started(job, each.at)
            elif kind == "job.queued":
                self.waits_since.setdefault(job, each.at)
            elif kind == "job.preempted":
                self._of(job).preempted += 1
            elif kind == "job.completed":
                self.waits_since.pop(job, None)
                self._of(job).ended += 1
            elif kind == "task.exited" and self.stays is not None:
                self.stays.end(AttemptId(each.fact.attempt), each.at - self.now)
        self.store.facts.clear()

    def _started(self, job: JobId, at: float) -> None:
        since = self.waits_since.pop(job, None)
        if since is None:
            return
        if job in self.asked:
            self.starts.setdefault(job, at - self.now)
        course = self._of(job)
        course.started += 1
        course.waits.append(at - since)

    def _end_waits(self) -> None:
        for job, since in self.waits_since.items():
            course = self._of(job)
            course.waiting += 1
            course.waits.append(self.driver.now - since)

    def _look(self) -> float:
        """Count the devices in use by queue; returns those of all."""
        tree, cluster = self.core.world.cluster.queues, self.core.world.cluster
        for name, node in tree.nodes.items():
            if node.used[0]:
                self._named(name).used += node.used[0] / DEVICE
        for (lender, borrower), millis in lending(tree, owned_devices(cluster.ownership)).items():
            if lender:
                self._named(lender).lent += millis / DEVICE
            self._named(borrower).borrowed += millis / DEVICE
        return sum(node.used[0] for node in tree.root.children) / DEVICE

    def _devices(self) -> int:
        machines = self.core.machines
        return sum(
            device.healthy
            for node in machines.nodes.values()
            if node.ready and node.name not in machines.cordons
            for device in _whole(node)
        )

    def _of(self, job: JobId) -> QueueCourse:
        live = self.core.world.jobs.get(job)
        if live is not None:
            self.queue_of[job] = live.terms.queue
        return self._named(self.queue_of.get(job, "default"))

    def _named(self, queue: str) -> QueueCourse:
        return self.queues.setdefault(queue, QueueCourse())


def _whole(node: Node) -> list[Device]:
    """A node's devices, without the parts of devices."""
    return [device for device in node.devices if device.parent < 0]


def _record(job: Job) -> LiveJob:
    return LiveJob(
        id=job.id,
        name=job.name,
        user=job.user,
        queue=job.terms.queue,
        priority=job.terms.priority,
        created_at=job.created_at,
        doc=job.text,
        run=job.run,
        summary=job.summary,
        revision=job.revision,
        tasks=job.tasks,
        account=job.account,
    )
