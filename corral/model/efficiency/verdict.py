"""Judge what a job asked for by what it used: numbers, sentences, and the request that would have done."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from corral.kernel.units import DEVICE, format_duration
from corral.model.efficiency.figures import Figures, Mean
from corral.model.efficiency.records import EfficiencySum, JobEfficiency, RoleEfficiency, TaskAmounts
from corral.model.phases import ENDED, Phase
from corral.model.usage import GIB, Use

MARGIN: Final = 1.25
"""A request that would have done is the most that was used, times this."""
NOTHING_MEASURED: Final = (
    "Nothing was measured of this job: its tasks ended within seconds, ran too long ago, or where none is measured."
)
_LOW_PERCENT: Final = 30.0
"""Use of devices below which a sentence says so."""
_MIB_STEP: Final = 256
"""A proposed memory below a GiB is a multiple of this many MiB."""
_YOUNG_SECONDS: Final = 600.0
"""Seconds in which a job that runs may not have shown yet what it needs."""
_TIMES: Final = ((3600, 300), (86_400, 1800), (math.inf, 21_600))
"""A proposed time below the first number of seconds is a multiple of the second."""
_MIB: Final = 1024**2


class RoleHeld(NamedTuple):
    """What the attempts of one role held in a period, as the store has it."""

    role: str
    tasks: int
    use: Use
    device_millis: int
    """Of one task; of tasks with different requests the largest."""
    cpu_millis: int
    memory_bytes: int


class JobHeld(NamedTuple):
    """What the attempts of one job held in a period. Times are seconds since 1970."""

    job: str
    name: str
    user: str
    queue: str
    state: str
    begun: float
    """When its first attempt began, at the earliest the period."""
    ended: float
    """When its last attempt ended, at the latest the period."""
    longest_seconds: float
    max_duration_seconds: int
    roles: tuple[RoleHeld, ...]


def judge(held: JobHeld, figures: Mapping[str, Figures], missing: str = "") -> JobEfficiency:
    """Say what a job asked for and used. `missing` says why there are no figures at all, if that is known."""
    young = held.state not in ENDED and held.longest_seconds < _YOUNG_SECONDS
    roles = sorted(
        (_role(each, figures.get(each.role, Figures()), young) for each in held.roles),
        key=lambda each: (each.used_device_seconds or 0.0) - each.device_seconds,
    )
    used = [each for each in roles if each.used_device_seconds is not None]
    would_do = _time_that_would_do(held)
    words = [sentence for each in roles for sentence in _words(each)]
    if not any(each.measured_tasks for each in roles):
        words = [missing or NOTHING_MEASURED]
    return JobEfficiency(
        job=held.job,
        name=held.name,
        user=held.user,
        queue=held.queue,
        state=held.state,
        device_seconds=_sum(each.device_seconds for each in roles),
        lost_device_seconds=_sum(each.lost_device_seconds for each in roles),
        used_device_seconds=_sum(each.used_device_seconds or 0.0 for each in used) if used else None,
        measured_device_seconds=_sum(each.device_seconds for each in used),
        longest_seconds=round(held.longest_seconds, 3),
        max_duration_seconds=held.max_duration_seconds,
        would_do_seconds=would_do,
        roles=tuple(roles),
        words=(*words, *_time_words(held, would_do)),
    )


def summed(key: str, use: Use, jobs: Iterable[JobEfficiency]) -> EfficiencySum:
    """The sum of a user or of everybody; `use` counts all jobs, `jobs` are those whose figures were read."""
    listed = list(jobs)
    return EfficiencySum(
        key,
        round(use.device_seconds, 3),
        round(use.lost_device_seconds, 3),
        _sum(each.measured_device_seconds for each in listed),
        _sum(each.used_device_seconds or 0.0 for each in listed),
    )


def _sum(values: Iterable[float]) -> float:
    return round(sum(values), 3)


def _role(held: RoleHeld, found: Figures, young: bool) -> RoleEfficiency:
    devices = found.devices if held.device_millis else None
    whole = held.device_millis / DEVICE
    in_use = None if devices is None or found.devices_in_use is None else min(found.devices_in_use, math.ceil(whole))
    return RoleEfficiency(
        role=held.role,
        tasks=held.tasks,
        measured_tasks=min(found.tasks, held.tasks),
        device_seconds=round(held.use.device_seconds, 3),
        lost_device_seconds=round(held.use.lost_device_seconds, 3),
        used_device_seconds=None if devices is None else round(held.use.device_seconds * _part(devices), 3),
        task_seconds=round(held.use.task_seconds, 3),
        device_percent=None if devices is None else round(devices.mean, 1),
        device_memory_percent=None if found.device_memory is None else round(found.device_memory.most, 1),
        asked=TaskAmounts(whole or None, held.cpu_millis / 1000 or None, held.memory_bytes or None),
        mean=_used(found, None if devices is None else round(whole * _part(devices), 2), most=False),
        most=_used(found, in_use, most=True),
        would_do=TaskAmounts(None, None, None) if young else _would_do(held, found, in_use),
    )


def _part(percent: Mean) -> float:
    """The mean as a fraction; drivers have told more than 100 %."""
    return min(1.0, max(0.0, percent.mean / 100))


def _used(found: Figures, devices: float | None, *, most: bool) -> TaskAmounts:
    cores, memory = (None if each is None else each.most if most else each.mean for each in (found.cores, found.memory))
    return TaskAmounts(devices, None if cores is None else round(cores, 2), None if memory is None else round(memory))


def _would_do(held: RoleHeld, found: Figures, in_use: int | None) -> TaskAmounts:
    """A smaller request. Of parts of a device nothing is said, as their use is that of the whole device."""
    devices = in_use if in_use is not None and held.device_millis >= DEVICE else None
    cores = None if found.cores is None else max(1, math.ceil(found.cores.most * MARGIN))
    memory = None if found.memory is None else _round_memory(found.memory.most * MARGIN)
    return TaskAmounts(
        devices if devices is not None and devices * DEVICE < held.device_millis else None,
        cores if cores is not None and cores * 1000 < held.cpu_millis else None,
        memory if memory is not None and memory < held.memory_bytes else None,
    )


def _round_memory(wanted: float) -> int:
    step = GIB if wanted > GIB else _MIB_STEP * _MIB
    return max(1, math.ceil(wanted / step)) * step


def _time_that_would_do(held: JobHeld) -> int | None:
    """A shorter maxDuration for a job that succeeded; others may have needed more time."""
    if held.state != Phase.SUCCEEDED or not held.max_duration_seconds:
        return None
    wanted = held.longest_seconds * MARGIN
    step = next(step for below, step in _TIMES if wanted < below)
    seconds = max(1, math.ceil(wanted / step)) * step
    return seconds if seconds < held.max_duration_seconds else None


def _words(role: RoleEfficiency) -> Iterator[str]:
    if not role.measured_tasks:
        yield f"Nothing was measured of the role {role.role}."
        return
    if role.measured_tasks < role.tasks:
        yield f"Of the role {role.role}, {role.measured_tasks} of {_count(role.tasks, 'task')} were measured."
    yield from _device_words(role)
    yield from _amount_words(role)


def _device_words(role: RoleEfficiency) -> Iterator[str]:
    asked, in_use, percent = role.asked.devices, role.most.devices, role.device_percent
    if asked is None:
        return
    held = f"Each task of {role.role} held {_count(asked, 'device')}, {_hours(role.device_seconds)} device-hours in all"
    if percent is None:
        yield f"{held}; their use is not known."
        return
    low = "only " if percent < _LOW_PERCENT else ""
    yield f"{held}, and used {low}{percent:.0f} % of them."
    if role.would_do.devices is not None and in_use is not None:
        enough = f"{_count(in_use, 'device')} would have done" if in_use else "it would have done without"
        yield f"No task of {role.role} used more than {in_use:.0f} of its {_count(asked, 'device')}: {enough}."
    if role.device_memory_percent is not None:
        yield f"At most {role.device_memory_percent:.0f} % of a device's memory was in use."


def _amount_words(role: RoleEfficiency) -> Iterator[str]:
    if role.most.cpus is not None:
        enough = role.would_do.cpus
        asked = "processors" if role.asked.cpus is None else f"of {_count(role.asked.cpus, 'processor')}"
        said = f"A task of {role.role} used at most {role.most.cpus:.1f} {asked}, {role.mean.cpus:.1f} on average"
        yield said + ("." if enough is None else f": {_count(enough, 'processor')} would have done.")
    if role.most.memory_bytes is not None:
        enough = role.would_do.memory_bytes
        asked = "" if role.asked.memory_bytes is None else f" of {_size(role.asked.memory_bytes)}"
        said = f"Its memory was at most {_size(role.most.memory_bytes)}{asked}"
        yield said + ("." if enough is None else f": {_size(enough)} would have done.")


def _time_words(held: JobHeld, would_do: int | None) -> Sequence[str]:
    if not held.max_duration_seconds or not held.longest_seconds:
        return ()
    ran, limit = format_duration(max(1, round(held.longest_seconds))), format_duration(held.max_duration_seconds)
    verb = "was" if held.state in ENDED else "is so far"
    said = f"Its longest attempt {verb} {ran} of a maxDuration of {limit}"
    return (said + ("." if would_do is None else f": {format_duration(would_do)} would have done."),)


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:.1f}" if hours >= 1 or not hours else f"{hours:.2g}"


def _count(number: float, noun: str) -> str:
    return f"{number:g} {noun}{'' if number == 1 else 's'}"


def _size(size: float) -> str:
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / _MIB:.0f} MiB"
