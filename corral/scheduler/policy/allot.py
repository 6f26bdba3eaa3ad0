"""The sizes of elastic gangs: the protocol of a policy's *allot* part, and the built-in one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, TypeGuard

from corral.kernel.ids import JobId
from corral.model.requests import GangRequest
from corral.scheduler.cluster.cluster import Cluster


class ElasticGang(NamedTuple):
    """A gang that can run with fewer than all its tasks, waiting or running."""

    request: GangRequest
    """All tasks that it may have."""
    held: int
    """The number of tasks that run and are not told to end; 0: it waits to start."""

    @property
    def least(self) -> int:
        """Return the fewest tasks that it can run with."""
        return max(1, sum(role.minimum for role in self.request.roles))

    @property
    def most(self) -> int:
        """Return the most tasks that it can use."""
        return sum(len(role.indexes) for role in self.request.roles)

    @property
    def least_devices(self) -> int:
        """Return the devices of its smallest size."""
        return sum(role.devices.count * role.minimum for role in self.request.roles)

    @property
    def task_devices(self) -> int:
        """Return the devices of each task beyond the smallest size; 0 if a role that grows uses none."""
        return min((role.devices.count for role in self.request.roles if len(role.indexes) > role.minimum), default=0)

    @property
    def spare_devices(self) -> int:
        """Return the devices that it holds beyond its smallest size; below 0 if it waits for those."""
        return (self.held - self.least) * self.task_devices if self.held else -self.least_devices

    def devices_of(self, tasks: int) -> int:
        """Return the devices of a size."""
        return self.least_devices + (tasks - self.least) * self.task_devices


class Target(NamedTuple):
    """The size that an elastic gang should have, and the devices that it should use."""

    tasks: int
    """The number of tasks in all its roles, from its `least` to its `most`; 0 under a part for `every_gang`: none now."""
    model: str = ""
    """The model of the devices that its next tasks get; "" leaves what the gang asks for."""


class Allot(Protocol):
    """The sizes of elastic gangs. It sees values only, and its answer depends on nothing else.

    It may also have the attribute `every_gang`. With True it decides for gangs that are not elastic as well, except those
    that end or start in several parts. A target may then have 0 tasks: the gang does not run now. A running gang with such
    a target, or on another model than its target's, ends as preempted and waits.
    """

    @property
    def changes_with_time(self) -> bool:
        """Whether its answer may change without an event; plans are then made every `Policy.review_seconds`."""
        ...

    def targets(self, cluster: Cluster, gangs: Iterable[ElasticGang], now: float) -> Mapping[JobId, Target]:
        """Return the targets of elastic gangs at `now` (seconds since 1970), by job.

        A gang without a target gets as many tasks as room and bounds allow. A gang below its target gets no more tasks
        than the target, as far as there is room. A running gang above it gives up its highest tasks at once.
        `gangs` is computed only as far as it is read. Change nothing in `cluster`; `cluster.history` has the past.
        """
        ...


class PreparedAllot(Allot, Protocol):
    """An *allot* part of which most work follows from events alone, so that a plan without an event need not repeat it.

    An installed part is asked for `targets` at each plan. A built-in one may also have the method `targets_until`, which
    says of what was prepared until when, in seconds since 1970, the targets that it gave last hold without an event. No
    plan is made before that time for them alone.
    """

    def prepare(self, cluster: Cluster, gangs: Iterable[ElasticGang]) -> object:
        """Return what the targets follow from beside the time; asked again after each event."""
        ...

    def targets_of(self, prepared: object, cluster: Cluster, now: float) -> Mapping[JobId, Target]:
        """Return the same as `targets`; the very same mapping while no target of what was prepared changes."""
        ...


def prepares(part: Allot) -> TypeGuard[PreparedAllot]:
    """Return whether a part is a `PreparedAllot`, in a fraction of the time of `isinstance`."""
    return hasattr(part, "targets_of")


@dataclass(frozen=True)
class AsManyAsFit:
    """Every elastic gang gets as many tasks as room and bounds allow, and keeps them until others need them."""

    changes_with_time: ClassVar[bool] = False

    def targets(self, cluster: Cluster, gangs: Iterable[ElasticGang], now: float) -> Mapping[JobId, Target]:
        """Return no target."""
        return {}
