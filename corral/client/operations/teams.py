"""Calls for groups, queue managers, storages and batches of accounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from corral.client.calls import Call, call, job_path

if TYPE_CHECKING:
    from corral.client.schema import (
        Batch,
        FilePreview,
        FileView,
        GroupView,
        JobDetail,
        OutputView,
        QueueLimits,
        StorageView,
    )
    from corral.client.types import Page


def groups() -> Call[Page[GroupView]]:
    """Return all groups for administrators, and the caller's groups for others."""
    return call("GET", "/groups")


def group(name: str) -> Call[GroupView]:
    """Return one group."""
    return call("GET", f"/groups/{quote(name)}")


def create_group(
    name: str,
    *,
    grant: Mapping[str, Sequence[str]] = {},
    description: str = "",
    max_priority: int | None = None,
) -> Call[GroupView]:
    """Create a group; `grant` has lists under `queues`, `manages` and `storages`."""
    data = {"name": name, "description": description, "grant": dict(grant), "maxPriority": max_priority}
    return call("POST", "/groups", data=data)


def change_group(
    name: str,
    *,
    grant: Mapping[str, Sequence[str]] = {},
    revoke: Mapping[str, Sequence[str]] = {},
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
    description: str | None = None,
    external_name: str | None = None,
    admin: bool | None = None,
    max_priority: int | Literal[""] | None = None,
) -> Call[GroupView]:
    """Change a group's grants, members, description and other properties; None keeps a field.

    With `max_priority` "" the group bounds no priority.
    """
    data: dict[str, Any] = {"grant": dict(grant), "revoke": dict(revoke), "add": list(add), "remove": list(remove)}
    data |= {"description": description, "externalName": external_name, "admin": admin, "maxPriority": max_priority}
    return call("POST", f"/groups/{quote(name)}", data=data)


def delete_group(name: str) -> Call[None]:
    """Delete a group."""
    return call("DELETE", f"/groups/{quote(name)}")


def order_job(ref: str, place: str, *, before: str = "") -> Call[JobDetail]:
    """Move a waiting job within its queue: `first`, `last`, `before` another one, or back to its `own` place."""
    return call("POST", job_path(ref, "order"), data={"place": place, "before": before})


def queue_limits(name: str) -> Call[QueueLimits]:
    """Return the limits that a queue's managers set on its use."""
    return call("GET", f"/queues/{quote(name)}/limits")


def limit_queue(
    name: str,
    *,
    limit: Mapping[str, str] = {},
    user_limit: Mapping[str, str] = {},
    group_limit: Mapping[str, str] = {},
    dry_run: bool = False,
) -> Call[QueueLimits]:
    """Set the limits of a queue's use, below the queue's own; a resource that is not named has no such limit."""
    data = {"limit": dict(limit), "userLimit": dict(user_limit), "groupLimit": dict(group_limit)}
    return call("PUT", f"/queues/{quote(name)}/limits", {"dryRun": dry_run}, data=data)


def storages() -> Call[Page[StorageView]]:
    """Return the storages that the caller may use."""
    return call("GET", "/storages")


def storage_files(name: str, path: str = "", *, limit: int = 200, after: str = "") -> Call[Page[FileView]]:
    """Return a page of a storage's folder."""
    return call("GET", f"/storages/{quote(name)}/files", {"path": path, "limit": limit, "after": after})


def storage_file(name: str, path: str) -> Call[bytes]:
    """Yield the bytes of a file of a storage."""
    return call("GET", f"/storages/{quote(name)}/file", {"path": path})


def job_outputs(ref: str) -> Call[Page[OutputView]]:
    """Return where a job keeps results: the outputs of its document, and the storages that its tasks may write."""
    return call("GET", job_path(ref, "outputs"))


def output_files(ref: str, index: int, path: str = "", *, limit: int = 200, after: str = "") -> Call[Page[FileView]]:
    """Return a page of a folder of a job's output."""
    return call("GET", job_path(ref, "outputs", index, "files"), {"path": path, "limit": limit, "after": after})


def output_preview(ref: str, index: int, path: str) -> Call[FilePreview]:
    """Return the beginning of a file of a job's output, as text or as a table."""
    return call("GET", job_path(ref, "outputs", index, "preview"), {"path": path})


def output_file(ref: str, index: int, path: str) -> Call[bytes]:
    """Yield the bytes of a file of a job's output."""
    return call("GET", job_path(ref, "outputs", index, "file"), {"path": path})


def batch_users(text: str, *, dry_run: bool = False, links: bool = False) -> Call[Batch]:
    """Create and change the accounts of a CSV file, all or none; `dry_run` only reports the effect of each line."""
    asked: Call[Batch] = call("POST", "/users-batch", {"dryRun": dry_run, "links": links})
    return asked._replace(body=text.encode(), headers={"content-type": "text/csv"})
