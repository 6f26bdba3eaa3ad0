"""An array is named as its file names it: its jobs are NAME-0, NAME-1 and so on, and commands take NAME for all of them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from corral.cli.pages import items
from corral.kernel.errors import Conflict, NotFound
from corral.kernel.units import counted

if TYPE_CHECKING:
    from corral.client.sync import Client
    from corral.client.types import Job

_TAG: Final = "array:"
_ENDED: Final = ("succeeded", "failed", "stopped")
_NAMED: Final = 3
"""Jobs of an array that are named where one of them is asked for."""
_LOOKED_AT: Final = 1000
"""Jobs with such a name that are looked through for an array's."""


def members(client: Client, ref: str) -> list[Job]:
    """The jobs of the latest array that `ref` (NAME or USER~NAME) names, one's own before others', in order of their index.

    Empty where there is no such array.
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


def job_or_array(client: Client, ref: str) -> Job | list[Job]:
    """The job that `ref` names, or else all jobs of the array of that name.

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
    """Have what is asked of the job `ref` name the jobs of an array, where `ref` is one.

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


def each_job(client: Client, refs: Sequence[str], *, live: bool | None = None) -> Iterable[str]:
    """The jobs that `refs` name, for an array each of its jobs; of arrays only the live or, if False, the ended ones.

    Raises NotFound, and Conflict for an array that has no such job.
    """
    for ref in refs:
        found = job_or_array(client, ref)
        if isinstance(found, list):
            wanted = [job["id"] for job in found if live is None or (job["state"] not in _ENDED) is live]
            if not wanted and live:
                raise Conflict("job-over", f"All jobs of {ref} are over already ({counted_states(found)}).")
            if not wanted:
                message = f"No job of {ref} is over ({counted_states(found)}); stop them first, or use --stop."
                raise Conflict("job-live", message)
            yield from wanted
        else:
            yield ref


def counted_states(jobs: Sequence[Job]) -> str:
    """How many of some jobs are in each state: `3 running, 97 waiting`."""
    states = [job["state"] for job in jobs]
    return ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
