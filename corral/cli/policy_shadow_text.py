"""A comparison of a candidate with the policy in force, as text for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from corral.cli.output import span, table
from corral.kernel.units import counted
from corral.spec.errors import shorten

if TYPE_CHECKING:
    from corral.model.policy_shadow import Counts, Figures, HourRow, Moved, ShadowReport

_WORDS: Final = {"start": "start", "preempt": "preemption", "resize": "resize"}
_LONGEST: Final = 120
"""The most characters of a reason."""
_FIGURES: Final = ("STARTS", "WAIT P50", "WAIT P95", "DEVICES", "PREEMPTED", "STILL WAIT")
_HOURS: Final = (
    "HOUR (UTC)",
    "ALIKE",
    "ELSEWHERE",
    "ONLY IN FORCE",
    "ONLY CANDIDATE",
    *_FIGURES[:3],
    "USE",
    *_FIGURES[4:],
)
_DIFFERENCES: Final = ("JOB", "USER", "QUEUE", "DECISION", "IN FORCE", "CANDIDATE", "WHY")


def text(report: ShadowReport) -> str:
    """Return a report for a terminal."""
    parts = [
        _head(report),
        _decided(report),
        table(_HOURS, _hour_rows(report), right=frozenset(range(1, len(_HOURS)))),
        table(("QUEUE", *_FIGURES), _queue_rows(report), right=frozenset(range(1, 1 + len(_FIGURES)))),
    ]
    if report.differences:
        parts.append(table(_DIFFERENCES, _difference_rows(report)) + _left_out(report))
    parts.append(_moved(report))
    parts.append("\n".join(f"- {each}" for each in (*report.notes, *report.assumptions)))
    return "\n\n".join(parts) + "\n"


def markdown(report: ShadowReport) -> str:
    """Return a report for a pull request."""
    parts = [
        f"### {_cell(report.candidate)} beside {_cell(report.in_force)}",
        _head(report),
        _decided(report),
        _markdown_table(_HOURS, _hour_rows(report)),
        _markdown_table(("QUEUE", *_FIGURES), _queue_rows(report)),
    ]
    if report.differences:
        parts.append(_markdown_table(_DIFFERENCES, _difference_rows(report)) + _left_out(report))
    parts.append(_moved(report))
    parts.append("\n".join(f"- {each}" for each in (*report.notes, *report.assumptions)))
    if report.problem:
        parts.append(f"**{report.problem}**")
    return "\n\n".join(parts) + "\n"


def hour_line(hour: HourRow) -> str:
    """Return an hour that is over in one line."""
    counts, before, after = hour.decisions, hour.in_force, hour.candidate
    waits = _both(_time(before.wait_p95), _time(after.wait_p95))
    return (
        f"{_clock(hour.at)}: {counted(counts.alike, 'decision')} alike, {counts.only_in_force} only in force, "
        f"{counts.only_candidate} only of the candidate; wait p95 {waits}, use {_use(hour)}."
    )


def _head(report: ShadowReport) -> str:
    length = span(report.total.seconds)
    return f"{length} from {report.begin}: {report.in_force} in force → {report.candidate}, which decided beside it."


def _decided(report: ShadowReport) -> str:
    parts = []
    for kind, counts in report.decisions.items():
        total = counts.alike + counts.otherwise
        if total:
            parts.append(f"{counts.alike} of {counted(total, _WORDS[kind])}")
    if not parts:
        return "Neither decided anything."
    said = f"Alike within {span(report.within)}: {', '.join(parts)}."
    moved = sum(counts.elsewhere for counts in report.decisions.values())
    if moved:
        said += f" {moved} of these on other nodes."
    if report.undecided:
        said += f" {counted(report.undecided, 'decision')} of the last {span(report.within)} left out."
    return said


def _hour_rows(report: ShadowReport) -> Iterable[Sequence[str]]:
    for hour in (*report.hours, *([report.total] if len(report.hours) > 1 else [])):
        name = "all" if hour is report.total else _clock(hour.at)
        yield (name, *_counts(hour.decisions), *_figures(hour.in_force, hour.candidate, use=_use(hour)))


def _queue_rows(report: ShadowReport) -> Iterable[Sequence[str]]:
    for row in report.total.queues:
        yield (row.queue, *_figures(row.in_force, row.candidate))


def _difference_rows(report: ShadowReport) -> Iterable[Sequence[str]]:
    for each in report.differences:
        yield (
            each.name or each.job,
            each.user,
            each.queue,
            _WORDS[each.kind],
            "-" if each.in_force is None else _moment(each.in_force),
            "-" if each.candidate is None else _moment(each.candidate),
            shorten(each.why, _LONGEST),
        )


def _left_out(report: ShadowReport) -> str:
    left = report.differences_left_out
    return f"\n\n{counted(left, 'more decision')} of one of both left out (--differences)." if left else ""


def _counts(counts: Counts) -> Sequence[str]:
    return [str(each) for each in (counts.alike, counts.elsewhere, counts.only_in_force, counts.only_candidate)]


def _figures(before: Figures, after: Figures, use: str = "") -> Sequence[str]:
    return [
        _both(str(before.started), str(after.started)),
        _both(_time(before.wait_p50), _time(after.wait_p50)),
        _both(_time(before.wait_p95), _time(after.wait_p95)),
        use or _both(_number(before.devices), _number(after.devices)),
        _both(str(before.preempted), str(after.preempted)),
        _both(str(before.waiting), str(after.waiting)),
    ]


def _use(hour: HourRow) -> str:
    if not hour.devices:
        return "-"
    return _both(*(f"{figures.devices / hour.devices:.0%}" for figures in (hour.in_force, hour.candidate)))


def _moved(report: ShadowReport) -> str:
    jobs = report.earlier + report.later + report.same
    lines = [
        f"Of {counted(jobs, 'job')} that started, the candidate starts {report.earlier} earlier, {report.later} later, "
        f"and {report.same} at the same time."
    ]
    for title, moved in (("Gain most", report.gains), ("Lose most", report.losses)):
        if moved:
            lines.append(f"{title}: {', '.join(map(_by, moved))}.")
    return "\n".join(lines)


def _by(moved: Moved) -> str:
    least = "" if moved.complete else "at least "
    return (
        f"{moved.name or moved.job} ({least}{span(abs(moved.seconds))} {'earlier' if moved.seconds > 0 else 'later'})"
    )


def _markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    shown = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in row) + " |" for row in shown)


def _cell(value: str) -> str:
    for sign in "\\|*_`<[":
        value = value.replace(sign, f"\\{sign}")
    return value.replace("\n", " ")


def _both(before: str, after: str) -> str:
    return after if before == after else f"{before} → {after}"


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else span(seconds)


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _clock(at: str) -> str:
    """The day and the minute of an RFC 3339 time."""
    return f"{at[5:10]} {at[11:16]}"


def _moment(at: str) -> str:
    """The day and the second of an RFC 3339 time."""
    return f"{at[5:10]} {at[11:19]}"
