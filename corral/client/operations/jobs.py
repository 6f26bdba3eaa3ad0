"""Why: what can be asked about jobs is the same whoever asks, so it stands apart from how it is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from corral.client.calls import Call, call, job_path, written

if TYPE_CHECKING:
    from corral.client.types import Event, Job, Page, Record

ENDED = frozenset({"succeeded", "failed", "stopped"})
"""The states of a job that is over."""


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
) -> Call[Job]:
    """Submit a job file (YAML or JSON, short or canonical); a dry run answers what would happen instead,
    or raises what refuses it.

    `source`: the job of yours whose file it is; placeholders in it are filled in with that job's secrets.
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


def validate(text: str | bytes, *, parameters: Mapping[str, str] | None = None, source: str = "") -> Call[Record]:
    """Everything that is wrong with a job file, or its canonical form; `source` as in `submit`."""
    return written(call("POST", "/validate", {"set": _pairs(parameters), "from": source}), text)


def jobs(
    *,
    state: Sequence[str] = (),
    user: Sequence[str] = (),
    queue: Sequence[str] = (),
    q: str = "",
    tag: str = "",
    job_type: str = "",
    label: Sequence[str] = (),
    arrays: bool = False,
    order: str = "",
    limit: int = 50,
    after: str = "",
) -> Call[Page[Job]]:
    """A page of jobs, newest first; `arrays`: one line for each array."""
    query = {"state": list(state), "user": list(user), "queue": list(queue), "q": q, "tag": tag, "type": job_type}
    return call(
        "GET",
        "/jobs",
        {**query, "label": list(label), "arrays": arrays, "order": order, "limit": limit, "after": after},
    )


def history(*, user: str = "", limit: int = 50, after: str = "") -> Call[Page[Job]]:
    """A page of the lines that removed jobs have left, the latest job first."""
    return call("GET", "/history", {"user": user, "limit": limit, "after": after})


def job(ref: str) -> Call[Job]:
    """One job, by id, name, or USER~NAME."""
    return call("GET", job_path(ref))


def document(ref: str) -> Call[Record]:
    """A job's canonical document."""
    return call("GET", job_path(ref, "document"))


def job_file(ref: str) -> Call[Record]:
    """The file that a job was submitted as: its `text`, with `******` for secrets, and the `parameters` beside it."""
    return call("GET", job_path(ref, "file"))


def tasks(ref: str, *, role: str = "", state: str = "", limit: int = 100, after: str = "") -> Call[Page[Record]]:
    """A page of a job's tasks."""
    return call("GET", job_path(ref, "tasks"), {"role": role, "state": state, "limit": limit, "after": after})


def attempts(ref: str, role: str, index: int, *, limit: int = 100, after: str = "") -> Call[Page[Record]]:
    """A page of the runs of one task."""
    return call("GET", job_path(ref, "tasks", role, index, "attempts"), {"limit": limit, "after": after})


def server_events(*, limit: int = 100, after: str = "") -> Call[Page[Event]]:
    """One page of what happened to the server itself, the latest first."""
    return call("GET", "/server/events", {"limit": limit, "after": after})


def job_events(ref: str, *, limit: int = 200, after: str = "") -> Call[Page[Event]]:
    """A page of what happened to a job."""
    return call("GET", job_path(ref, "events"), {"limit": limit, "after": after})


def placement(ref: str, *, limit: int = 500, after: str = "") -> Call[Page[Record]]:
    """A page of where a job's tasks run."""
    return call("GET", job_path(ref, "placement"), {"limit": limit, "after": after})


def explain(ref: str) -> Call[Record]:
    """Why a job stands where it stands."""
    return call("GET", job_path(ref, "explain"))


def stop(ref: str) -> Call[Job]:
    """End a job."""
    return call("POST", job_path(ref, "stop"))


def restart(ref: str) -> Call[Job]:
    """Begin a job anew."""
    return call("POST", job_path(ref, "restart"))


def suspend(ref: str) -> Call[Job]:
    """End a job with its checkpoint signal, and hold it until it is resumed."""
    return call("POST", job_path(ref, "suspend"))


def resume(ref: str) -> Call[Job]:
    """Let a suspended job go on."""
    return call("POST", job_path(ref, "resume"))


def receipts(
    ref: str = "", *, queue: str = "", since: str = "", limit: int = 100, after: str = ""
) -> Call[Page[Record]]:
    """A page of the receipts for what had to yield: of one job, of a queue, or of all, the latest first."""
    if ref:
        return call("GET", job_path(ref, "receipts"), {"limit": limit, "after": after})
    return call("GET", "/receipts", {"queue": queue, "since": since, "limit": limit, "after": after})


def scale(ref: str, replicas: int, *, role: str = "") -> Call[Job]:
    """Set how many replicas an elastic job asks for."""
    return call("POST", job_path(ref, "scale"), data={"replicas": replicas, "role": role})


def edit(
    ref: str,
    *,
    priority: str | int | None = None,
    max_duration: str | int | None = None,
    queue: str | None = None,
    wait_for_capacity: bool = False,
    dry_run: bool = False,
) -> Call[Record]:
    """Change a waiting job's priority, longest duration (`2h`, or seconds) or queue; it keeps its time of submission."""
    given = {"priority": priority, "maxDuration": max_duration, "queue": queue}
    data = {name: value for name, value in given.items() if value is not None}
    query = {"waitForCapacity": wait_for_capacity, "dryRun": dry_run}
    return call("PATCH", job_path(ref), query, data=data)


def delete(ref: str, *, stop: bool = False) -> Call[None]:
    """Remove an ended job; with `stop` a running one is stopped first."""
    return call("DELETE", job_path(ref), {"stop": stop})


def _pairs(parameters: Mapping[str, str] | None) -> list[str]:
    return [f"{name}={value}" for name, value in (parameters or {}).items()]
