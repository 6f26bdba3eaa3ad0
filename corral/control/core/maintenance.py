"""Have gangs yield that run on drained or tainted nodes, or on broken hardware, as each job wants it.

What is cordoned runs on, what is drained or tainted (`NoExecute`) yields, and what is broken yields where the job's
`badHardware` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Final

import msgspec

from corral.control.core.job_events import JobEvents
from corral.control.core.machines import Machines
from corral.control.core.receipts import PreemptionTerms
from corral.control.core.world import Job
from corral.kernel.ids import TaskKey
from corral.model.cordons import Drain
from corral.model.events import Preempted
from corral.model.inventory import Taint
from corral.model.placement import TaskPlacement
from corral.model.plan import Rule
from corral.model.request_builder import node_rules
from corral.model.requests import NodeRules
from corral.model.states import TaskState
from corral.scheduler.placement.node_fit import stays_until

_MOST_SEARCHES: Final = 16
"""Jobs of one look for which the time of return is estimated; for further ones it is unknown."""
_HELD: Final = frozenset({TaskState.PREPARING, TaskState.RUNNING})


class Maintenance:
    """Preempts gangs on drained, tainted or lost nodes and on unhealthy devices."""

    def __init__(
        self, job_events: JobEvents, machines: Machines, grace_of: Callable[[Job, float | None], float | None]
    ) -> None:
        """`grace_of` returns the grace of a job's tasks, given the seconds that a drain asks for, if any."""
        self._grace_of = grace_of
        self._job_events = job_events
        self._machines = machines
        self._searched = 0

    def look(self, now: float) -> float | None:
        """Preempt gangs on drained or tainted nodes or bad hardware; returns the time of the next look.

        None when nothing is due without a new event. O(tasks); returns at once when nothing is drained or broken.
        """
        self._searched = 0
        draining = {cordon.node for cordon in self._machines.cordons.values() if cordon.drain is Drain.NOW}
        if not draining and not self._machines.trouble:
            return None
        loss = self._machines.next_loss(now)
        again = inf if loss is None else loss
        for job in list(self._job_events.world.jobs.values()):
            self._drain(job, draining, now)
            self._replace(job, now)
            if self._machines.tainted:
                again = min(again, self._send_away(job, now))
        return again if again < inf else None

    def _drain(self, job: Job, draining: set[str], now: float) -> None:
        """Preempt the job from all drained nodes in one step, with the shortest grace of the drains that set one."""
        tasks = [place for place in _places(job) if place.node in draining]
        if not tasks:
            return
        cordons = [self._machines.cordons[node] for node in dict.fromkeys(place.node for place in tasks)]
        graces = [cordon.grace_seconds for cordon in cordons if cordon.grace_seconds is not None]
        message = f"the node {cordons[0].node} is {cordons[0].reason}"
        event = Preempted(job.run.attempt, Rule.DRAIN, message, _keys(tasks), grace_seconds=min(graces, default=None))
        self._leave(job, event, now, by_user=cordons[0].by)

    def _replace(self, job: Job, now: float) -> None:
        """Preempt the job from lost nodes unless it keeps them, and from unhealthy devices if it replaces them."""
        wish = job.document.spec.bad_hardware
        if wish == "keep":
            return
        found = [(place, self._broken(place, now, devices=wish == "replace")) for place in _places(job)]
        bad = [(place, why) for place, why in found if why]
        if bad:
            message = bad[0][1] + (
                f", and {len(bad) - 1} more of its tasks hold what is broken" if len(bad) > 1 else ""
            )
            event = Preempted(job.run.attempt, Rule.BAD_HARDWARE, message, _keys([place for place, _ in bad]))
            self._leave(job, event, now)

    def _send_away(self, job: Job, now: float) -> float:
        """Preempt the job from nodes whose taints it does not tolerate, or no longer.

        Returns the time when the next toleration of its other tasks ends, infinity for none.
        """
        going: list[TaskPlacement] = []
        why, again = "", inf
        for place in _places(job):
            taints = self._machines.tainted.get(place.node)
            if not taints:
                continue
            until, taint = stays_until(taints.items(), _rules(job, place.role), job.run.placed_at or 0.0)
            if until > now:
                again = min(again, until)
            elif taint is not None:
                going.append(place)
                longer = "" if until == taints[taint] else " any longer"
                why = why or f"the node {place.node} has the taint {_spoken(taint)}, which it does not tolerate{longer}"
        if going:
            event = Preempted(job.run.attempt, Rule.TAINT, why, _keys(going))
            self._leave(job, event, now)
        return again

    def _leave(self, job: Job, event: Preempted, now: float, *, by_user: str = "") -> None:
        """Preempt tasks of a job; the time of return is estimated for the first jobs of a look only."""
        back = None
        if self._searched < _MOST_SEARCHES:
            self._searched += 1
            back = self._job_events.world.planner.likely_back(job.id, event.tasks, now)
        event = msgspec.structs.replace(event, grace_seconds=self._grace_of(job, event.grace_seconds))
        why = PreemptionTerms(event.rule, event.message, by_user=by_user, back_at=back)
        self._job_events.preempt(job, event, why, now)

    def _broken(self, place: TaskPlacement, now: float, *, devices: bool) -> str:
        """The defect of a task's node or devices; "" when there is none, or not for long enough."""
        lost = self._machines.lost(place.node, now)
        if lost:
            return lost
        sick = self._machines.unhealthy.get(place.node, {}) if devices else {}
        index = next((index for index in place.devices if index in sick), None)
        return "" if index is None else f"device {index} of {place.node} is unhealthy: {sick[index]}"


def _rules(job: Job, role: str) -> NodeRules:
    spec = job.document.spec
    return node_rules(spec.nodes, *(each.nodes for each in spec.roles if each.name == role)) or NodeRules()


def _spoken(taint: Taint) -> str:
    return f"{taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"


def _places(job: Job) -> Iterator[TaskPlacement]:
    for task in job.tasks.values():
        if task.state in _HELD and task.placement is not None:
            yield task.placement


def _keys(places: list[TaskPlacement]) -> tuple[TaskKey, ...]:
    return tuple(place.key for place in places)
