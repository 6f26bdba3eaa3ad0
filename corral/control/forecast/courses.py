"""Play the courses of a forecast, and say of every waiting job when it is likely to start; runs in a forked child."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from math import inf
from typing import Final

import msgspec

from corral.control.core.core import Core
from corral.control.what_if.changes import Changes
from corral.control.what_if.course import Play
from corral.control.what_if.run_times import RunTimes
from corral.control.what_if.stays import Stays
from corral.kernel.ids import JobId
from corral.kernel.quantile import quantile
from corral.model.start_estimates import Basis, Estimate
from corral.model.what_if import DAY, LONGEST_HORIZON, MOST_SEEDS, Course, PastRun, Stay
from corral.scheduler import BuiltinPlanner
from corral.scheduler.explain.start_estimate import cut_estimate, endless_estimate, placed_estimate
from corral.scheduler.views.waiting_list import in_line

HORIZON: Final = DAY
"""Seconds that the courses of a forecast look ahead; starts are told further ahead."""
_SECONDS: Final = 1.5
"""Seconds of processor time of a forecast; a first course that needs more ends early."""
_BY_THE_CLOCK: Final = 1.8
"""Seconds after which it ends early where other processes have the processors."""
_LEAST: Final = 1.0
"""Seconds of processor time that it may use all the same."""
_MOST_LOOKED_AT: Final = 64
"""Kinds of jobs without an expected start for which the jobs in their way are looked for."""
_MOST_STAYS: Final = 20_000
"""Stays of jobs on nodes that a forecast keeps."""
_AS_SOON: Final = 0.01
"""Seconds between an end and the starts that it allows, at most."""
DRAWN: Final = "Run times are drawn from those of ended jobs, and no new job arrives."
"""What an expected start assumes."""


class Forecasted(msgspec.Struct, frozen=True):
    """What a forecast found; courses are of the seeds from 0 on."""

    estimates: dict[str, msgspec.Raw]
    """By waiting job its encoded `Estimate`."""
    courses: tuple[msgspec.Raw, ...]
    """Encoded, one for each seed that came to the horizon."""
    seeds: int
    """How many were drawn."""
    order: tuple[JobId, ...]
    """The waiting jobs in the order of the next cycle."""
    stays: dict[str, msgspec.Raw] = {}
    """By node what seed 0 has there until it ends, earliest first: encoded `Stay`s."""
    stays_left_out: int = 0
    seconds: float = HORIZON
    """How far seed 0 was played for them."""


def play_courses(core: Core, past: Sequence[PastRun], now: float) -> bytes:
    """Play a copy of a core and answer with a `Forecasted`.

    Seed 0 is always played, if not always to the horizon. Further ones are drawn only where run times are, and only while
    there is time.
    """
    go_on = _limit(_SECONDS)
    stays = Stays()
    first, course = _played(core, past, now, 0, go_on, stays)
    encoded = [] if course is None else [msgspec.msgpack.encode(course)]
    told, left_out = stays.told(_MOST_STAYS)
    seconds = HORIZON if course is not None else first.driver.now - now
    starts = [first.tally.starts]
    first.run_on(now + LONGEST_HORIZON, go_on)
    while first.drawn_since < inf and len(starts) < MOST_SEEDS and go_on():
        other, course = _played(core, past, now, len(starts), go_on)
        if course is None:
            break
        encoded.append(msgspec.msgpack.encode(course))
        other.run_on(now + LONGEST_HORIZON, go_on)
        starts.append(other.tally.starts)
    found = {job: msgspec.Raw(msgspec.msgpack.encode(each)) for job, each in _estimates(core, first, starts)}
    world = core.world
    line = in_line(world.cluster.queues, world.queue, world.planner.policy, now)
    order = tuple(dict.fromkeys(entry.request.job for _, entry in line))
    return msgspec.msgpack.encode(
        Forecasted(
            found, tuple(map(msgspec.Raw, encoded)), len(starts), order, _by_node(told), left_out, seconds
        )
    )  # fmt: skip


def _by_node(stays: Sequence[Stay]) -> dict[str, msgspec.Raw]:
    found: dict[str, list[Stay]] = {}
    for stay in stays:
        found.setdefault(stay.node, []).append(stay)
    return {node: msgspec.Raw(msgspec.msgpack.encode(each)) for node, each in found.items()}


def _played(
    core: Core, past: Sequence[PastRun], now: float, seed: int, go_on: Callable[[], bool], stays: Stays | None = None
) -> tuple[Play, Course | None]:
    """A course, and what it tells if it came to the horizon; `stays` records what ran where."""
    play = Play(core.fork(unexplained=True, unrecorded=True), Changes(), RunTimes(past, seed), now, stays)
    came = play.run_while(HORIZON, go_on)
    play.stays = None
    return play, play.told() if came else None


def _limit(seconds: float) -> Callable[[], bool]:
    """Says whether to go on: for so many seconds of processor time, less where they are slow to come."""
    before, begun = time.process_time(), time.monotonic()

    def go_on() -> bool:
        used = time.process_time() - before
        return used < seconds and (used < _LEAST or time.monotonic() - begun < _BY_THE_CLOCK)

    return go_on


def _estimates(core: Core, first: Play, starts: Sequence[Mapping[str, float]]) -> Iterator[tuple[str, Estimate]]:
    """The estimates of the jobs that wait; `starts` are by seed, in seconds after the beginning."""
    blocked, ends = _Blocked(first), sorted(first.completions)
    for job in sorted(first.tally.told):
        times = sorted(each.get(job, inf) for each in starts)
        p10, p50, p90 = (first.now + quantile(times, part) for part in (0.1, 0.5, 0.9))
        if p50 == inf:
            found = blocked.estimate(job)
        elif starts[0].get(job, inf) <= first.drawn_since - first.now + _AS_SOON:
            ended = _ended(first, ends, first.now + starts[0][job])
            found = placed_estimate(p50, ended, first=job == first.head, now=first.now)
            if found.basis is Basis.AT_LATEST:
                grace = max((_grace(core, each) for each in ended), default=0.0)
                found = msgspec.structs.replace(found, at=p50 + grace)
        else:
            courses = f"Half of {len(starts)} drawn courses start it by then" if len(starts) > 1 else "So it was drawn"
            found = Estimate(Basis.EXPECTED, f"{courses}. {DRAWN}", p50)
        if found is not None:
            yield job, msgspec.structs.replace(found, p10=_or_none(p10), p50=_or_none(p50), p90=_or_none(p90))


def _grace(core: Core, job_id: JobId) -> float:
    """Seconds that a job may take to end after its maxDuration."""
    job = core.world.jobs.get(job_id)
    return 0.0 if job is None else core.launch_policy.grace_of(job.view)


def _or_none(at: float) -> float | None:
    return None if at == inf else at


def _ended(play: Play, ends: Sequence[float], at: float) -> list[JobId]:
    """The jobs whose end lets others start at a time; `ends` are the times of all ends, in order."""
    times = ends[bisect_left(ends, at - _AS_SOON) : bisect_right(ends, at)]
    return sorted(job for then in times for job in play.completions[then])


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
