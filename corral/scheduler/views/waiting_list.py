"""Show the waiting list in the order in which the next cycle handles it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heapreplace
from itertools import islice

from corral.kernel.ids import JobId
from corral.kernel.units import devices
from corral.model.messages import by_name
from corral.model.plan import Reasons
from corral.model.queue_views import LineEntry, WaitingLine
from corral.model.records import rfc3339
from corral.model.views import EstimateView, ReasonView
from corral.scheduler.planners.builtin.reason_reports import YIELDING
from corral.scheduler.policy.order import QueueKey, rank
from corral.scheduler.policy.policy import Policy
from corral.scheduler.queues.gang_resources import asked
from corral.scheduler.queues.queue_tree import BASE, QueueNode, QueueTree
from corral.scheduler.queues.waiting_queue import Entry, Group, Queue

EstimateOf = Callable[[JobId, Reasons | None], EstimateView | None]
"""Says when a job is likely to start; asked with the reasons why it waits, as far as they are known."""


def _unestimated(_: JobId, _reasons: Reasons | None) -> None:
    """The answer where nobody looks into the future."""


def waiting_line(
    queues: QueueTree,
    queue: Queue,
    policy: Policy,
    now: float,
    *,
    name_of: Callable[[JobId], str],
    estimate_of: EstimateOf = _unestimated,
    only: str = "",
    limit: int = 100,
    after: int = 0,
) -> WaitingLine:
    """Return up to `limit` waiting jobs behind position `after`, optionally `only` of one queue and those below it.

    A job is listed once, at the position of its first gang, even if several of its gangs wait.
    """
    rows: dict[JobId, list[tuple[Group, Entry]]] = {}
    for group, entry in in_line(queues, queue, policy, now):
        rows.setdefault(entry.request.job, []).append((group, entry))
    wanted = {node.name for node in _below(queues.nodes[only])} if only in queues.nodes else {only}
    found = [
        (position, parts)
        for position, parts in enumerate(rows.values(), 1)
        if not only or parts[0][1].request.queue in wanted
    ]
    shown = list(islice((each for each in found if each[0] > after), limit))
    items = tuple(_entry(queues, at, parts, name_of, estimate_of) for at, parts in shown)
    more = bool(shown) and shown[-1][0] < found[-1][0]
    return WaitingLine(rfc3339(now), len(found), items, str(shown[-1][0]) if more else None)


def in_line(queues: QueueTree, queue: Queue, policy: Policy, now: float) -> Iterator[tuple[Group, Entry]]:
    """Yield every waiting gang with its group in the order of the next cycle: O(n log n) in the waiting gangs.

    Nominated gangs come first, then all gangs that wait to start, then growth. Under a fair policy, queues follow their
    standing and users take turns in each queue; opportunistic gangs (priority below 0) come after all others that
    start.
    """
    groups = list(queue.groups.values())
    first = {key for group in groups for key, entry in group.entries.items() if entry.request.job in queue.nominated}
    yield from _merged(groups, lambda key: key in first)
    starting = [group for group in groups if group.starts]
    parts = [starting]
    if policy.fair:
        parts = [[each for each in starting if each.priority >= 0], [each for each in starting if each.priority < 0]]
    for part in (*parts, [group for group in groups if not group.starts]):
        for members in _by_turn(queues, part, now) if policy.fair else (part,):
            if len({group.user for group in members}) > 1:
                yield from _taking_turns(queues, members, lambda key: key not in first, now)
            else:
                yield from _merged(members, lambda key: key not in first)


def ahead_of(queues: QueueTree, queue: Queue, policy: Policy, now: float, job: JobId) -> list[JobId]:
    """Return the jobs ahead of a job's first gang in the next cycle, in order; empty if it does not wait.

    A job that can never start as it is holds up nobody, and is left out.
    """
    found: list[JobId] = []
    for group, entry in in_line(queues, queue, policy, now):
        if entry.request.job == job:
            return list(dict.fromkeys(found))
        if can_start(group, entry):
            found.append(entry.request.job)
    return []


def can_start(group: Group, entry: Entry) -> bool:
    """Return whether a waiting gang could start at some time, as far as a cycle has told."""
    reported = entry.reported or group.reported
    return reported is None or reported.possible


def job_can_start(queue: Queue, job: JobId) -> bool:
    """Return whether the first waiting gang of a job could start at some time; False if none waits."""
    entry = queue.first(job)
    return entry is not None and can_start(queue.groups[entry.group], entry)


def _merged(groups: list[Group], wanted: Callable[[object], bool]) -> Iterator[tuple[Group, Entry]]:
    """Yield the gangs of some groups in order."""
    for key, at in sorted((key, at) for at, group in enumerate(groups) for key in group.keys if wanted(key)):
        yield groups[at], groups[at].entries[key]


def _taking_turns(
    queues: QueueTree, groups: list[Group], wanted: Callable[[object], bool], now: float
) -> list[tuple[Group, Entry]]:
    """Return the gangs of a queue in order, with users taking turns.

    Of equal gangs, the next one belongs to the user who would hold least by then.
    """
    asks = [asked(next(iter(group.entries.values())).request, queues) for group in groups]
    keys = [[key for key in group.keys if wanted(key)] for group in groups]
    found: list[tuple[int, Entry]] = []
    uses: dict[tuple[str, str], float] = {}

    def item(at: int, place: int) -> tuple[QueueKey, float, QueueKey, int, int]:
        key, whose = keys[at][place], (groups[at].queue, groups[at].user)
        if whose not in uses:
            uses[whose] = queues.user_standing(*whose, now)
        return rank(key), uses[whose], key, at, place

    heap = [item(at, 0) for at in range(len(groups)) if keys[at]]
    heapify(heap)
    try:
        while heap:
            _, use, key, at, place = heap[0]
            if item(at, place)[1] != use:
                heapreplace(heap, item(at, place))
                continue
            group = groups[at]
            found.append((at, group.entries[key]))
            queues.charge(group.queue, group.user, (), asks[at])
            uses.pop((group.queue, group.user))
            if place + 1 < len(keys[at]):
                heapreplace(heap, item(at, place + 1))
            else:
                heappop(heap)
    finally:
        for at, _ in found:
            queues.charge(groups[at].queue, groups[at].user, (), asks[at], -1)
    return [(groups[at], entry) for at, entry in found]


def _by_turn(queues: QueueTree, groups: list[Group], now: float) -> Iterator[list[Group]]:
    """Yield the groups queue by queue, from the top of the tree down, the lowest standing first."""
    members: dict[str, list[Group]] = {}
    for group in groups:
        members.setdefault(group.queue, []).append(group)
    for name in members:
        queues.find(name)
    below = {node.name for name in members for node in queues.find(name).chain()}

    def walk(node: QueueNode) -> Iterator[list[Group]]:
        if node.name in members and node.parent is not None:
            yield members[node.name]
        inside = [child for child in node.children if child.name in below]
        for child in sorted(inside, key=lambda child: (queues.standing(child, now), child.name)):
            yield from walk(child)

    yield from walk(queues.root)


def _below(node: QueueNode) -> Iterator[QueueNode]:
    yield node
    for child in node.children:
        yield from _below(child)


def _entry(
    queues: QueueTree,
    position: int,
    parts: list[tuple[Group, Entry]],
    name_of: Callable[[JobId], str],
    estimate_of: EstimateOf,
) -> LineEntry:
    """Build the row of a job: its total waiting request, or for a running job its possible growth."""
    group, entry = parts[0]
    request, reported = entry.request, entry.reported or group.reported
    grows = not any(each.starts for each, _ in parts)
    asking = [each.request for of, each in parts if of.starts or grows]
    totals = [asked(each, queues, every=grows)[: len(BASE)] for each in asking]
    amounts, cpu, memory = (sum(amounts) for amounts in zip(*totals, strict=True))
    roles = [role for each in asking for role in each.roles]
    models = {role.devices.model for role in roles if role.devices.count or role.devices.ids}
    return LineEntry(
        position=position,
        job=request.job,
        name=name_of(request.job),
        user=request.user,
        queue=request.queue,
        priority=request.priority,
        submitted_at=rfc3339(request.submitted_at),
        tasks=sum(len(role.indexes) if grows else role.minimum for role in roles),
        devices=devices(amounts),
        cpu_millis=cpu,
        memory_bytes=memory,
        model=models.pop() if len(models) == 1 else "",
        level=request.topology.required,
        grows=grows,
        yielding=any(reported is not None and reported.binding.code == YIELDING for reported in _reported(parts)),
        reason=_reason(reported, name_of),
        possible=can_start(group, entry),
        estimate=estimate_of(request.job, reported),
    )


def _reported(parts: list[tuple[Group, Entry]]) -> Iterator[Reasons | None]:
    return (entry.reported or group.reported for group, entry in parts)


def _reason(reported: Reasons | None, name_of: Callable[[JobId], str]) -> ReasonView | None:
    if reported is None:
        return None
    message = by_name(reported.binding.message, lambda job: name_of(JobId(job)))
    return ReasonView(reported.binding.code, message, reported.binding.counts)
