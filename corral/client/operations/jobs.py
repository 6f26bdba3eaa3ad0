"""Calls for jobs: submit, list, inspect, change and stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from corral.client.calls import Call, call, job_path, written

if TYPE_CHECKING:
    from corral.client.schema import (
        AttemptRecord,
        EditView,
        EventRecord,
        Explanation,
        HangList,
        JobDetail,
        JobFile,
        JobSummary,
        PlacementRecord,
        PreflightReport,
        RankScores,
        ReceiptView,
        SavedFilter,
        TaskRecord,
        Validation,
    )
    from corral.client.types import Page, Record

ENDED = frozenset({"succeeded", "failed", "stopped"})
"""The states of a job that has ended."""


def submit(
    text: str | bytes,
    *,
    parameters: Mapping[str, str] | None = None,
    idempotency_key: str = "",
    wait_for_capacity: bool = False,
    dry_run: bool = False,
    no_image: bool = False,
    code: str = "",
    source: str = "",
) -> Call[JobDetail]:
    """Submit a job file (YAML or JSON, short or canonical).

    A dry run returns what would happen instead, or raises the refusal. `source` is your job that the file came from;
    the placeholders in the file are filled in with that job's secrets.
    """
    query = {
        "set": _pairs(parameters),
        "waitForCapacity": wait_for_capacity,
        "dryRun": dry_run,
        "noImage": no_image,
        "code": code,
        "from": source,
    }
    return written(call("POST", "/jobs", query, idempotency_key=idempotency_key), text)


def validate(text: str | bytes, *, parameters: Mapping[str, str] | None = None, source: str = "") -> Call[Validation]:
    """Return all problems of a job file, or its canonical form; `source` as in `submit`."""
    return written(call("POST", "/validate", {"set": _pairs(parameters), "from": source}), text)


def jobs(
    *,
    state: str | Sequence[str] = (),
    user: str | Sequence[str] = (),
    queue: str | Sequence[str] = (),
    q: str = "",
    tag: str = "",
    job_type: str = "",
    label: str | Sequence[str] = (),
    arrays: bool = False,
    min_priority: int | None = None,
    max_priority: int | None = None,
    created_after: str = "",
    created_before: str = "",
    order: str = "",
    limit: int = 50,
    after: str = "",
) -> Call[Page[JobSummary]]:
    """Return a page of jobs, newest first; with `arrays`, one entry per array.

    Of several states, users or queues a job has one of them, of several labels (`NAME=VALUE`) all. Times are RFC 3339,
    or days in UTC.
    """
    words = {"state": state, "user": user, "queue": queue, "label": label}
    query = {name: [given] if given and isinstance(given, str) else list(given) for name, given in words.items()}
    return call(
        "GET",
        "/jobs",
        {
            **query,
            "q": q,
            "tag": tag,
            "type": job_type,
            "arrays": arrays,
            "minPriority": min_priority,
            "maxPriority": max_priority,
            "createdAfter": created_after,
            "createdBefore": created_before,
            "order": order,
            "limit": limit,
            "after": after,
        },
    )


def history(*, user: str = "", limit: int = 50, after: str = "") -> Call[Page[JobSummary]]:
    """Return a page of the summaries of removed jobs, newest job first."""
    return call("GET", "/history", {"user": user, "limit": limit, "after": after})


def job(ref: str) -> Call[JobDetail]:
    """Return one job, by id, name, or USER~NAME."""
    return call("GET", job_path(ref))


def document(ref: str) -> Call[Record]:
    """Return a job's canonical document."""
    return call("GET", job_path(ref, "document"))


def job_file(ref: str) -> Call[JobFile]:
    """Return the file that a job was submitted as: `text`, with `******` for secrets, and its `parameters`."""
    return call("GET", job_path(ref, "file"))


def tasks(ref: str, *, role: str = "", state: str = "", limit: int = 100, after: str = "") -> Call[Page[TaskRecord]]:
    """Return a page of a job's tasks."""
    return call("GET", job_path(ref, "tasks"), {"role": role, "state": state, "limit": limit, "after": after})


def attempts(ref: str, role: str, index: int, *, limit: int = 100, after: str = "") -> Call[Page[AttemptRecord]]:
    """Return a page of the attempts of one task."""
    return call("GET", job_path(ref, "tasks", role, index, "attempts"), {"limit": limit, "after": after})


def server_events(*, limit: int = 100, after: str = "") -> Call[Page[EventRecord]]:
    """Return a page of events of the server itself, newest first."""
    return call("GET", "/server/events", {"limit": limit, "after": after})


def job_events(ref: str, *, limit: int = 200, after: str = "") -> Call[Page[EventRecord]]:
    """Return a page of a job's events."""
    return call("GET", job_path(ref, "events"), {"limit": limit, "after": after})


def placement(ref: str, *, limit: int = 500, after: str = "") -> Call[Page[PlacementRecord]]:
    """Return a page of the placement of a job's tasks."""
    return call("GET", job_path(ref, "placement"), {"limit": limit, "after": after})


def explain(ref: str) -> Call[Explanation]:
    """Explain why a job is in its state."""
    return call("GET", job_path(ref, "explain"))


def stop(ref: str) -> Call[JobDetail]:
    """Stop a job."""
    return call("POST", job_path(ref, "stop"))


def restart(ref: str) -> Call[JobDetail]:
    """Restart a job."""
    return call("POST", job_path(ref, "restart"))


def suspend(ref: str) -> Call[JobDetail]:
    """Suspend a job: end it with its checkpoint signal, and hold it until it is resumed."""
    return call("POST", job_path(ref, "suspend"))


def resume(ref: str, *, queue: str = "") -> Call[JobDetail]:
    """Resume a suspended job, in `queue` if it is named."""
    return call("POST", job_path(ref, "resume"), data={"queue": queue} if queue else None)


def job_preflight(job: str) -> Call[PreflightReport]:
    """Return what the tasks of a job checked before their commands began: their network, judged by the topology."""
    return call("GET", job_path(job, "preflight"))


def job_hangs(ref: str) -> Call[HangList]:
    """Return the times that a job showed no progress any more, the latest first."""
    return call("GET", job_path(ref, "hangs"))


def job_ranks(ref: str) -> Call[RankScores]:
    """Return how fast the tasks of a running job make steps now, beside each other, the slowest first."""
    return call("GET", job_path(ref, "ranks"))


def hang_bundle(ref: str, bundle: str) -> Call[bytes]:
    """Yield a bundle of what a job's tasks did when it hung (tar.gz), in pieces as they arrive."""
    return call("GET", job_path(ref, "hangs", bundle))


def receipts(
    ref: str = "", *, queue: str = "", since: str = "", limit: int = 100, after: str = ""
) -> Call[Page[ReceiptView]]:
    """Return a page of receipts for yielding, of one job, of a queue, or of all, newest first."""
    if ref:
        return call("GET", job_path(ref, "receipts"), {"limit": limit, "after": after})
    return call("GET", "/receipts", {"queue": queue, "since": since, "limit": limit, "after": after})


def scale(ref: str, replicas: int, *, role: str = "") -> Call[JobDetail]:
    """Set the number of replicas that an elastic job requests."""
    return call("POST", job_path(ref, "scale"), data={"replicas": replicas, "role": role})


def tag(ref: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> Call[JobDetail]:
    """Add and remove tags of a job, by which it is found."""
    return call("POST", job_path(ref, "tags"), data={"add": list(add), "remove": list(remove)})


def filters() -> Call[Page[SavedFilter]]:
    """Return the caller's saved filters of the list of jobs."""
    return call("GET", "/account/filters")


def save_filter(
    name: str,
    *,
    state: Sequence[str] = (),
    user: str = "",
    queue: str = "",
    q: str = "",
    tag: str = "",
    order: str = "",
    group: str = "",
) -> Call[SavedFilter]:
    """Save a filter of the list of jobs under a name, in the place of one of the same name."""
    words = {"user": user, "queue": queue, "q": q, "tag": tag, "order": order, "group": group}
    return call("POST", "/account/filters", data={"name": name, "state": list(state), **words})


def forget_filter(name: str) -> Call[None]:
    """Delete a saved filter."""
    return call("DELETE", f"/account/filters/{quote(name, safe='')}")


def edit(
    ref: str,
    *,
    priority: str | int | None = None,
    max_duration: str | int | None = None,
    queue: str | None = None,
    wait_for_capacity: bool = False,
    dry_run: bool = False,
) -> Call[EditView]:
    """Change a waiting job's priority, maximum duration (`2h`, or seconds) or queue; it keeps its submission time."""
    given = {"priority": priority, "maxDuration": max_duration, "queue": queue}
    data = {name: value for name, value in given.items() if value is not None}
    query = {"waitForCapacity": wait_for_capacity, "dryRun": dry_run}
    return call("PATCH", job_path(ref), query, data=data)


def delete(ref: str, *, stop: bool = False) -> Call[Record]:
    """Remove an ended job; with `stop`, a running job is stopped first."""
    return call("DELETE", job_path(ref), {"stop": stop})


def _pairs(parameters: Mapping[str, str] | None) -> list[str]:
    return [f"{name}={value}" for name, value in (parameters or {}).items()]
