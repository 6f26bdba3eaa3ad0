"""Name every bound of queues, users and groups that keeps a gang waiting beside the reason that was found first."""

from __future__ import annotations

from itertools import islice
from typing import Final

from msgspec import structs

from corral.model.plan import Reason, Reasons
from corral.model.requests import GangRequest
from corral.scheduler.cells.owned_placement import owner_of
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.placement.trial import Trial
from corral.scheduler.queues.gang_resources import asked, with_extra

_MOST: Final = 5
"""Bounds that are named beside the first one."""


def with_other_bounds(cluster: Cluster, request: GangRequest, reasons: Reasons) -> Reasons:
    """Return the reasons with the other bounds that forbid the gang to take what it needs to start, or to grow by one.

    Bounds that it could never meet stand for those that are used up now. Cells that its queue owns have no bounds.
    """
    queues = cluster.queues
    if queues.plain or owner_of(Trial(cluster), request):
        return reasons
    known = {reasons.binding.message, *(each.message for each in reasons.others)}
    never = queues.nevers(request.queue, asked(request, queues), request.groups)
    found = [Reason(*each) for each in islice(never, _MOST + 1)]
    if not found:
        grows = not any(role.minimum for role in request.roles)
        ask = asked(with_extra(request, int(grows)), queues, every=True)
        refused = queues.refusals(request.queue, request.user, request.groups, ask)
        found = [Reason(*each) for each in islice(refused, _MOST + 1)]
    more = tuple(each for each in found if each.message not in known)[:_MOST]
    return structs.replace(reasons, others=(*reasons.others, *more)) if more else reasons
