"""The JSON shapes of jobs, tasks, attempts and events in the API, built in the store and passed on unchanged.

Times are RFC 3339 UTC strings with milliseconds, keys are camelCase. Values that only control and service exchange with
the store (times in seconds) are in `corral.model.store_writes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, Final, Generic, TypeVar

import msgspec

from corral.model.exits import own_phrase
from corral.runtime.error_block import sentence

Item = TypeVar("Item")

LIVE_PHASES: Final = ("waiting", "starting", "running", "stopping")
"""The phases of a job that is not over."""
ENDED_PHASES: Final = ("succeeded", "failed", "stopped")
"""The phases of a job that is over; only a restart leaves them."""


def one_of(*values: str) -> msgspec.Meta:
    """Return the annotation of a text field that has one of `values`, for the OpenAPI document; nothing checks it."""
    return msgspec.Meta(extra_json_schema={"enum": list(values)})


Phase = Annotated[str, one_of(*LIVE_PHASES, *ENDED_PHASES)]

JOB_DOCUMENT: Final = "JobDocument"
"""The name of the canonical job document's schema in the OpenAPI document."""
JobDocument = Annotated[
    dict[str, Any], msgspec.Meta(extra_json_schema={"$ref": f"#/components/schemas/{JOB_DOCUMENT}"})
]
"""A canonical job document, as `corral.spec` made it."""


@lru_cache(1024)
def rfc3339(seconds: float) -> str:
    """Format `seconds` since 1970 as an RFC 3339 UTC time with milliseconds.

    A pure function whose answers are kept, because a job's list entry repeats its times with every change.
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def rfc3339_or_none(seconds: float | None) -> str | None:
    """Like `rfc3339`; None stays None."""
    return None if seconds is None else rfc3339(seconds)


class Record(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A value whose JSON is part of the API; records form no reference cycles, hence `gc=False`."""


class Page(msgspec.Struct, Generic[Item], frozen=True):
    """One page of a longer list; pass `next` as `after` to read the next page, None is the end."""

    items: list[Item]
    next: str | None = None


class TaskCounts(Record, frozen=True):
    """Task counts of a job or role by state; `waiting` includes tasks that are starting.

    `stopped` are tasks that were asked to end, by a person or because the job was over; they are not among `failed`.
    """

    total: int = 0
    waiting: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    stopped: int = 0

    @property
    def open(self) -> int:
        """Waiting and running tasks of a live job; between two attempts, when both counts are 0, all tasks."""
        return self.waiting + self.running or self.total


class ExitView(Record, frozen=True):
    """How an attempt ended (`corral.model.outcome.Completion`)."""

    code: int
    phrase: str
    exit_class: str = msgspec.field(name="class")
    message: str = ""


NEVER_RAN: Final = "never-ran"
"""`WaitingView.code` of a job whose consecutive attempts, or those of one task, ended before they ran."""


class WaitingView(Record, frozen=True):
    """Why a job waits: the binding constraint, and the number of gangs ahead of it."""

    code: str
    message: str
    ahead: int = 0
    """As of the time when the reason was found; `explain` counts again."""
    possible: bool = True
    """Whether the machines known at that time could hold the job if they were empty."""


class ArrayView(Record, frozen=True):
    """The array that a list entry stands for: its name, the tag of its jobs, and job counts by state."""

    name: str
    tag: str
    states: dict[Phase, int]


class JobSummary(Record, frozen=True):
    """One entry of the job list."""

    id: str
    name: str
    user: str
    queue: str
    priority: int
    job_type: str
    state: Phase
    created_at: str
    started_at: str | None = None
    ended_at: str | None = None
    tasks: TaskCounts = TaskCounts()
    devices: int | float = 0
    """Devices that the job holds when all tasks of its requested size run; fractions of devices count as fractions."""
    retries: int = 0
    """Retries of the job and of single tasks together."""
    task_retries: int = 0
    """Retries of single tasks only."""
    exit: ExitView | None = None
    waiting: WaitingView | None = None
    tags: tuple[str, ...] = ()
    devices_held: int | float = 0
    """Devices that its tasks hold now: fewer while an elastic job is below its size, or when some tasks are over."""
    array: ArrayView | None = None
    """Set only in a list with one entry per array."""


class ShareView(Record, frozen=True):
    """The fraction of a device that a task has, in percent."""

    compute_percent: float
    memory_percent: float


class TaskRecord(Record, frozen=True):
    """One task of a job's current attempt; `state` is the launcher's task state."""

    role: str
    index: int
    state: str
    attempt: int = 0
    node: str = ""
    devices: tuple[int, ...] = ()
    host: str = ""
    ports: dict[str, tuple[int, ...]] = {}
    started_at: str | None = None
    ended_at: str | None = None
    exit: ExitView | None = None
    retries: int = 0
    counted_retries: int = 0
    """The retries that count against maxRetries."""
    retry_at: str | None = None
    """When its next attempt begins, while it waits for a delayed retry."""
    created_at: str | None = None
    share: ShareView | None = None
    """Its fraction of its one device; null is the whole device."""


class AttemptRecord(Record, frozen=True):
    """One run of one task, in any attempt of the job."""

    id: str
    job_attempt: int
    role: str
    index: int
    attempt: int
    node: str = ""
    devices: tuple[int, ...] = ()
    host: str = ""
    ports: dict[str, tuple[int, ...]] = {}
    started_at: str | None = None
    ended_at: str | None = None
    exit: ExitView | None = None


class EventRecord(Record, frozen=True):
    """One event of a job; `seq` follows commit order, so a stream resumed after a `seq` skips nothing."""

    seq: int
    job: str
    at: str
    kind: str
    actor: str
    message: str
    role: str = ""
    index: int = -1
    attempt: str = ""
    data: dict[str, Any] = {}


class JobFilter(msgspec.Struct, frozen=True):
    """Filters of a job list; an empty field filters nothing. Times are seconds since 1970."""

    phases: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    search: str = ""
    """A substring of the name, or a prefix of the id."""
    tag: str = ""
    job_type: str = ""
    min_priority: int | None = None
    max_priority: int | None = None
    created_after: float | None = None
    created_before: float | None = None
    labels: tuple[tuple[str, str], ...] = ()
    """Label names and values; a job must have all of them."""
    arrays: bool = False
    """Whether each array is one entry, at the position of the first of its jobs that pass the filter."""
    order: str = "newest"
    """One of `JOB_ORDERS`."""


JOB_ORDERS: Final = ("newest", "oldest", "name", "priority", "ended")
"""The sort orders of a job list; `ended` shows only jobs that have ended.

Ties are broken by id, so paging shows every job exactly once.
"""


def exit_view(completion: Any) -> ExitView | None:
    """Convert a `Completion` to the API's form; None stays None."""
    if completion is None:
        return None
    said = sentence(completion.diagnostics)
    phrase = own_phrase(completion.code, completion.phrase)
    return ExitView(completion.code, phrase, str(completion.exit_class), said)


def plain(data: Mapping[str, object] | None) -> dict[str, Any]:
    """A JSON-ready copy of an event's data."""
    built: dict[str, Any] = msgspec.to_builtins(dict(data or {}))
    return built
