"""Count what becomes of jobs and queues along a course: starts, waits, preemptions, and devices in use."""

from __future__ import annotations

from collections.abc import Iterable

from corral.control.core.core import Core
from corral.control.core.world import Job
from corral.kernel.ids import JobId
from corral.kernel.units import DEVICE
from corral.model.inventory import Device, Node
from corral.model.phases import Phase, phase
from corral.model.store_writes import FactWrite
from corral.model.what_if import Course, Known, QueueCourse
from corral.scheduler.queues.lending import lending, owned_devices


class Tally:
    """What became of jobs and queues since `begin`, in seconds since 1970."""

    def __init__(self, begin: float) -> None:
        self.begin = begin
        self.waits_since: dict[JobId, float] = {}
        """The jobs that wait, and since when."""
        self.starts: dict[str, float] = {}
        """First starts of the jobs that are told, in seconds after the beginning."""
        self._queues: dict[str, QueueCourse] = {}
        self._queue_of: dict[JobId, str] = {}
        self.told: set[JobId] = set()
        """The jobs whose first start is told: those that wait at the beginning, and submitted ones."""
        self._times: list[float] = []
        self._used: list[float] = []
        self._waiting: list[int] = []

    @property
    def unstarted(self) -> set[JobId]:
        """The told jobs that have not started."""
        return self.told - self.starts.keys()

    def take_over(self, job: Job) -> None:
        """Count a job that is there at the beginning."""
        self._queue_of[job.id] = job.terms.queue
        if phase(job.run) is Phase.WAITING and not job.run.suspended:
            self.expect(job.id, job.terms.queue, job.run.waits_since or job.created_at)

    def expect(self, job: JobId, queue: str, since: float) -> None:
        """Count a job that waits, and tell its first start."""
        self.waits_since[job] = since
        self._queue_of[job] = queue
        self.told.add(job)

    def collect(self, facts: Iterable[FactWrite], core: Core) -> None:
        """Count what happened; `core` knows the queues of jobs."""
        for each in facts:
            kind, job = each.fact.kind, each.job
            if kind == "job.started":
                self._started(job, each.at, core)
            elif kind == "job.queued":
                self.waits_since.setdefault(job, each.at)
            elif kind == "job.preempted":
                self._of(job, core).preempted += 1
            elif kind == "job.completed":
                self.waits_since.pop(job, None)
                self._of(job, core).ended += 1

    def look(self, at: float, core: Core) -> None:
        """Count devices in use and waiting jobs now; `at` is in seconds after the beginning."""
        cluster = core.world.cluster
        for name, node in cluster.queues.nodes.items():
            if node.used[0]:
                self._named(name).used += node.used[0] / DEVICE
        for (lender, borrower), millis in lending(cluster.queues, owned_devices(cluster.ownership)).items():
            if lender:
                self._named(lender).lent += millis / DEVICE
            self._named(borrower).borrowed += millis / DEVICE
        self._times.append(at)
        self._used.append(sum(node.used[0] for node in cluster.queues.root.children) / DEVICE)
        self._waiting.append(len(self.waits_since))

    def course(self, now: float, core: Core, known: Known) -> Course:
        """The course until `now`; to be asked for once, after the last look."""
        for job, since in self.waits_since.items():
            course = self._of(job, core)
            course.waiting += 1
            course.waits.append(now - since)
        looks = max(1, len(self._times))
        for each in self._queues.values():
            each.used, each.lent, each.borrowed = (total / looks for total in (each.used, each.lent, each.borrowed))
        return Course(
            dict(self.starts), self._queues, known, self._times, self._used, usable_devices(core), self._waiting
        )

    def _started(self, job: JobId, at: float, core: Core) -> None:
        since = self.waits_since.pop(job, None)
        if since is None:
            return
        if job in self.told:
            self.starts.setdefault(job, at - self.begin)
        course = self._of(job, core)
        course.started += 1
        course.waits.append(at - since)

    def _of(self, job: JobId, core: Core) -> QueueCourse:
        live = core.world.jobs.get(job)
        if live is not None:
            self._queue_of[job] = live.terms.queue
        return self._named(self._queue_of.get(job, "default"))

    def _named(self, queue: str) -> QueueCourse:
        return self._queues.setdefault(queue, QueueCourse())


def whole_devices(node: Node) -> list[Device]:
    """A node's devices, without the parts of devices."""
    return [device for device in node.devices if device.parent < 0]


def usable_devices(core: Core) -> int:
    """The healthy whole devices of the nodes that take new tasks."""
    machines = core.machines
    return sum(
        device.healthy
        for node in machines.nodes.values()
        if node.ready and node.name not in machines.cordons
        for device in whole_devices(node)
    )
