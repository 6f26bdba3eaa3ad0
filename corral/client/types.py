"""Types of the client's answers, which are plain dictionaries in the shapes of `corral.model`, for a quick start."""

from __future__ import annotations

from typing import Any, Generic, NotRequired, TypedDict, TypeVar

Item = TypeVar("Item")
Record = dict[str, Any]
"""An answer whose fields are described in the API's reference."""


class Page(TypedDict, Generic[Item]):
    """Items of a longer list; `next` is the `after` of the next page."""

    items: list[Item]
    next: str | None


class TaskCounts(TypedDict):
    """The number of tasks in each state."""

    total: int
    waiting: int
    running: int
    succeeded: int
    failed: int


Exit = TypedDict("Exit", {"code": int, "phrase": str, "class": str, "message": str})
"""The result of an attempt."""


class Waiting(TypedDict):
    """The reason that a job waits."""

    code: str
    message: str
    ahead: int


class Job(TypedDict):
    """A job; the fields after the blank line are only in the answer for a single job."""

    id: str
    name: str
    user: str
    queue: str
    priority: int
    jobType: str
    state: str
    createdAt: str
    startedAt: str | None
    endedAt: str | None
    tasks: TaskCounts
    devices: int
    retries: int
    taskRetries: NotRequired[int]
    exit: Exit | None
    waiting: Waiting | None
    tags: list[str]
    devicesHeld: NotRequired[float]

    document: NotRequired[Record]
    attempt: NotRequired[int]
    roles: NotRequired[list[Record]]
    placement: NotRequired[list[Record]]
    reasons: NotRequired[Record | None]
    links: NotRequired[dict[str, str]]
    retriesLeft: NotRequired[int | None]
    dependsOn: NotRequired[list[str]]
    notes: NotRequired[list[str]]
    suspended: NotRequired[bool]
    checkpointedAt: NotRequired[str | None]
    waitedSeconds: NotRequired[float]
    waitingSince: NotRequired[str | None]
    receipts: NotRequired[list[Record]]


class Event(TypedDict):
    """One event."""

    seq: int
    job: str
    at: str
    kind: str
    actor: str
    message: str
    role: str
    index: int
    attempt: str
    data: Record
