"""What the jobs of one plan ask of the models of device, read from their requests and their history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import Final, NamedTuple

from corral.kernel.ids import JobId
from corral.model.requests import GangRequest
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.device_layout import indexes
from corral.scheduler.policy.allot import ElasticGang
from corral.scheduler.policy.history import JobHistory

UNKNOWN_SECONDS: Final = 3600.0
"""The least time that a job without an estimate is taken to need: an hour, as under `finish-time-fairness`."""
MOST_SECONDS: Final = 10 * 365 * 86_400.0
"""The most work that a job is taken to have left: ten years. Programs report any fraction as their progress."""
LEAST_SPEED: Final = 1e-6
"""The lowest speed on a model where a job can run, over its fastest one. Files and programs name any speeds."""


class Demand(NamedTuple):
    """One job. Work is in seconds of its fastest model; speeds, seconds and models are by position of the model."""

    job: JobId
    tasks: int
    """The tasks that it runs with: its fewest."""
    devices: int
    speeds: tuple[float, ...]
    """From `LEAST_SPEED` to 1 (its fastest model); 0 where it cannot run."""
    weight: float
    submitted: float
    """When it was submitted, in seconds since 1970."""
    age: float
    """Seconds since then."""
    received: tuple[float, ...]
    """Seconds that it held devices of each model."""
    done: float
    left: float
    """The estimate of its work that is not done, from 1 to `MOST_SECONDS`."""
    on: int = -1
    """The position of the model on which it runs; -1: it waits, or runs on several models."""
    stays: bool = False
    """Whether it keeps its devices, whatever is chosen."""


def capacity(cluster: Cluster) -> dict[str, int]:
    """Return the healthy whole devices of each model, by model in alphabetical order; O(nodes)."""
    found: Counter[str] = Counter()
    for index in cluster.engines.values():
        nodes = index.tree.nodes
        alike = Counter(zip(index.tree.alike, index.offered, strict=True))
        first = dict(zip(reversed(index.tree.alike), reversed(nodes), strict=True))
        for (number, offered), count in alike.items():
            for device in first[number].devices:
                if device.parent < 0 and offered >> device.index & 1:
                    found[device.model] += count
    return dict(sorted(found.items()))


def held_by_others(cluster: Cluster, known: Mapping[JobId, object]) -> Counter[str]:
    """Return the devices by model that gangs hold which are not among the `known` ones, and stay."""
    found: Counter[str] = Counter()
    for job, gang in cluster.gangs.by_job.items():
        if job in known or not gang.stays:
            continue
        for task, hold in cluster.holds(job).items():
            if task not in gang.leaving:
                models = cluster.device_models(hold.node)
                found.update(models[at] for at in indexes(hold.devices) if at in models)
    return found


class Asking(NamedTuple):
    """A gang that has a demand, as far as time does not change it."""

    request: GangRequest
    tasks: int
    devices: int
    speeds: tuple[float, ...]
    on: int
    accrues: int
    """The position of the model that it has used since `since`; -1: time is counted for no model."""
    since: float | None
    """When what it holds last changed, in seconds since 1970; None: it holds nothing."""
    leased_until: float
    """Until when it keeps its devices, in seconds since 1970; infinite: as long as it runs; below 0: it waits."""


def asking(
    cluster: Cluster, gangs: Iterable[ElasticGang], models: Mapping[str, int], lease_seconds: float
) -> list[Asking]:
    """Return the gangs that ask for whole devices of one kind of role, by submission.

    Running gangs stay where they are for a lease after their last start, and if they must not be preempted.
    """
    positions, counts = {name: at for at, name in enumerate(models)}, tuple(models.items())
    found = []
    for gang in gangs:
        request = gang.request
        asked, devices = _asked(request), gang.least_devices
        if asked is None or not devices:
            continue
        model, since, reported = cluster.history.held(request.job)
        said = request.speeds or tuple(reported.items())
        speeds = relative_speeds(said, asked, counts, devices)
        if not any(speeds):
            continue
        leased_until = -inf
        if gang.held:
            running = cluster.gangs.by_job.get(request.job)
            fixed = running is not None and (running.guaranteed or not running.preemptible)
            leased_until = inf if fixed else -inf if since is None else since + lease_seconds
        on = positions.get(model if gang.held else "", -1)
        accrues = positions.get(model, -1) if model else -1
        found.append(Asking(request, gang.least, devices, speeds, on, accrues, since, leased_until))
    found.sort(key=lambda each: (each.request.submitted_at, each.request.job))
    return found


def demands(
    cluster: Cluster, gangs: Iterable[ElasticGang], models: Mapping[str, int], lease_seconds: float, now: float
) -> list[Demand]:
    """Return the demands of gangs at `now` (seconds since 1970), as `asking` selects and orders them."""
    return demands_at(cluster, asking(cluster, gangs, models, lease_seconds), models, now)


def demands_at(
    cluster: Cluster, found: Iterable[Asking], models: Mapping[str, int], now: float, *, with_work: bool = True
) -> list[Demand]:
    """Return the demands of these gangs at `now` (seconds since 1970); without their work `done` and `left` are 0."""
    return [_demand(cluster, each, list(models), now, with_work=with_work) for each in found]


def _demand(cluster: Cluster, asking: Asking, names: Sequence[str], now: float, *, with_work: bool) -> Demand:
    request = asking.request
    known = cluster.history.of(request.job, now)
    done = left = 0.0
    if with_work:
        done, left = work(request, known, dict(zip(names, asking.speeds, strict=True)))
    return Demand(
        job=request.job,
        tasks=asking.tasks,
        devices=asking.devices,
        speeds=asking.speeds,
        weight=1.0,
        submitted=request.submitted_at,
        age=max(0.0, now - request.submitted_at),
        received=tuple([known.model_seconds.get(name, 0.0) for name in names]),
        done=done,
        left=left,
        on=asking.on,
        stays=now < asking.leased_until,
    )


Amounts = tuple[tuple[str, float], ...]
"""Amounts by model."""


@lru_cache(1024)
def relative_speeds(said: Amounts, model: str, counts: Amounts, devices: int) -> tuple[float, ...]:
    """Return how fast a job works on each model, over its fastest one, where each model has so many devices.

    `said` is what its job file says, else what it reported on the models where it ran. A model of which nothing is known
    counts as the fastest, so that a job without a profile is as fast everywhere. It is 0 where the job cannot run: by its
    file, on another model than the one it asks for, and where there are too few devices.
    """
    known = dict(said)
    fitting = [name for name, count in counts if count >= devices and model in ("", name)]
    fastest = max((known.get(name, 0.0) for name in fitting), default=0.0) or 1.0
    speeds = [known.get(name, fastest) if name in fitting else 0.0 for name, _ in counts]
    return tuple(max(LEAST_SPEED, speed / fastest) if speed > 0 else 0.0 for speed in speeds)


def work(request: GangRequest, known: JobHistory, speeds: Mapping[str, float]) -> tuple[float, float]:
    """Return the work that is done, and an estimate of what is left, in seconds of the fastest model.

    The estimate is from reported progress, else from `maxDuration`, which is for the slowest model on which the job can
    run. A job that gives neither needs as much again as it has done, and at least an hour in all.
    """
    done = sum(speeds.get(model, 1.0) * seconds for model, seconds in known.model_seconds.items())
    done += max(0.0, known.service_seconds - sum(known.model_seconds.values()))
    if known.progress:
        left = done * (1 - known.progress) / known.progress
    elif request.max_duration_seconds:
        left = request.max_duration_seconds * min(speed for speed in speeds.values() if speed > 0) - done
    else:
        left = max(UNKNOWN_SECONDS - done, done)
    return done, min(MOST_SECONDS, max(1.0, left))


def _asked(request: GangRequest) -> str | None:
    """Return the model that all roles with devices ask for ("" is any); None if they differ, or share devices."""
    roles = [role.devices for role in request.roles if role.devices.count or role.devices.ids]
    if any(each.share is not None or each.ids for each in roles):
        return None
    found = {each.model for each in roles}
    return found.pop() if len(found) == 1 else None


def as_columns(found: Sequence[Demand]) -> tuple[list[tuple[float, ...]], list[int]]:
    """Return the speeds and the devices of demands."""
    return [each.speeds for each in found], [each.devices for each in found]
