"""The evictions of chosen victims, and what the owner of an evicted gang is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corral.kernel.ids import JobId
from corral.model.plan import Eviction, Rule
from corral.model.requests import GangRequest
from corral.scheduler.preemption.return_estimate import ReturnEstimates
from corral.scheduler.preemption.victim import Victim


def evictions(
    victims: Sequence[Victim], request: GangRequest, now: float, estimates: ReturnEstimates | None
) -> Iterator[Eviction]:
    """Yield one eviction for each victim gang: all of it, or only the tasks that it can spare.

    With `estimates` it tells when the gang is likely to return.
    """
    by_gang: dict[JobId, list[Victim]] = {}
    for victim in victims:
        by_gang.setdefault(victim.gang.job, []).append(victim)
    for of_gang in by_gang.values():
        whole = next((victim for victim in of_gang if victim.rule is not Rule.SHRINK), None)
        victim, gang = whole or of_gang[0], of_gang[0].gang
        spared = () if whole else tuple(sorted(task for each in of_gang for task in each.tasks))
        yield Eviction(
            job=gang.job,
            job_attempt=gang.attempt,
            rule=victim.rule,
            message=message_to_owner(victim, request),
            tasks=spared,
            by=request.job,
            by_queue=request.queue,
            cost_device_seconds=victim.cost if whole else gang.cost_of(spared, now),
            back_at=None if estimates is None else estimates.back_at(gang, spared, victim.rule, request),
        )


def message_to_owner(victim: Victim, request: GangRequest) -> str:
    """Return why a gang is evicted for this request."""
    by = f"job {request.job} of {request.user or 'somebody'}"
    match victim.rule:
        case Rule.OPPORTUNISTIC:
            return f"It ran with priority {victim.gang.priority}, on devices that no other job wanted. Now {by} needs them."
        case Rule.GUARANTEE:
            return f"It ran as a guest in cells of queue {request.queue}. Now {by} needs them."
        case Rule.SHRINK:
            return f"Shrunk towards its minimum to make room for {by}."
        case Rule.ORDER:
            return f"The policy's order puts {by} first."
        case Rule.CONSOLIDATION:
            return f"Moved to other devices to make room for {by}."
        case Rule.GROW:
            return "Restarts from its checkpoint with more tasks."
        case Rule.RECLAIM:
            return (
                f"Queue {request.queue} reclaims its share for {by}. Queue {victim.gang.queue} holds more than its own."
            )
        case _:
            return f"J{by[1:]} has priority {request.priority}, this job has {victim.gang.priority}."
