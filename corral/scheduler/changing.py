"""Why: "it waits" is half an answer; the other half is the smallest thing that would let it start, proven on the scheduler.

What could be given up is tried one thing at a time: first whether there would be room, then, the smallest first, whether
the next cycle would place the gang. Only what it would place is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from msgspec import structs

from corral.kernel.ids import JobId
from corral.kernel.units import counted, format_cpu, format_duration, format_memory
from corral.model.outlook import Change, Written
from corral.model.plan import Plan, Reasons
from corral.model.requests import GangRequest
from corral.scheduler.amounts import asked
from corral.scheduler.cluster import Cluster
from corral.scheduler.cycle import YIELDING
from corral.scheduler.policy import Policy
from corral.scheduler.queue import Queue
from corral.scheduler.queues import QueueNode, QueueTree, shown
from corral.scheduler.stage import Bound, Stage, first_that_fits
from corral.scheduler.wishes import Wish, amounts, ladders

MOST_CHANGES = 3
"""So many are told, the smallest first."""
_MOST_QUEUES = 16
_MOST_PRIORITIES = 4
_MOST_VICTIMS = 4096
"""Where more run, nobody looks who would yield to a higher priority: to rank them all costs too much."""
_SHORT_OF = ("not-enough-", "fragmented", "no-cell-holds-", "behind-head")
"""What a gang is told that may be helped by asking for less memory and the like."""
_NO_HELP = ("starts-now", YIELDING, "no-nodes", "engine-unknown")
_FIELDS = {"limit": "limit", "borrowing": "borrowingLimit", "user_limit": "userLimit", "group_limit": "groupLimit"}


Said = Callable[[GangRequest, Change, GangRequest], Change | None]
"""The change of a request into another as its job's file says it; None where a file cannot say it."""


def as_it_is(_asked: GangRequest, change: Change, _wanted: GangRequest) -> Change:
    """Every change can be said."""
    return change


class _Idea(NamedTuple):
    """A change that may help, and what it would make of the gang and of the bounds."""

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
    """At most three single changes with each of which the next cycle would place the job, the smallest first.

    `reasons` are why it waits; what `said` knows no words for is left out. Tasks that join a gang that runs already, and
    whatever HiveD decides, have none.
    """
    entry = queue.first(job)
    if entry is None or reasons.binding.code in _NO_HELP or (policy.hived and cluster.hived is not None):
        return ()
    request = entry.request
    if request.beside or not any(role.minimum for role in request.roles):
        return ()
    stage = Stage(cluster, queue, policy, entry, now)
    ideas = [*_longer(stage), *_elsewhere(stage, reasons), *_raised(stage), *_lesser(stage, reasons)]
    found: list[Change] = []
    for idea in sorted(ideas, key=lambda idea: (idea.size, idea.change.path)):
        if len(found) < MOST_CHANGES and stage.tries > 0 and stage.starts(idea.request, idea.bound):
            found += filter(None, [said(request, idea.change, idea.request)])
    if len(found) < MOST_CHANGES and len(cluster.gangs.by_job) <= _MOST_VICTIMS:
        found += _more_important(stage, queue, said)
    return tuple(found)


def _lesser(stage: Stage, reasons: Reasons) -> Iterator[_Idea]:
    """Of each ladder of lesser wishes the first that finds room."""
    levels = next((index.tree.levels for index in stage.cluster.engines.values()), ())
    rungs = [ladder for ladder in ladders(stage.request, levels) if ladder]
    codes = [reason.code for reason in (reasons.binding, *reasons.others)]
    if any(code.startswith(_SHORT_OF) for code in codes):
        rungs += [ladder for ladder in amounts(stage.request) if ladder]
    for ladder in sorted(rungs, key=lambda ladder: ladder[0].size):
        at = first_that_fits(stage, [wish.request for wish in ladder])
        if at is not None:
            wish: Wish = ladder[at]
            yield _Idea(wish.size, wish.change, wish.request)


def _longer(stage: Stage) -> Iterator[_Idea]:
    """A bound on its own duration, so that it may pass the first that waits."""
    head, request = stage.head, stage.request
    if head is None:
        return
    left = (head.start - stage.now) // 60 * 60
    if 60 <= left < float("inf") and not 0 < request.max_duration_seconds <= left:
        before: Written = format_duration(request.max_duration_seconds) if request.max_duration_seconds else ""
        after = format_duration(int(left))
        words = (
            f"with a maxDuration of {after}: it would be over before job {head.job}, the first that waits, can start"
        )
        lesser = structs.replace(request, max_duration_seconds=int(left))
        yield _Idea(0.05, Change("maxDuration", before, after, f"It would start now {words}."), lesser)


def _elsewhere(stage: Stage, reasons: Reasons) -> Iterator[_Idea]:
    """Another queue without queues below it, where a bound holds the gang back here or somebody owns cells there."""
    queues, code = stage.cluster.queues, reasons.binding.code
    if not (code.endswith("-limit") or code == "kept-for-others" or stage.cluster.ownership.cells):
        return
    leaves = [name for name, node in sorted(queues.nodes.items()) if name in queues.specs and not node.children]
    for name in [name for name in leaves if name != stage.request.queue][:_MOST_QUEUES]:
        lesser = structs.replace(stage.request, queue=name)
        if stage.looks > 0 and stage.fits(lesser):
            change = Change("queue", stage.request.queue, name, f"It would start now in queue {name}.")
            yield _Idea(0.3, change, lesser)


def _raised(stage: Stage) -> Iterator[_Idea]:
    """A bound of a queue raised by just what is missing, where one alone is in the way."""
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
    """Every bound that what a gang needs to begin would pass now, with what it would have to be at least."""
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


def _more_important(stage: Stage, queue: Queue, said: Said) -> Iterator[Change]:
    """The lowest priority with which it comes first, or others yield to it."""
    request = stage.request
    for priority in _priorities(stage, queue):
        if stage.tries <= 0:
            return
        wanted = structs.replace(request, priority=priority)
        words = _by_priority(stage.tried(wanted), request.job)
        if words:
            message = f"With priority {priority} instead of {request.priority} {words}."
            yield from filter(None, [said(request, Change("priority", request.priority, priority, message), wanted)])
            return


def _priorities(stage: Stage, queue: Queue) -> list[int]:
    """Just above each priority of its queue that is higher or equal, of those that run or wait; the lowest few."""
    request = stage.request
    running = stage.cluster.gangs.by_queue.get(request.queue, {})
    waiting = {group.priority for group in queue.groups.values() if group.queue == request.queue}
    above = {level + 1 for level in (*running, *waiting) if level >= request.priority}
    return sorted(level for level in above if level > request.priority)[:_MOST_PRIORITIES]


def _by_priority(plan: Plan, job: JobId) -> str:
    """What becomes of a gang in a plan; "" when it goes on waiting."""
    if any(placed.job == job for placed in plan.placements):
        return "it would start now"
    victims = sorted({eviction.job for eviction in plan.evictions if eviction.by == job})
    if not victims:
        return ""
    more = f" and {counted(len(victims) - 1, 'other job')}" if len(victims) > 1 else ""
    return f"it would start as soon as job {victims[0]}{more} had yielded to it"
