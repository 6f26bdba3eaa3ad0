"""Limits on the tasks, code and logs of one account, and on a task's folder; and the default for compiled code."""

from __future__ import annotations

from typing import NamedTuple


class Allowance(NamedTuple):
    """The limits that apply to every account; 0 means no limit."""

    tasks: int = 0
    """Most tasks of an account, waiting and running."""
    code_bytes: int = 0
    """Most bytes of uploaded code kept for an account."""
    log_bytes: int = 0
    """Most bytes kept of each stream of a task's log; the newest are kept."""
    cache_bytes: int = 0
    """Most bytes of compiled code kept for an account; the least recently used bundles make room."""
    bundle_bytes: int = 1024**3
    """Most bytes of one bundle of compiled code."""
    compile_cache: str = "none"
    """What `compileCache` is for jobs that leave it to the server: none, job or user."""
    profile_bytes: int = 0
    """Most bytes of profiles kept of an account's jobs; the oldest make room."""
    profile_days: float = 30.0
    """Days after which a profile is removed."""
    folder_bytes: int = 0
    """Most bytes in the working folder of a task on this machine, or in everything that a pod writes to its node."""


UNBOUNDED = Allowance()
