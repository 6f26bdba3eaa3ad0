"""Calls for bundles of compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corral.client.calls import Call, call, job_path

if TYPE_CHECKING:
    from corral.client.schema import CacheList, JobCache


def job_cache(job: str) -> Call[JobCache]:
    """Return what the tasks of a job made of their cache of compiled code: hits, bytes, seconds."""
    return call("GET", job_path(job, "cache"))


def caches(*, everyone: bool = False) -> Call[CacheList]:
    """Return the bundles of compiled code that the caller published or shares; `everyone` is for administrators."""
    return call("GET", "/caches", {"everyone": everyone})


def remove_cache(cache: str) -> Call[None]:
    """Remove a bundle of compiled code by its id; tasks that start later compile anew."""
    return call("DELETE", f"/caches/{cache}")
