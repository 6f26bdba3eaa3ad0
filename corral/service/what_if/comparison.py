"""Compare the courses of a what-if question, before and after its changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from corral.kernel.quantile import quantile
from corral.kernel.units import counted
from corral.model.records import rfc3339
from corral.model.what_if import (
    MOST_TOLD_NODES,
    Course,
    Courses,
    JobOutcome,
    Known,
    QueueCourse,
    QueueFigures,
    QueueOutcome,
    Spread,
    Stay,
    Timeline,
    TimelineNode,
    UseOverTime,
    WaitingJob,
    WhatIfAnswer,
    quantiles,
)

SHOWN_JOBS: Final = 1000
MOST_MOVED: Final = 10
"""Jobs that gain, and that lose, at most named."""
_NOTICEABLE: Final = 1.0
"""Seconds by which a start has to move to be a gain or a loss."""
_NOTHING: Final = QueueCourse()


def compare(
    courses: Courses, *, horizon: float, changes: tuple[str, ...], shown: Callable[[str], bool]
) -> WhatIfAnswer:  # fmt: skip
    """The answer, with those queues and jobs whose queue is `shown`."""
    jobs = [_job(each, courses) for each in courses.jobs if shown(each.queue)]
    gains, losses = _moved(jobs, horizon)
    named = {*gains, *losses}
    told = [*jobs[:SHOWN_JOBS], *(job for job in jobs[SHOWN_JOBS:] if job.id in named)]
    names = {name for course in (*courses.before, *courses.after) for name in course.queues if shown(name)}
    return WhatIfAnswer(
        at=rfc3339(courses.at),
        cursor=courses.cursor,
        horizon_seconds=horizon,
        seeds=len(courses.before),
        changes=changes,
        assumptions=tuple(_assumptions(courses)),
        queues=tuple(
            QueueOutcome(name, _figures(name, courses.before), _figures(name, courses.after)) for name in sorted(names)
        ),
        jobs=tuple(told),
        jobs_left_out=len(jobs) - len(told),
        gains=gains,
        losses=losses,
        times=tuple(courses.before[0].times) if courses.before else (),
        before=_use(courses.before),
        after=_use(courses.after),
        timeline=_timeline(courses, shown) if courses.after and courses.after[0].nodes else None,
        revision=courses.revision,
    )


def _job(job: WaitingJob, courses: Courses) -> JobOutcome:
    before = Spread() if job.added else Spread(*quantiles(job.id, courses.before, courses.correction))
    after = Spread(*quantiles(job.id, courses.after, courses.correction))
    never = [all(job.id in each.never for each in found) for found in (courses.before, courses.after)]
    return JobOutcome(
        job.id,
        job.name,
        job.user,
        job.queue,
        job.devices,
        job.waited,
        job.added,
        before,
        after,
        never_before=not job.added and never[0],
        never_after=never[1],
    )


def _moved(jobs: Iterable[JobOutcome], horizon: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The jobs whose P50 comes earlier, and those whose P50 comes later, by most first; never is the horizon."""
    moves = []
    for job in jobs:
        if not job.added:
            before = horizon if job.before.p50 is None else job.before.p50
            moves.append((before - (horizon if job.after.p50 is None else job.after.p50), job.id))
    gains = sorted((move for move in moves if move[0] >= _NOTICEABLE), key=lambda move: (-move[0], move[1]))
    losses = sorted(move for move in moves if move[0] <= -_NOTICEABLE)
    return tuple(job for _, job in gains[:MOST_MOVED]), tuple(job for _, job in losses[:MOST_MOVED])


def _figures(queue: str, courses: Sequence[Course]) -> QueueFigures:
    found = [course.queues.get(queue, _NOTHING) for course in courses]
    waits = sorted(wait for each in found for wait in each.waits)

    def mean(value: Callable[[QueueCourse], float]) -> float:
        return sum(map(value, found)) / len(found)

    return QueueFigures(
        started=mean(lambda each: each.started),
        ended=mean(lambda each: each.ended),
        preemptions=mean(lambda each: each.preempted),
        waiting=mean(lambda each: each.waiting),
        wait_p50=quantile(waits, 0.5) if waits else None,
        wait_p95=quantile(waits, 0.95) if waits else None,
        devices=mean(lambda each: each.used),
        lent=mean(lambda each: each.lent),
        borrowed=mean(lambda each: each.borrowed),
    )


def _use(courses: Sequence[Course]) -> UseOverTime:
    if not courses:
        return UseOverTime()
    used = (sum(at) / len(courses) for at in zip(*(course.used for course in courses), strict=True))
    waiting = (sum(at) / len(courses) for at in zip(*(course.waiting for course in courses), strict=True))
    return UseOverTime(float(courses[0].devices), tuple(used), tuple(waiting))


def _timeline(courses: Courses, shown: Callable[[str], bool]) -> Timeline:
    """What runs where in the first courses, on the nodes that have devices after the changes or before them."""
    before, after = courses.before[0], courses.after[0]
    nodes = [TimelineNode(name, count) for name, count in {**before.nodes, **after.nodes}.items() if count]
    nodes = sorted(nodes, key=lambda node: node.name)[:MOST_TOLD_NODES]
    names = {node.name for node in nodes}
    others = sum(stay.node not in names for course in (before, after) for stay in course.stays)

    def told(course: Course) -> tuple[Stay, ...]:
        return tuple(stay for stay in course.stays if stay.node in names and shown(stay.queue))

    left_out = before.stays_left_out + after.stays_left_out + others
    return Timeline(tuple(nodes), told(before), told(after), left_out)


def _assumptions(courses: Courses) -> Iterable[str]:
    known = courses.after[0].known if courses.after else Known()
    if courses.arrival_days:
        mean = sum(course.arrivals for course in courses.after) / len(courses.after)
        yield f"{mean:,.0f} other jobs arrive, as in the same hours of the last {courses.arrival_days:.1f} days."
        yield "No task fails, and no node is lost."
    else:
        yield "No other job is submitted, no task fails, and no node is lost."
    yield "A preempted job starts again from the beginning."
    if known.own:
        yield f"{_jobs(known.own)} for as long as {'its' if known.own == 1 else 'their'} maxDuration."
    if known.alike:
        yield f"{_jobs(known.alike)} for as long as ended jobs of the same user, name and size."
    if known.queue:
        yield f"{_jobs(known.queue)} for as long as ended jobs of the same queue."
    if known.cluster:
        yield f"{_jobs(known.cluster)} for as long as ended jobs of the cluster."
    if known.nothing:
        yield f"{_jobs(known.nothing)} on until the horizon, because nothing is known of their run times."
    if len(courses.before) == 1 and known.alike + known.queue + known.cluster:
        yield "One course was drawn; several seeds tell how sure this is."


def _jobs(count: int) -> str:
    return f"{counted(count, 'job')} {'runs' if count == 1 else 'run'}"
