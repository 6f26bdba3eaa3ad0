"""Find the smallest single changes to a waiting gang that would let it start now.

Each candidate change is first checked for room. The remaining ones are tried on the real planner, smallest first, and
only changes that the next cycle would place are reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import structs

from corral.kernel.ids import JobId
from corral.kernel.units import counted, format_cpu, format_duration, format_memory
from corral.model.plan import Plan, Reasons
from corral.model.requests import GangRequest
from corral.model.start_estimates import Change, Written
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.explain.planner_trial import Bound, PlannerTrial, first_that_fits
from corral.scheduler.explain.question import Said, as_it_is
from corral.scheduler.explain.relaxation import Relaxation, amounts, relaxations
from corral.scheduler.planners.builtin.reason_reports import YIELDING
from corral.scheduler.policy.policy import Policy
from corral.scheduler.queues.gang_resources import asked
from corral.scheduler.queues.queue_tree import QueueNode, QueueTree, shown
from corral.scheduler.queues.waiting_queue import Queue

MOST_CHANGES = 3
"""The most changes reported, smallest first."""
_MOST_QUEUES = 16
_MOST_PRIORITIES = 4
_MOST_VICTIMS = 4096
"""Running gangs above which no higher priority is tried, because ranking all victims costs too much."""
_SHORT_OF = ("not-enough-", "fragmented", "no-cell-holds-", "behind-head")
"""Prefixes of reason codes that a smaller request for cpu, memory or other amounts may resolve."""
_NO_HELP = ("starts-now", YIELDING, "no-nodes", "engine-unknown")
_FIELDS = {"limit": "limit", "borrowing": "borrowingLimit", "user_limit": "userLimit", "group_limit": "groupLimit"}


class _Idea(NamedTuple):
    """A candidate change, with the request and the queue bound that it results in."""

    size: float
    change: Change
    request: GangRequest
    bound: Bound | None = None


def smallest_changes(
    cluster: Cluster,
    queue: Queue,
    policy: Policy,
    job: JobId,
    reasons: Reasons,
    now: float,
    said: Said = as_it_is,
) -> tuple[Change, ...]:
    """Return at most three single changes with each of which the next cycle would place the job, smallest first.

    `reasons` are why it waits; changes that `said` cannot express are left out. Tasks that join a running gang get no
    changes.
    """
    entry = queue.first(job)
    if entry is None or reasons.binding.code in _NO_HELP:
        return ()
    request = entry.request
    if request.beside or not any(role.minimum for role in request.roles):
        return ()
    stage = PlannerTrial(cluster, queue, policy, entry, now)
    ideas = [*_longer(stage), *_elsewhere(stage, reasons), *_raised(stage), *_lesser(stage, reasons)]
    found: list[Change] = []
    for idea in sorted(ideas, key=lambda idea: (idea.size, idea.change.path)):
        if len(found) < MOST_CHANGES and stage.tries > 0 and stage.starts(idea.request, idea.bound):
            found += filter(None, [said(request, idea.change, idea.request)])
    if len(found) < MOST_CHANGES and len(cluster.gangs.by_job) <= _MOST_VICTIMS:
        found += _more_important(stage, queue, said)
    return tuple(found)


def _lesser(stage: PlannerTrial, reasons: Reasons) -> Iterator[_Idea]:
    """Yield from each series of relaxations the first one that finds room."""
    levels = next((index.tree.levels for index in stage.cluster.engines.values()), ())
    found = [series for series in relaxations(stage.request, levels) if series]
    codes = [reason.code for reason in (reasons.binding, *reasons.others)]
    if any(code.startswith(_SHORT_OF) for code in codes):
        found += [series for series in amounts(stage.request) if series]
    for series in sorted(found, key=lambda series: series[0].size):
        at = first_that_fits(stage, [relaxation.request for relaxation in series])
        if at is not None:
            relaxation: Relaxation = series[at]
            yield _Idea(relaxation.size, relaxation.change, relaxation.request)


def _longer(stage: PlannerTrial) -> Iterator[_Idea]:
    """Yield a `maxDuration` short enough to end before the head of the queue starts."""
    head, request = stage.head, stage.request
    if head is None:
        return
    left = (head.start - stage.now) // 60 * 60
    if 60 <= left < float("inf") and not 0 < request.max_duration_seconds <= left:
        before: Written = format_duration(request.max_duration_seconds) if request.max_duration_seconds else ""
        after = format_duration(int(left))
        words = (
            f"with a maxDuration of {after}: it would end before job {head.job}, the first in the queue order, starts"
        )
        lesser = structs.replace(request, max_duration_seconds=int(left))
        yield _Idea(0.05, Change("maxDuration", before, after, f"It would start now {words}."), lesser)


def _elsewhere(stage: PlannerTrial, reasons: Reasons) -> Iterator[_Idea]:
    """Yield other leaf queues with room, where a queue bound or cell ownership may hold the gang back."""
    queues, code = stage.cluster.queues, reasons.binding.code
    if not (code.endswith("-limit") or code == "kept-for-others" or stage.cluster.ownership.cells):
        return
    leaves = [name for name, node in sorted(queues.nodes.items()) if name in queues.specs and not node.children]
    for name in [name for name in leaves if name != stage.request.queue][:_MOST_QUEUES]:
        lesser = structs.replace(stage.request, queue=name)
        if stage.looks > 0 and stage.fits(lesser):
            change = Change("queue", stage.request.queue, name, f"It would start now in queue {name}.")
            yield _Idea(0.3, change, lesser)


def _raised(stage: PlannerTrial) -> Iterator[_Idea]:
    """Yield the violated queue bound, if it is the only one, raised by exactly the missing amount."""
    queues, bounds = stage.cluster.queues, violated(stage.cluster.queues, stage.request)
    if len(bounds) != 1 or stage.looks <= 0 or not stage.fits(stage.request, bounds[0]):
        return
    bound = bounds[0]
    node, name = queues.find(bound.queue), queues.names[bound.at]
    own = node.deserved[bound.at] if bound.kind == "borrowing" else 0
    was, more = getattr(node, bound.kind)[bound.at] - own, bound.most - own
    field = f"{_FIELDS[bound.kind]}.{name}"
    before, after = _written(name, was), _written(name, more)
    message = f"It would start now if the {field} of queue {bound.queue} were {after} instead of {before}."
    size = 0.5 + (more - was) / more
    yield _Idea(size, Change(f"Queue/{bound.queue}: {field}", before, after, message), stage.request, bound)


def violated(queues: QueueTree, request: GangRequest) -> list[Bound]:
    """Return every queue bound that the gang's minimum violates now, with the value it would need."""
    ask = asked(request, queues)
    found: list[Bound] = []
    for node in queues.find(request.queue).chain():
        found += _over(node, "limit", node.used, ask)
        found += _over(node, "borrowing", node.used, ask)
        if node.name in queues.limited:
            people = [("user", request.user), *(("group", group) for group in request.groups)]
            for kind, name in people:
                held = queues.people.get((node.name, kind, name)) or [0] * len(ask)
                found += _over(node, f"{kind}_limit", held, ask)
    return found


def _over(node: QueueNode, kind: str, used: Sequence[int], ask: Sequence[int]) -> list[Bound]:
    most: Sequence[float] = getattr(node, kind)
    return [
        Bound(node.name, kind, at, used[at] + amount)
        for at, amount in enumerate(ask)
        if amount and used[at] + amount > most[at]
    ]


def _written(name: str, amount: float) -> Written:
    if name == "cpu":
        return format_cpu(round(amount))
    return format_memory(round(amount)) if name == "memory" else shown(name, amount)


def _more_important(stage: PlannerTrial, queue: Queue, said: Said) -> Iterator[Change]:
    """Yield the lowest priority with which the gang starts, or others yield to it."""
    request = stage.request
    for priority in _priorities(stage, queue):
        if stage.tries <= 0:
            return
        wanted = structs.replace(request, priority=priority)
        words = _by_priority(stage.tried(wanted), request.job)
        if words:
            message = f"With priority {priority} instead of {request.priority}, {words}."
            yield from filter(None, [said(request, Change("priority", request.priority, priority, message), wanted)])
            return


def _priorities(stage: PlannerTrial, queue: Queue) -> list[int]:
    """Return the lowest few priorities just above those of gangs in its queue that run or wait."""
    request = stage.request
    running = stage.cluster.gangs.by_queue.get(request.queue, {})
    waiting = {group.priority for group in queue.groups.values() if group.queue == request.queue}
    above = {level + 1 for level in (*running, *waiting) if level >= request.priority}
    return sorted(level for level in above if level > request.priority)[:_MOST_PRIORITIES]


def _by_priority(plan: Plan, job: JobId) -> str:
    """Describe the outcome of a plan for a gang; "" if it goes on waiting."""
    if any(placed.job == job for placed in plan.placements):
        return "it would start now"
    victims = sorted({eviction.job for eviction in plan.evictions if eviction.by == job})
    if not victims:
        return ""
    more = f" and {counted(len(victims) - 1, 'other job')}" if len(victims) > 1 else ""
    return f"it would preempt job {victims[0]}{more}"
