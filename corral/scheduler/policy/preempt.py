"""Who may be preempted for a waiting gang: the protocol of a policy's *preempt* part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeGuard, runtime_checkable

from corral.model.requests import GangRequest
from corral.scheduler.preemption.victim import Victim
from corral.scheduler.preemption.view import PreemptionView


class Preempt(Protocol):
    """The running gangs that may be preempted for a waiting one, with their cost.

    It sees values only, and its answer depends on nothing else. The planner chooses from the candidates: the fewest
    first ones that make room, without those that turn out not to be in the way. It never asks about gangs that would not
    fit anyway. Owners of cells take them back from guests by themselves, whatever this part says.
    """

    @property
    def changes_with_time(self) -> bool:
        """Whether its answer may change without an event; plans are then made every `Policy.review_seconds`."""
        ...

    def may_have(self, gang: GangRequest, ask: Sequence[int] | None, view: PreemptionView) -> bool:
        """Return False only if `candidates` would be empty, for whatever `ask` if that is None.

        It is asked once or twice for each waiting shape and cycle, so it should cost little. True is always correct.
        """
        ...

    def candidates(self, gang: GangRequest, ask: Sequence[int], view: PreemptionView) -> Sequence[Victim]:
        """Return the victims that may be evicted for a waiting gang, in the order in which they should go.

        `ask` is what the gang needs to begin: thousandths of devices, thousandths of processors, bytes of memory, then
        thousandths of devices of each model that queues name (`view.fairness.queues.names`). Each victim is made by
        `view.whole` or `view.spare`, which leave out what must not be evicted.
        """
        ...


@runtime_checkable
class YieldsLater(Protocol):
    """A *preempt* part that also says which waiting gangs will yield to the head of the queue once they run.

    Such a gang may start on the head's reserved place: it cannot delay the head, who takes the place back.
    """

    def yields_later(self, gang: GangRequest, head: GangRequest, view: PreemptionView) -> bool:
        """Return whether `gang`, if it starts now, will be a candidate for `head` while it is behind it in order."""
        ...


def yields_later(part: Preempt) -> TypeGuard[YieldsLater]:
    """Return whether a part is a `YieldsLater`, in a fraction of the 14 µs of `isinstance`."""
    return hasattr(part, "yields_later")
