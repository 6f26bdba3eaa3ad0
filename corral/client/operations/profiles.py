"""Calls for profiles of running jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from corral.client.calls import Call, call, job_path

if TYPE_CHECKING:
    from corral.client.schema import ProfileComparison, ProfileList, ProfileReport, ProfileView


def take_profile(job: str, *, what: str = "python", seconds: int = 0, tasks: Sequence[str] = ()) -> Call[ProfileView]:
    """Begin to take a profile of tasks of a running job, or of all.

    `what` is `python`, `stacks`, `torch`, `jax`, `tensorflow`, `memory` or `system`.
    """
    return call("POST", job_path(job, "profiles"), data={"what": what, "seconds": seconds, "tasks": list(tasks)})


def profiles(job: str = "") -> Call[ProfileList]:
    """Return the profiles that are kept of a job, or of all the caller's jobs, newest first."""
    return call("GET", "/profiles", {"job": job})


def profile(profile: str) -> Call[ProfileView]:
    """Return what is known of a profile, also while it is being taken."""
    return call("GET", _path(profile))


def profile_report(profile: str) -> Call[ProfileReport]:
    """Return what a profile shows: stacks, functions and flame graph, or times, timelines and advice."""
    return call("GET", f"{_path(profile)}/report")


def profile_file(profile: str, name: str) -> Call[bytes]:
    """Download a file of a profile: the flame graph as SVG, folded stacks, or the Chrome trace of one process."""
    return call("GET", f"{_path(profile)}/files/{quote(name, safe='')}")


def compare_profiles(before: str, after: str) -> Call[ProfileComparison]:
    """Compare two profiles of one kind, by the shares of the time."""
    return call("GET", f"{_path(after)}/comparison", {"before": before})


def remove_profile(profile: str) -> Call[None]:
    """Remove a profile and its files."""
    return call("DELETE", _path(profile))


def _path(profile: str) -> str:
    return f"/profiles/{quote(profile, safe='')}"
