"""What the owner of an evicted gang is told."""

from __future__ import annotations

from corral.model.plan import Rule
from corral.model.requests import GangRequest
from corral.scheduler.preemption.victim import Victim


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
