"""Why: answers are plain dictionaries, so the client starts quickly; these types say what is in them (`corral.model`)."""

from __future__ import annotations

from typing import Any, Generic, NotRequired, TypedDict, TypeVar

Item = TypeVar("Item")
Record = dict[str, Any]
"""An answer whose fields are in the API's reference."""


class Page(TypedDict, Generic[Item]):
    """Some items of a longer list; `next` is what `after` takes to read on."""

    items: list[Item]
    next: str | None


class TaskCounts(TypedDict):
    """How many tasks stand where."""

    total: int
    waiting: int
    running: int
    succeeded: int
    failed: int


Exit = TypedDict("Exit", {"code": int, "phrase": str, "class": str, "message": str})
"""How an attempt ended."""


class Waiting(TypedDict):
    """Why a job waits."""

    code: str
    message: str
    ahead: int


class Job(TypedDict):
    """A job; the fields below the gap are only in the answer for a single job."""

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
    """One thing that happened."""

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
