"""Why: what people and programs are shown of a job has one shape, made where it is stored and passed through unchanged.

Times are RFC 3339 UTC strings with milliseconds, keys are camelCase: these values are the API's JSON. Values that only
control and service exchange with the store (times in seconds) are in `corral.model.writes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Generic, TypeVar

import msgspec

from corral.runtime.openpai_errors import sentence

Item = TypeVar("Item")

LIVE_PHASES: Final = ("waiting", "starting", "running", "stopping")
"""The phases of a job that is not over."""
ENDED_PHASES: Final = ("succeeded", "failed", "stopped")
"""The phases of a job that is over; it lives again only by a restart."""


def rfc3339(seconds: float) -> str:
    """`seconds` since 1970 as an RFC 3339 UTC time with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def rfc3339_or_none(seconds: float | None) -> str | None:
    """Like `rfc3339`, None for a time that has not come."""
    return None if seconds is None else rfc3339(seconds)


class Record(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A value whose JSON is part of the API; none refers back to itself, so the garbage collector need not look."""


class Page(msgspec.Struct, Generic[Item], frozen=True):
    """Some items of a longer list; `next` is what `after` takes to read on, None at the end."""

    items: list[Item]
    next: str | None = None


class TaskCounts(Record, frozen=True):
    """How many tasks of a job (or role) stand where; `waiting` includes those that are starting."""

    total: int = 0
    waiting: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0

    @property
    def open(self) -> int:
        """How many wait or run, of a job that is not over: all of them between two attempts of the job."""
        return self.waiting + self.running or self.total


class ExitView(Record, frozen=True):
    """How an attempt ended, as `corral.model.outcome.Completion` says it."""

    code: int
    phrase: str
    exit_class: str = msgspec.field(name="class")
    message: str = ""


NEVER_RAN: Final = "never-ran"
"""What a job waits for (`WaitingView.code`) whose attempts, or a task's, ended one after the other before they ran."""


class WaitingView(Record, frozen=True):
    """Why a job waits: the binding constraint, and how many gangs are before it."""

    code: str
    message: str
    ahead: int = 0
    """As of the time when the reason was found; `explain` counts anew."""
    possible: bool = True
    """Whether the machines known when it was written could hold the job if they were empty."""


class ArrayView(Record, frozen=True):
    """The array that a line stands for: its name, the tag of its jobs, and how many are in each state."""

    name: str
    tag: str
    states: dict[str, int]


class JobSummary(Record, frozen=True):
    """One line of the job list."""

    id: str
    name: str
    user: str
    queue: str
    priority: int
    job_type: str
    state: str
    created_at: str
    started_at: str | None = None
    ended_at: str | None = None
    tasks: TaskCounts = TaskCounts()
    devices: int | float = 0
    """How many devices the job holds when all its tasks run, at the size asked for now; parts of devices count as parts."""
    retries: int = 0
    """Of the job and of its tasks alone."""
    task_retries: int = 0
    """Those of its tasks alone."""
    exit: ExitView | None = None
    waiting: WaitingView | None = None
    tags: tuple[str, ...] = ()
    devices_held: int | float = 0
    """How many devices its tasks hold now: fewer while an elastic job has fewer tasks, or some of them are over."""
    array: ArrayView | None = None
    """Only in a list with one line for each array."""


class ShareView(Record, frozen=True):
    """The part of its device that a task has."""

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
    """Those of them that count against maxRetries."""
    retry_at: str | None = None
    """When its next attempt begins, while it waits for that."""
    created_at: str | None = None
    share: ShareView | None = None
    """The part that it has of its one device; null is the whole."""


class AttemptRecord(Record, frozen=True):
    """One run of one task, from the first of the job to the last."""

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
    """One thing that happened; `seq` follows the order of commits, so a stream resumed after it skips nothing."""

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
    """Which jobs a list shows; an empty field filters nothing. Times are seconds since 1970."""

    phases: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    search: str = ""
    """A part of the name or the beginning of the id."""
    tag: str = ""
    job_type: str = ""
    created_after: float | None = None
    created_before: float | None = None
    labels: tuple[tuple[str, str], ...] = ()
    """Names and values; a job has all of them."""
    arrays: bool = False
    """Whether an array is one line, in the place of the first of its jobs that pass the filter."""
    order: str = "newest"
    """One of `JOB_ORDERS`."""


JOB_ORDERS: Final = ("newest", "oldest", "name", "priority", "ended")
"""The orders of a job list (`ended` shows only those that have ended).

Ties are broken by id, so paging shows every job exactly once."""


def exit_view(completion: Any) -> ExitView | None:
    """The API's form of a `Completion`; None for one that has not come."""
    if completion is None:
        return None
    said = sentence(completion.diagnostics)
    return ExitView(completion.code, completion.phrase, str(completion.exit_class), said)


def plain(data: Mapping[str, object] | None) -> dict[str, Any]:
    """A JSON-ready copy of an event's data."""
    built: dict[str, Any] = msgspec.to_builtins(dict(data or {}))
    return built
