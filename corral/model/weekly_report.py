"""The weekly report that administrators are mailed: when it is due, and its words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from corral.model.efficiency.records import EfficiencyReport, JobEfficiency
from corral.model.fairness import FairnessReport
from corral.model.idle.records import IdleJob

DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TIME: Final = re.compile(r"([a-z]+) ([01]\d|2[0-3]):([0-5]\d)")
_MOST_LINES: Final = 20
"""Lines of each part; of more, the last says how many."""
_HOUR: Final = 3600.0
_WEEK_HOURS: Final = 168


class WeekTime(NamedTuple):
    """A time of each week in UTC."""

    weekday: int
    """0 is Monday."""
    hour: int
    minute: int


class WeekFigures(NamedTuple):
    """What a report is made of."""

    efficiency: EfficiencyReport
    fairness: FairnessReport
    idle: Sequence[IdleJob]
    """Jobs whose owners were warned in the week."""
    devices: int
    """Devices of the cluster now."""


def read_week_time(text: str) -> WeekTime:
    """Read a time such as `monday 07:00`; raises ValueError."""
    found = _TIME.fullmatch(text.strip().lower())
    if found is None or found[1] not in DAYS:
        raise ValueError(f"a time of the week is written as monday 07:00, not {text[:50]!r}")
    return WeekTime(DAYS.index(found[1]), int(found[2]), int(found[3]))


def week_due(at: WeekTime, now: float) -> str:
    """The week, such as `2026-W48`, whose report was due last at a time in seconds since 1970.

    It is the last whole week, from Monday to Sunday in UTC, before the report's time.
    """
    today = datetime.fromtimestamp(now, UTC)
    monday = (today - timedelta(days=today.weekday())).replace(hour=0, minute=0, second=0, microsecond=0)
    due = monday + timedelta(days=at.weekday, hours=at.hour, minutes=at.minute)
    reported = (monday if due <= today else monday - timedelta(days=7)) - timedelta(days=7)
    year, week, _ = reported.isocalendar()
    return f"{year:04d}-W{week:02d}"


def report_text(week: str, found: WeekFigures) -> tuple[str, str]:
    """Subject and text of the mail."""
    begin, end = found.fairness.begin[:10], found.fairness.end[:10]
    parts = [
        (f"The week {week}, from {begin} to before {end} (UTC)", list(_utilisation(found))),
        ("Queues: owed and got", list(_fairness(found.fairness))),
        ("Users: held, lost, and used of what was measured", list(_users(found.efficiency))),
        ("Idle devices", list(_idle(found.idle))),
        ("Jobs that could have asked for less", list(_jobs(found.efficiency.items))),
    ]
    text = "\n\n".join("\n".join([title, *(f"  {line}" for line in _bounded(lines))]) for title, lines in parts)
    return f"Corral in the week {week}", text


def _bounded(lines: list[str]) -> list[str]:
    if len(lines) <= _MOST_LINES:
        return lines
    return [*lines[: _MOST_LINES - 1], f"and {len(lines) - _MOST_LINES + 1} more"]


def _utilisation(found: WeekFigures) -> Iterator[str]:
    total, most = found.efficiency.total, found.devices * _WEEK_HOURS
    held = f"Jobs held {_hours(total.device_seconds)} device-hours"
    if most:
        part = 100 * total.device_seconds / _HOUR / most
        held += f", {part:.0f} % of the {most:,} of the {found.devices:,} devices of now"
    yield f"{held}; {_hours(total.lost_device_seconds)} of them came to nothing."
    if total.measured_device_seconds:
        used = 100 * total.used_device_seconds / total.measured_device_seconds
        yield f"Of {_hours(total.measured_device_seconds)} device-hours whose use was measured, {used:.0f} % were used."
    else:
        yield "The use of no device was measured."
    if found.efficiency.left_out:
        yield f"{found.efficiency.left_out:,} smaller jobs count as held, not as measured."


def _fairness(report: FairnessReport) -> Iterator[str]:
    for row in report.items:
        ratio = "" if row.ratio is None else f" (ratio {row.ratio:.2f})"
        wait = (
            ""
            if row.wait_p95 is None
            else f"; {row.started} jobs started, 95 % of them within {row.wait_p95 / 60:.0f} min"
        )
        yield f"{row.queue}: owed {_hours(row.owed)}, got {_hours(row.got)} device-hours{ratio}{wait}"
    if report.jain is not None:
        yield f"Jain's index is {report.jain:.3f}; 1 is even."
    if not report.items:
        yield "No queue held anything."


def _users(report: EfficiencyReport) -> Iterator[str]:
    for each in report.users:
        known, used = each.measured_device_seconds, each.used_device_seconds
        said = f", {100 * used / known:.0f} % used" if known else ", use unknown"
        yield f"{each.key}: {_hours(each.device_seconds)} held, {_hours(each.lost_device_seconds)} lost{said}"
    if not report.users:
        yield "No user held anything."


def _idle(jobs: Sequence[IdleJob]) -> Iterator[str]:
    for each in jobs:
        done = "only reported" if each.dry_run else "acted on" if each.acted_at else "warned"
        more = f"; more time: {each.reason}" if each.reason else ""
        yield f"{each.user}~{each.name} ({each.queue}): {_hours(each.wasted_device_seconds)} device-hours, {done}{more}"
    if not jobs:
        yield "No owner was warned."


def _jobs(jobs: Sequence[JobEfficiency]) -> Iterator[str]:
    """The jobs with a smaller request that would have done, the largest waste first."""
    measured = [each for each in jobs if each.used_device_seconds is not None]
    unused = [(each.measured_device_seconds - (each.used_device_seconds or 0.0), each) for each in measured]
    none = True
    for waste, job in sorted(unused, key=lambda pair: (-pair[0], pair[1].job)):
        for role in job.roles:
            if role.would_do.devices is not None:
                none = False
                asked = role.asked.devices or 0.0
                yield (
                    f"{job.user}~{job.name}, {role.role}: {role.would_do.devices:g} instead of {asked:g} devices; "
                    f"{_hours(waste)} device-hours unused"
                )
    if none:
        yield "None, as far as was measured."


def _hours(device_seconds: float) -> str:
    return f"{device_seconds / _HOUR:,.1f}"
