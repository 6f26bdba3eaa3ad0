"""Map a proposed change of a waiting job to the field of its job file that expresses it, if any.

The scheduler knows requests only. A field may stand in a role or at the top of the file, and no file can express some
requests. So the change is made in the job's short form; the result must give exactly the request that was tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import structs

from corral.model.request_builder import NO_PORTS, gang_terms
from corral.model.requests import GangRequest
from corral.model.start_estimates import Change, Written
from corral.spec.errors import SpecError
from corral.spec.job import UnifiedJob
from corral.spec.job_reader import load_job
from corral.spec.short_form_writer import short_form

_ABBREVIATED: Final = {
    "devices": "count", "topology": "required", "nodes": "include", "network": "rdma", "spread": "level",
    "antiAffinity": "tags",
}  # fmt: skip
"""By field with a short form, the subfield that the short form sets."""
_FREE_KEYS: Final = ("nodeSelector", "other")
"""The rest of a path below these is one key, even if it contains dots."""
_UNSEEN: Final = ("parameters", "env", "secrets", "labels", "annotations")
"""Fields that the scheduler does not see."""


def as_said(
    job: UnifiedJob, asked: GangRequest, change: Change, wanted: GangRequest, ports: Mapping[str, int] = NO_PORTS
) -> Change | None:
    """The change with the path at which the job's file has the field; None if no single field of a file expresses it.

    `asked` is the job's present request, `wanted` the changed one, `ports` the framework's ports by role. A change of a
    queue's document is returned as it is. So is one of a job whose file does not give `asked`, for example a scaled
    job.
    """
    if change.path.startswith("Queue/"):
        return change
    file = _file(job)
    if _request(file, asked, ports) != _plain(asked, asked):
        return change
    for path in _places(change.path, file):
        if _request(changed(file, path, change.after), asked, ports) == _plain(wanted, asked):
            return structs.replace(change, path=path)
    return None


def changed(file: Mapping[str, Any], path: str, after: Written) -> dict[str, Any]:
    """A job file in its short form with the field at `path` set, or left out if `after` is ""."""
    return _set(file, steps(path), after)


def _set(file: Mapping[str, Any], path: Sequence[str], after: Written) -> dict[str, Any]:
    document, (first, *rest) = dict(file), path
    value: Any = _set(_whole(first, document.get(first, {})), rest, after) if rest else after
    if value in ("", {}):
        document.pop(first, None)
    else:
        document[first] = value
    return document


def steps(path: str) -> list[str]:
    """Split a path into its keys, from the top of the file."""
    found = path.split(".")
    for at, name in enumerate(found):
        if name in _FREE_KEYS and at + 1 < len(found):
            return [*found[: at + 1], ".".join(found[at + 1 :])]
    return found


def _whole(field: str, value: Any) -> dict[str, Any]:
    """Expand a short-form value to the mapping that it stands for."""
    if isinstance(value, dict):
        return value
    if field == "sharing":
        return {"exclusive": True}
    return {_ABBREVIATED[field]: value} if field in _ABBREVIATED else {}


def _file(job: UnifiedJob) -> dict[str, Any]:
    """The job's short form without fields unknown to the scheduler; labels common to all roles move to the top."""
    file = {key: value for key, value in short_form(job).items() if key not in _UNSEEN}
    roles = {
        name: {key: value for key, value in role.items() if key not in _UNSEEN} | {"command": "true"}
        for name, role in file["roles"].items()
    }
    labels = [role.get("nodeSelector", {}) for role in roles.values()]
    common = dict(item for item in labels[0].items() if all(item in each.items() for each in labels))
    for role in roles.values():
        if own := {key: value for key, value in role.pop("nodeSelector", {}).items() if key not in common}:
            role["nodeSelector"] = own
    return file | {"roles": roles} | ({"nodeSelector": common} if common else {})


def _places(path: str, file: Mapping[str, Any]) -> Iterator[str]:
    """Candidate fields for a path: itself, at the top instead of in a role, and in the only role that has it."""
    yield path
    first, *rest = path.split(".", 2)
    if first == "roles":
        yield rest[1]
        return
    having = [name for name, role in file["roles"].items() if first in role]
    if len(having) == 1:
        yield f"roles.{having[0]}.{path}"


def _request(file: Mapping[str, Any], asked: GangRequest, ports: Mapping[str, int]) -> GangRequest | None:
    """The request of a job with this file in place of `asked`; None if the file is not valid."""
    try:
        terms = gang_terms(load_job(file), ports)
    except SpecError:
        return None
    made = terms.request(
        asked.job,
        asked.job_attempt,
        asked.tasks,
        user=asked.user,
        created_at=asked.submitted_at,
        groups=asked.groups,
        turn=asked.turn,
    )
    return _plain(made, asked)


def _plain(request: GangRequest, asked: GangRequest) -> GangRequest:
    """Clear derived fields of a request: task indexes become those of `asked`, HiveD's groups ""."""
    numbers = {role.role: role.indexes for role in asked.roles}
    roles = tuple(structs.replace(role, indexes=numbers[role.role], affinity="") for role in request.roles)
    return structs.replace(request, roles=roles, beside=(), deadline=0.0)
