"""Groups, storages and many accounts at once are asked for in the same words by both clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from corral.client.calls import Call, call, job_path

if TYPE_CHECKING:
    from corral.client.types import Page, Record


def groups() -> Call[Page[Record]]:
    """Every group for administrators; for others those that they are in."""
    return call("GET", "/groups")


def group(name: str) -> Call[Record]:
    """One group."""
    return call("GET", f"/groups/{quote(name)}")


def create_group(
    name: str,
    *,
    grant: Mapping[str, Sequence[str]] = {},
    description: str = "",
    max_priority: int | None = None,
) -> Call[Record]:
    """Make a group; `grant` has lists under `queues`, `manages` and `storages`."""
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
) -> Call[Record]:
    """Change what a group grants, who is in it and what is said of it; None leaves a field.

    With `max_priority` "" the group bounds no priority.
    """
    data: dict[str, Any] = {"grant": dict(grant), "revoke": dict(revoke), "add": list(add), "remove": list(remove)}
    data |= {"description": description, "externalName": external_name, "admin": admin, "maxPriority": max_priority}
    return call("POST", f"/groups/{quote(name)}", data=data)


def delete_group(name: str) -> Call[None]:
    """Delete a group."""
    return call("DELETE", f"/groups/{quote(name)}")


def order_job(ref: str, place: str, *, before: str = "") -> Call[Record]:
    """Put a waiting job elsewhere in its queue: `first`, `last`, `before` another one, or at its `own` place again."""
    return call("POST", job_path(ref, "order"), data={"place": place, "before": before})


def queue_limits(name: str) -> Call[Record]:
    """What managers of a queue let its members hold."""
    return call("GET", f"/queues/{quote(name)}/limits")


def limit_queue(
    name: str,
    *,
    limit: Mapping[str, str] = {},
    user_limit: Mapping[str, str] = {},
    group_limit: Mapping[str, str] = {},
    dry_run: bool = False,
) -> Call[Record]:
    """Set what the members of a queue may hold, below its own limits; what is not named has no such limit."""
    data = {"limit": dict(limit), "userLimit": dict(user_limit), "groupLimit": dict(group_limit)}
    return call("PUT", f"/queues/{quote(name)}/limits", {"dryRun": dry_run}, data=data)


def storages() -> Call[Page[Record]]:
    """The storages that one may use."""
    return call("GET", "/storages")


def storage_files(name: str, path: str = "", *, limit: int = 200, after: str = "") -> Call[Page[Record]]:
    """A page of what is in a folder of a storage."""
    return call("GET", f"/storages/{quote(name)}/files", {"path": path, "limit": limit, "after": after})


def storage_file(name: str, path: str) -> Call[bytes]:
    """The bytes of a file of a storage."""
    return call("GET", f"/storages/{quote(name)}/file", {"path": path})


def batch_users(text: str, *, dry_run: bool = False, links: bool = False) -> Call[Record]:
    """Make and change the accounts of a CSV file, all of them or none; with `dry_run` only say what each line would do."""
    asked: Call[Record] = call("POST", "/users-batch", {"dryRun": dry_run, "links": links})
    return asked._replace(body=text.encode(), headers={"content-type": "text/csv"})
