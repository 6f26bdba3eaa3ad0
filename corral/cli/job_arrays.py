"""Resolve the name of a job array to its jobs, which are named NAME-0, NAME-1 and so on."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from corral.cli.paging import items
from corral.kernel.errors import Conflict, NotFound
from corral.kernel.units import counted

if TYPE_CHECKING:
    from corral.client.schema import JobDetail, JobSummary
    from corral.client.sync import Client

_TAG: Final = "array:"
_ENDED: Final = ("succeeded", "failed", "stopped")
_NAMED: Final = 3
"""Jobs of an array that the error message lists when a command needs a single job."""
_LOOKED_AT: Final = 1000
"""Jobs with a matching name that are searched for an array."""


def members(client: Client, ref: str) -> list[JobSummary]:
    """Return the jobs of the latest array named `ref` (NAME or USER~NAME), by index; own arrays come first.

    Empty if there is no such array.
    """
    user, tilde, name = ref.rpartition("~")
    member = re.compile(rf"{re.escape(name)}-[0-9]+")
    own = user if tilde else client.me()["user"]
    for users in ([own],) if tilde else ([own], []):
        for job in items(client.jobs, _LOOKED_AT, q=f"{name}-", user=users):
            tag = next((tag for tag in job["tags"] if tag.startswith(_TAG)), "")
            if tag and member.fullmatch(job["name"]):
                found = items(client.jobs, tag=tag)
                return sorted(found, key=lambda each: int(each["name"].rpartition("-")[2]))
    return []


def job_or_array(client: Client, ref: str) -> JobDetail | list[JobSummary]:
    """Return the job named `ref`, or else all jobs of the array of that name.

    Raises NotFound.
    """
    try:
        return client.job(ref)
    except NotFound as error:
        found = members(client, ref) if error.code == "job-not-found" else []
        if not found:
            raise
        return found


@contextlib.contextmanager
def one_job(client: Client, ref: str) -> Iterator[None]:
    """In the block, replace the NotFound of an array's name by one that lists jobs of the array.

    Raises NotFound.
    """
    try:
        yield
    except NotFound as error:
        found = members(client, ref) if error.code == "job-not-found" else []
        if not found:
            raise
        names = ", ".join(job["name"] for job in found[:_NAMED]) + (", …" if len(found) > _NAMED else "")
        message = f"{ref} is an array of {counted(len(found), 'job')}; name one of them: {names}."
        raise NotFound("job-is-array", message) from None


def each_job(client: Client, refs: Sequence[str], *, live: bool | None = None) -> Sequence[str]:
    """Return the jobs named by `refs`, each once; an array gives its jobs, limited to live (or, if False, ended) ones.

    All names are resolved before the caller changes any job: a name that is not there changes none.

    Raises NotFound, and Conflict for an array without such a job.
    """
    jobs: dict[str, str] = {}
    for ref in refs:
        found = job_or_array(client, ref)
        if isinstance(found, list):
            wanted = [job["id"] for job in found if live is None or (job["state"] not in _ENDED) is live]
            if not wanted and live:
                raise Conflict("job-over", f"All jobs of {ref} are over already ({counted_states(found)}).")
            if not wanted:
                message = f"No job of {ref} is over ({counted_states(found)}); stop them first, or use --stop."
                raise Conflict("job-live", message)
            for job in wanted:
                jobs.setdefault(job, job)
        else:
            jobs.setdefault(found["id"], ref)
    return list(jobs.values())


def counted_states(jobs: Sequence[JobSummary]) -> str:
    """Return the number of jobs per state: `3 running, 97 waiting`."""
    states = [job["state"] for job in jobs]
    return ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
