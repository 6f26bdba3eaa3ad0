"""Which of the nodes with room a task gets: the protocol of a policy's *place* part, and the default part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from corral.model.requests import GangRequest
from corral.scheduler.cluster.node_room import NodeRoom
from corral.scheduler.cluster.ranked_slots import Placing
from corral.scheduler.placement.shape import TaskShape

if TYPE_CHECKING:
    from corral.scheduler.cluster.cluster import Cluster
    from corral.scheduler.queues.waiting_queue import Queue

Waiting = Iterable[tuple[GangRequest, int]]
"""One gang of each group of equal waiting gangs, with their number; computed only as far as it is read."""


class Place(Protocol):
    """A rank of the nodes that have room. It sees values only, and its answer depends on nothing else.

    It is asked where one node is chosen for all remaining tasks of a role. Whether a gang fits, and in which racks and
    blocks, is not its business: wider cells are still tried narrowest and tightest first. It may also have the method
    `device(shape, node, context)`, which returns indexes of devices in the order in which tasks get parts of them.
    A built-in part may have the attribute `ranks_alike`: with True, nodes with equal processors and devices have equal
    ranks, whatever their names and memory, and are asked about once.
    """

    @property
    def changes_with_time(self) -> bool:
        """Whether its answer may change without an event; plans are then made every `Policy.review_seconds`."""
        ...

    @property
    def fills(self) -> bool:
        """Whether the node with the lowest rank keeps it while tasks of this shape start there.

        Equal small gangs are then placed together, which is faster. False is always correct.
        """
        ...

    def prepare(self, cluster: Cluster, waiting: Waiting, now: float) -> object:
        """Return what `rank` needs to know of the whole, once for each plan at `now` (seconds since 1970).

        Plans that prepare equal values share their ranks. Another value costs a rank of each node for each waiting
        shape, so it should change seldom. Change nothing in `cluster`.
        """
        ...

    def rank(self, shape: TaskShape, node: NodeRoom, context: object) -> int:
        """Return the rank of a node with room for a task of the shape: 0 to 2**24 - 1, the lowest first.

        `context` is what `prepare` returned. On ties the node with the least room comes first, then the first one.
        """
        ...


@dataclass(frozen=True)
class Tightest:
    """The node with the least room for such tasks, on ties the one with the fewest free devices; kept by `Slots`."""

    changes_with_time: ClassVar[bool] = False
    fills: ClassVar[bool] = True

    def prepare(self, cluster: Cluster, waiting: Waiting, now: float) -> object:
        """Return None."""
        return None

    def rank(self, shape: TaskShape, node: NodeRoom, context: object) -> int:
        """Return 0: without a rank, the node with the least room comes first."""
        return 0


def placing(part: Place, cluster: Cluster, queue: Queue, now: float) -> Placing | None:
    """Return the part with what it prepared for a plan; None for the default part, which needs no ranks."""
    if isinstance(part, Tightest):
        return None
    waiting = ((group.entries[group.keys[0]].request, len(group.keys)) for group in queue.groups.values())
    return Placing(part, part.prepare(cluster, waiting, now))
