"""The stored run state of jobs and tasks: exactly the fields that the launcher's rules read.

So a restarted control resumes where it stopped.
"""

from __future__ import annotations

import msgspec

from corral.kernel.ids import AttemptId, JobId, TaskKey, attempt_id
from corral.model.input_bytes import InputBytes
from corral.model.outcome import Completion
from corral.model.placement import TaskPlacement
from corral.model.states import JobState, TaskState

_HOLDS_NOTHING = frozenset(
    {TaskState.CREATION_PENDING, TaskState.CREATION_REQUESTED, TaskState.ATTEMPT_COMPLETED, TaskState.COMPLETED}
)
_new = tuple.__new__
"""Makes a named tuple without the Python function that its class has for that; keys are made often."""
_STAYS = frozenset({TaskState.PREPARING, TaskState.RUNNING, TaskState.ATTEMPT_COMPLETED})


class RetriedAfter(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Retries by the kind of end that caused them (`ExitClass`); older records may lack some."""

    succeeded: int = 0
    transient: int = 0
    conflict: int = 0
    permanent: int = 0
    unknown: int = 0


class Retries(msgspec.Struct, frozen=True, gc=False):
    """Retry counts: `total`, and `accountable` (those that count against maxRetries)."""

    total: int = 0
    accountable: int = 0
    after: RetriedAfter = RetriedAfter()
    in_a_row: int = 0
    """Retries since an attempt last ran long enough to reset the back-off."""
    unstarted: int = 0
    """Consecutive attempts that were never seen running."""


class Yield(msgspec.Struct, frozen=True, gc=False):
    """Why an attempt of a job was preempted."""

    job_attempt: int
    rule: str
    """`corral.model.plan.Rule`."""
    message: str
    by: JobId | None = None
    """The job that it made room for."""


class TaskRun(msgspec.Struct, frozen=True, gc=False):
    """The state of one task of the current job attempt."""

    role: str
    index: int
    state: TaskState = TaskState.CREATION_PENDING
    attempt: int = 0
    """The current task attempt, from 0; a new instance of the task gets a number never used in this job attempt."""
    retries: Retries = Retries()
    deletion_pending: bool = False
    """Whether a scale-down named this task: it ends and is removed, and cannot be taken back."""
    yielding: bool = False
    """Whether it ends to give its devices back; then it waits as a task that the job can do without for now."""
    yields_to: JobId | None = None
    """The job that it makes room for."""
    placement: TaskPlacement | None = None
    """The task's placement, kept after completion; `holds` says whether the devices are still its own."""
    host: str = ""
    ports: dict[str, tuple[int, ...]] = {}
    process: str = ""
    created_at: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None
    wake_at: float | None = None
    """When a delayed retry is due, or a deadline passes."""
    completion: Completion | None = None

    @property
    def key(self) -> TaskKey:
        """Its key within the job."""
        return _new(TaskKey, (self.role, self.index))

    @property
    def holds(self) -> bool:
        """Whether the node and devices of `placement` belong to the task now; a delayed retry keeps them."""
        return self.placement is not None and (self.state not in _HOLDS_NOTHING or self.retry_at is not None)

    @property
    def retry_at(self) -> float | None:
        """When the next attempt begins, while the task waits for a delayed retry."""
        return self.wake_at if self.state is TaskState.ATTEMPT_COMPLETED else None

    @property
    def stays(self) -> bool:
        """Whether it holds a placement and is not being ended."""
        return self.holds and self.state in _STAYS


class RoleCount(msgspec.Struct, frozen=True, gc=False):
    """Task counts of one role; with them completion policies are O(1)."""

    target: int
    """The number of tasks the role should have now, without deletion-pending ones."""
    total: int = 0
    """All existing tasks, including deletion-pending ones."""
    waiting: int = 0
    """Tasks in creation-pending or creation-requested: without a placement."""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    """Tasks that completed without success, also those in `stopped`."""
    leaving: int = 0
    """Deletion-pending tasks, which no completion policy counts."""
    next_attempt: int = 0
    """The first task attempt number that no removed task of this role used."""
    awaited: tuple[int, ...] = ()
    """Indexes to create again by a scale-up, once their deletion-pending task is gone."""
    stopped: int = 0
    """Completed tasks that were asked to end: by a person, or because the job's attempt was over."""

    @property
    def kept(self) -> int:
        """Existing tasks that are not deletion-pending."""
        return self.total - self.leaving

    @property
    def ended(self) -> int:
        """Completed tasks."""
        return self.succeeded + self.failed

    @property
    def faulty(self) -> int:
        """Tasks that failed by themselves."""
        return max(0, self.failed - max(0, self.stopped))  # jobs of earlier versions did not count the stopped ones


class WorkReport(msgspec.Struct, frozen=True, gc=False):
    """What a job's program said of its work, at one time; None: not said."""

    at: float
    """When the program said it, in seconds since 1970."""
    progress: float | None = None
    """The fraction of its work that is done, from 0 to 1."""
    step: float | None = None
    steps: float | None = None
    """The steps of the whole work."""
    throughput: float | None = None
    """Work per second at its present size, in the job's own unit."""
    loss: float | None = None
    gradient_noise: float | None = None
    """The gradient noise scale, in examples (McCandlish et al. 2018; Pollux, OSDI 2021)."""
    batch_size: float | None = None
    """Examples of one step, of all tasks together."""
    active: float | None = None
    """1 while somebody works in the job, such as in the kernels of a notebook; 0 while nobody does."""
    waited: float | None = None
    """Seconds that the reporting task's program has waited for other tasks since it began."""


class TaskStep(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """How far one task's program is, as it said at one time."""

    role: str
    index: int
    step: float
    at: float
    """When the program said it, in seconds since 1970."""
    steps: float | None = None
    """The steps of the whole work."""
    waited: float | None = None
    """Seconds that its program has waited for other tasks since it began."""


class Served(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a job had received when its holdings last changed, in all its attempts."""

    service_seconds: float
    """Seconds during which it held devices or other resources."""
    device_seconds: float
    """Devices times seconds held; a job without devices counts as one device."""
    starts: int
    """How often it was placed while it held nothing."""
    until: float
    """When its holdings last changed, in seconds since 1970."""
    progress: float | None = None
    """The fraction of its work that is done, as last reported; None: never reported."""
    throughput: tuple[tuple[int, int, float], ...] = ()
    """Devices, nodes, and the work per second that it last reported while it held those."""
    gradient_noise: float | None = None
    """The gradient noise scale as last reported, in examples; None: never reported."""
    batch_size: float | None = None
    """Examples of one step as last reported; None: never reported."""
    regimes: tuple[tuple[float, float, float], ...] = ()
    """Batch size, the fraction of its work that was done at it, and the seconds of service that this took."""
    model_seconds: tuple[tuple[str, float], ...] = ()
    """Models of device, and the seconds during which it held devices of that model alone."""
    model_speeds: tuple[tuple[str, float], ...] = ()
    """Models of device, and the work per second and device that it last reported while it held those alone."""


class JobRun(msgspec.Struct, frozen=True, gc=False):
    """The state of one job; its tasks are kept beside it, by key."""

    job: JobId
    state: JobState = JobState.CREATION_PENDING
    attempt: int = 0
    retries: Retries = Retries()
    task_retries: int = 0
    """Retries of single tasks, in all attempts of the job."""
    yield_retries: int = 0
    """Retries of the job, or of a task that had run, after a preemption; they count against no budget."""
    roles: dict[str, RoleCount] = {}
    stop_requested: bool = False
    """The current attempt is the last one, whatever the retry policy says."""
    restart_requested: bool = False
    """After the current attempt the job begins anew, with its retry budget reset."""
    suspended: bool = False
    """Whether a person suspended it: no attempt begins until it is resumed."""
    over_budget: str = ""
    """What is said of the used-up budget that holds it: no attempt begins until that allows more. "" if none does."""
    yielded: Yield | None = None
    """Why the current attempt, or the one before it, was preempted; None once the job ran again."""
    yields: int = 0
    """Preemptions of the job or of a part of it."""
    external: bool = False
    """Whether another controller starts and ends its tasks, by the targets in its object; no engine runs them."""
    hold: str = ""
    """Why nothing is created yet although nothing failed: `dependency`, `suspended`, `budget`; "" if it is not held."""
    turn: float = 0.0
    """Its turn among the waiting jobs of its queue, set by a queue manager (`GangRequest.turn`)."""
    created_at: float = 0.0
    notes: tuple[str, ...] = ()
    """Notes on its placement: unmet preferences, and whether device fractions are enforced."""
    placed_at: float | None = None
    """When the gang was last placed while it held no placement."""
    started_at: float | None = None
    """When the first task of the current attempt ran."""
    checkpointed_at: float | None = None
    """When the current attempt last reported a checkpoint."""
    ended_at: float | None = None
    wake_at: float | None = None
    """The earliest time that the job or one of its tasks waits for: send `TimePassed` then."""
    completion: Completion | None = None
    waited: float = 0.0
    """Seconds of all finished waits, in all attempts."""
    waits_since: float | None = None
    """When the present wait began; None: the job does not wait."""
    targets: dict[str, int] = {}
    """By node id, the replicas of the counted role that the scheduler wants there now, without preempted ones."""
    placements: dict[str, dict[str, int]] = {}
    """By role and node id, the tasks that hold placements now, including those that are ending."""
    report: WorkReport | None = None
    """The latest report of its work, of any attempt; None: it reported nothing."""
    served: Served | None = None
    """What scheduling policies may ask of its past; None: it was never placed."""
    inputs: InputBytes | None = None
    """Where its inputs were when it was submitted; None: unknown."""

    @property
    def had_to_yield(self) -> bool:
        """Whether the current attempt was preempted."""
        return self.yielded is not None and self.yielded.job_attempt == self.attempt

    def attempt_of(self, task: TaskRun) -> AttemptId:
        """The id of a task's current attempt."""
        return attempt_id(self.job, self.attempt, task.role, task.index, task.attempt)
