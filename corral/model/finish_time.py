"""Finish-time fairness: how much longer jobs took than on an equal share of the machines that is theirs alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple


class Stay(NamedTuple):
    """One job in the system. Times are in seconds since one moment."""

    submitted: float
    ended: float
    """When it ended; for one that is still there, now."""
    seconds: float
    """For how long it needs all its devices; 0 of a job that has no ratio, and only keeps others waiting."""
    devices: float


def finish_time_ratios(stays: Sequence[Stay], devices: float) -> list[float | None]:
    """Return rho of each job: its completion time over that on an exclusive 1/n of the devices.

    Themis (Mahajan et al., NSDI 2020) defines the ratio; n is the mean number of jobs in the system while the job is in
    it. A job of d devices that gets less than d by its share takes turns on it, as in Gavel (Narayanan et al., OSDI
    2020): it takes `seconds` x max(1, n d / devices). `devices` must be above 0. O(jobs log jobs).
    """
    present = _job_seconds(stays)
    ratios: list[float | None] = []
    for stay in stays:
        took = stay.ended - stay.submitted
        if stay.seconds <= 0 or took <= 0:
            ratios.append(None)
            continue
        jobs = (present[stay.ended] - present[stay.submitted]) / took
        ratios.append(took / (stay.seconds * max(1.0, jobs * stay.devices / devices)))
    return ratios


def _job_seconds(stays: Sequence[Stay]) -> dict[float, float]:
    """Return, for each time at which a job comes or goes, the seconds until then that jobs were in the system."""
    changes = sorted([*((stay.submitted, 1) for stay in stays), *((stay.ended, -1) for stay in stays)])
    found, total, count, before = {}, 0.0, 0, 0.0
    for at, group in groupby(changes, key=lambda change: change[0]):
        total += count * (at - before)
        found[at] = total
        count += sum(change for _, change in group)
        before = at
    return found
