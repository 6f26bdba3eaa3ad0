"""Why: drains and bad hardware take places from gangs that run, each as its job wants it; the launcher ends them in order.

What is cordoned runs on, what is drained yields, and what is broken yields where the job's `badHardware` says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from corral.control.fold import Folder
from corral.control.observe import Machines
from corral.control.receipts import Yielded
from corral.control.world import Job
from corral.kernel.ids import TaskKey
from corral.model.cordons import Drain
from corral.model.events import Preempted
from corral.model.placement import TaskPlacement
from corral.model.plan import Rule
from corral.model.states import TaskState

_HELD: Final = frozenset({TaskState.PREPARING, TaskState.RUNNING})


class Upkeep:
    """Has gangs yield what people drain and what machines report as broken."""

    def __init__(self, folder: Folder, machines: Machines) -> None:
        self._folder = folder
        self._machines = machines

    def look(self, now: float) -> None:
        """Have those gangs yield that are on drained nodes or hold bad hardware: O(tasks), nothing if all is well."""
        draining = {cordon.node for cordon in self._machines.cordons.values() if cordon.drain is Drain.NOW}
        if not draining and not self._machines.trouble:
            return
        for job in list(self._folder.world.jobs.values()):
            self._drain(job, draining, now)
            self._replace(job, now)

    def _drain(self, job: Job, draining: set[str], now: float) -> None:
        """Off every node that is drained, in one go; the shortest grace of those that ask for one."""
        tasks = [place for place in _places(job) if place.node in draining]
        if not tasks:
            return
        cordons = [self._machines.cordons[node] for node in dict.fromkeys(place.node for place in tasks)]
        graces = [cordon.grace_seconds for cordon in cordons if cordon.grace_seconds is not None]
        message = f"the node {cordons[0].node} is {cordons[0].reason}"
        event = Preempted(job.run.attempt, Rule.DRAIN, message, _keys(tasks), grace_seconds=min(graces, default=None))
        self._folder.have_yield(job, event, Yielded(Rule.DRAIN, message, by_user=cordons[0].by), now)

    def _replace(self, job: Job, now: float) -> None:
        """Off every node and device that is broken, where the job does not rather keep it."""
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
            self._folder.have_yield(job, event, Yielded(Rule.BAD_HARDWARE, message), now)

    def _broken(self, place: TaskPlacement, now: float, *, devices: bool) -> str:
        """What is wrong with what a task holds; "" when nothing is, or not for long enough."""
        lost = self._machines.lost(place.node, now)
        if lost:
            return lost
        sick = self._machines.unhealthy.get(place.node, {}) if devices else {}
        index = next((index for index in place.devices if index in sick), None)
        return "" if index is None else f"device {index} of {place.node} is unhealthy: {sick[index]}"


def _places(job: Job) -> Iterator[TaskPlacement]:
    for task in job.tasks.values():
        if task.state in _HELD and task.placement is not None:
            yield task.placement


def _keys(places: list[TaskPlacement]) -> tuple[TaskKey, ...]:
    return tuple(place.key for place in places)
