"""Why: what is stored of a running job is exactly what the launcher's rules read, so a restart resumes where it stopped."""

from __future__ import annotations

import msgspec

from corral.kernel.ids import AttemptId, JobId, TaskKey, attempt_id
from corral.model.outcome import Completion
from corral.model.placement import TaskPlacement
from corral.model.states import JobState, TaskState

_HOLDS_NOTHING = frozenset(
    {TaskState.CREATION_PENDING, TaskState.CREATION_REQUESTED, TaskState.ATTEMPT_COMPLETED, TaskState.COMPLETED}
)
_STAYS = frozenset({TaskState.PREPARING, TaskState.RUNNING, TaskState.ATTEMPT_COMPLETED})


class RetriedAfter(msgspec.Struct, frozen=True, omit_defaults=True):
    """How often was tried again after each kind of end (`ExitClass`); what was stored before this was counted has none."""

    succeeded: int = 0
    transient: int = 0
    conflict: int = 0
    permanent: int = 0
    unknown: int = 0


class Retries(msgspec.Struct, frozen=True):
    """How often was tried again: `total`, and `accountable` (those that count against maxRetries)."""

    total: int = 0
    accountable: int = 0
    after: RetriedAfter = RetriedAfter()
    in_a_row: int = 0
    """Since an attempt last ran so long that the back-off begins anew."""
    unstarted: int = 0
    """Attempts in a row of which nothing was seen running."""


class Yield(msgspec.Struct, frozen=True):
    """Why an attempt of a job had to end though nothing was wrong with it."""

    job_attempt: int
    rule: str
    """`corral.model.plan.Rule`."""
    message: str
    by: JobId | None = None
    """The job that it made room for."""


class TaskRun(msgspec.Struct, frozen=True):
    """The state of one task of the current job attempt."""

    role: str
    index: int
    state: TaskState = TaskState.CREATION_PENDING
    attempt: int = 0
    """The current task attempt, from 0; a new instance of the task gets a number never used in this job attempt."""
    retries: Retries = Retries()
    deletion_pending: bool = False
    """A scale-down named this task: it ends and is removed, and is never taken back."""
    yielding: bool = False
    """It ends to give its devices back, and then waits for others as a task that the job can do without for now."""
    yields_to: JobId | None = None
    """The job that it makes room for."""
    placement: TaskPlacement | None = None
    """Where the task is, or was when it completed; `holds` says whether the devices are its own."""
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
        """Locates the task within its job."""
        return TaskKey(self.role, self.index)

    @property
    def holds(self) -> bool:
        """Whether the node and devices of `placement` belong to the task now; a retry that is due soon keeps them."""
        return self.placement is not None and (self.state not in _HOLDS_NOTHING or self.retry_at is not None)

    @property
    def retry_at(self) -> float | None:
        """When the next attempt begins, while the task waits for it."""
        return self.wake_at if self.state is TaskState.ATTEMPT_COMPLETED else None

    @property
    def stays(self) -> bool:
        """Whether it holds a place and is not on its way out."""
        return self.holds and self.state in _STAYS


class RoleCount(msgspec.Struct, frozen=True):
    """Counters of one role that make completion policies O(1)."""

    target: int
    """How many tasks the role should have now (deletion-pending ones not counted)."""
    total: int = 0
    """How many exist, deletion-pending ones included."""
    waiting: int = 0
    """In creation-pending or creation-requested: without a placement."""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    """Completed and not succeeded."""
    leaving: int = 0
    """Deletion-pending: they count for no completion policy."""
    next_attempt: int = 0
    """The first task attempt number that no removed task of this role used."""
    awaited: tuple[int, ...] = ()
    """Indexes that a scale-up wants again while their deletion-pending task is not gone: new tasks, once it is."""

    @property
    def kept(self) -> int:
        """How many exist and are to stay."""
        return self.total - self.leaving

    @property
    def ended(self) -> int:
        """How many are completed."""
        return self.succeeded + self.failed


class JobRun(msgspec.Struct, frozen=True):
    """The state of one job; its tasks are kept beside it, by key."""

    job: JobId
    state: JobState = JobState.CREATION_PENDING
    attempt: int = 0
    retries: Retries = Retries()
    task_retries: int = 0
    """How often its tasks were tried again alone, in all its attempts."""
    yield_retries: int = 0
    """How often the job, or a task of it that had run, was tried again because it had to yield: no failure, and counted in
    no budget."""
    roles: dict[str, RoleCount] = {}
    stop_requested: bool = False
    """The attempt in hand is the last one, whatever the retry policy says."""
    restart_requested: bool = False
    """When the attempt in hand is over, the job begins anew with its retries unspent."""
    suspended: bool = False
    """A person suspended it: no attempt begins until it is resumed."""
    yielded: Yield | None = None
    """Why the attempt in hand, or the one before it, had to yield; None once the job ran again."""
    yields: int = 0
    """How often the job, or a part of it, had to yield."""
    external: bool = False
    """Someone's own controller starts and ends its tasks, as the targets of its object say: no engine hears of them."""
    hold: str = ""
    """Why nothing is created yet though nothing failed: `dependency`, `suspended`; "" when free."""
    turn: float = 0.0
    """Where a manager of its queue put it among those that wait (`GangRequest.turn`)."""
    created_at: float = 0.0
    notes: tuple[str, ...] = ()
    """What is to be known of its places: what it preferred and did not get, whether anything enforces its parts."""
    placed_at: float | None = None
    """When the gang was last given places while it held none."""
    started_at: float | None = None
    """When the first task of the current attempt ran."""
    checkpointed_at: float | None = None
    """When the current attempt last said that it had saved its work."""
    ended_at: float | None = None
    wake_at: float | None = None
    """The earliest time that the job or one of its tasks waits for: send `TimePassed` then."""
    completion: Completion | None = None
    waited: float = 0.0
    """Seconds of the waits that are over, in all attempts."""
    waits_since: float | None = None
    """When the wait began that is going on; None: the job does not wait."""
    targets: dict[str, int] = {}
    """By node id: the replicas of the counted role that the scheduler wants there now; those that yield are not in it."""
    placements: dict[str, dict[str, int]] = {}
    """By role and node id: the tasks that hold their places now, those that are ending included."""

    @property
    def had_to_yield(self) -> bool:
        """Whether the attempt in hand had to yield."""
        return self.yielded is not None and self.yielded.job_attempt == self.attempt

    def attempt_of(self, task: TaskRun) -> AttemptId:
        """The id of a task's current attempt."""
        return attempt_id(self.job, self.attempt, task.role, task.index, task.attempt)
