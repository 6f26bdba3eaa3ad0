"""Play the courses of a forecast, and say of every waiting job when it is likely to start; runs in a forked child."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import ceil, inf
from typing import Final

import msgspec

from corral.control.core.core import Core
from corral.control.what_if.changes import Changes
from corral.control.what_if.course import Play
from corral.control.what_if.run_times import RunTimes
from corral.kernel.ids import JobId
from corral.model.start_estimates import Basis, Estimate
from corral.model.what_if import DAY, LONGEST_HORIZON, MOST_SEEDS, Course, PastRun
from corral.scheduler import BuiltinPlanner
from corral.scheduler.explain.start_estimate import cut_estimate, endless_estimate, placed_estimate
from corral.scheduler.views.waiting_list import in_line

HORIZON: Final = DAY
"""Seconds that the courses of a forecast look ahead; starts are told further ahead."""
_MORE_SECONDS: Final = 2.0
"""Seconds of processor time after which no further seed is drawn, and nothing further ahead is looked at."""
_MOST_LOOKED_AT: Final = 64
"""Kinds of jobs without an expected start for which the jobs in their way are looked for."""
_AS_SOON: Final = 0.01
"""Seconds between an end and the starts that it allows, at most."""
_DRAWN: Final = "Run times are drawn from those of ended jobs, and no new job arrives."


class Forecasted(msgspec.Struct, frozen=True):
    """What a forecast found; courses are of the seeds from 0 on."""

    estimates: dict[str, msgspec.Raw]
    """By waiting job its encoded `Estimate`."""
    courses: tuple[msgspec.Raw, ...]
    """Encoded, one for each seed."""
    order: tuple[JobId, ...]
    """The waiting jobs in the order of the next cycle."""


def play_courses(core: Core, past: Sequence[PastRun], now: float) -> bytes:
    """Play a copy of a core and answer with a `Forecasted`.

    Seed 0 is always played; further ones only where run times are drawn, and only while there is time.
    """
    begun = time.process_time()

    def go_on() -> bool:
        return time.process_time() - begun < _MORE_SECONDS

    first, course = _played(core, past, now, 0)
    encoded = [msgspec.msgpack.encode(course)]
    first.run_on(now + LONGEST_HORIZON, go_on)
    starts = [first.tally.starts]
    while first.drawn_since < inf and len(starts) < MOST_SEEDS and go_on():
        other, course = _played(core, past, now, len(starts))
        encoded.append(msgspec.msgpack.encode(course))
        other.run_on(now + LONGEST_HORIZON, go_on)
        starts.append(other.tally.starts)
    found = {job: msgspec.Raw(msgspec.msgpack.encode(each)) for job, each in _estimates(first, starts)}
    world = core.world
    line = in_line(world.cluster.queues, world.queue, world.planner.policy, now)
    order = tuple(dict.fromkeys(entry.request.job for _, entry in line))
    return msgspec.msgpack.encode(Forecasted(found, tuple(map(msgspec.Raw, encoded)), order))


def _played(core: Core, past: Sequence[PastRun], now: float, seed: int) -> tuple[Play, Course]:
    play = Play(core.fork(unexplained=True), Changes(), RunTimes(past, seed), now, None)
    return play, play.run(HORIZON)


def quantile(values: Sequence[float], part: float) -> float:
    """The least of sorted values that at least this part of them do not exceed."""
    return values[max(0, ceil(part * len(values)) - 1)]


def _estimates(first: Play, starts: Sequence[Mapping[str, float]]) -> Iterator[tuple[str, Estimate]]:
    """The estimates of the jobs that wait; `starts` are by seed, in seconds after the beginning."""
    blocked = _Blocked(first)
    for job in sorted(first.tally.told):
        times = sorted(each.get(job, inf) for each in starts)
        p10, p50, p90 = (first.now + quantile(times, part) for part in (0.1, 0.5, 0.9))
        if p50 == inf:
            found = blocked.estimate(job)
        elif starts[0].get(job, inf) <= first.drawn_since - first.now + _AS_SOON:
            ended = _ended(first, first.now + starts[0][job])
            found = placed_estimate(p50, ended, first=job == first.head, now=first.now)
        else:
            courses = f"Half of {len(starts)} drawn courses start it by then" if len(starts) > 1 else "So it was drawn"
            found = Estimate(Basis.EXPECTED, f"{courses}. {_DRAWN}", p50)
        if found is not None:
            yield job, msgspec.structs.replace(found, p10=_or_none(p10), p90=_or_none(p90))


def _or_none(at: float) -> float | None:
    return None if at == inf else at


def _ended(play: Play, at: float) -> list[JobId]:
    """The jobs whose end lets others start at a time."""
    return sorted(job for then, jobs in play.completions.items() if at - _AS_SOON <= then <= at for job in jobs)


class _Blocked:
    """Says why jobs have not started by the end of a course; jobs of one kind are looked at once."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._known: dict[Hashable, Estimate] = {}

    def estimate(self, job: JobId) -> Estimate | None:
        """The estimate of one job; None if it is not in the queue, because others hold it."""
        play = self._play
        planner, now = play.core.world.planner, play.driver.now
        entry = planner.queue.first(job)
        if entry is None:
            return None
        if not isinstance(planner, BuiltinPlanner) or not (play.driver.idle or now >= play.now + LONGEST_HORIZON):
            return cut_estimate(now)
        if entry.alike not in self._known:
            if len(self._known) >= _MOST_LOOKED_AT:
                return Estimate(Basis.UNKNOWN, "Unknown: no known end of a running job makes room for it.")
            reported = planner.explain(job, now)
            self._known[entry.alike] = endless_estimate(
                planner.cluster, planner.queue, entry, reported, now, play.tally.starts.keys()
            )
        return self._known[entry.alike]
