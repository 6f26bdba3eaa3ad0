"""Build the evictions of gangs that HiveD preempts, each under a rule that receipts know."""

from __future__ import annotations

from corral.model.plan import Eviction, Rule
from corral.model.requests import GangRequest
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.running_gang import RunningGang
from corral.scheduler.planners.hived.algorithm import Group
from corral.scheduler.planners.hived.pod_mapping import job_in


def evictions(cluster: Cluster, group: Group, request: GangRequest, now: float) -> list[Eviction]:
    """Return the gangs that must end before a group can use its reserved cells; HiveD ends whole groups."""
    users = {cell.user.name: cell.user for cell, _ in group.held() if cell.user is not None}
    jobs = {job_in(name): user for name, user in users.items()}
    found = [(cluster.gangs.by_job[job], user) for job, user in jobs.items() if job in cluster.gangs.by_job]
    return [_eviction(gang, _rule(gang, user), request, now) for gang, user in found if gang.stays]


def _rule(gang: RunningGang, user: Group) -> Rule:
    if gang.priority < 0:
        return Rule.OPPORTUNISTIC
    return Rule.PRIORITY if user.guaranteed else Rule.GUARANTEE


def _eviction(gang: RunningGang, rule: Rule, request: GangRequest, now: float) -> Eviction:
    by = f"job {request.job} of {request.user or 'somebody'}"
    messages = {
        Rule.OPPORTUNISTIC: f"It ran opportunistically in cells that go to virtual cluster {request.queue} for {by}.",
        Rule.GUARANTEE: f"It ran as a guest in cells that go to virtual cluster {request.queue} for {by}.",
        Rule.PRIORITY: f"It gives way to {by}, of the same virtual cluster and with a higher priority.",
    }
    return Eviction(
        gang.job,
        gang.attempt,
        rule,
        messages[rule],
        by=request.job,
        by_queue=request.queue,
        cost_device_seconds=gang.cost(now),
        back_at=now + request.max_duration_seconds if request.max_duration_seconds else None,
    )
