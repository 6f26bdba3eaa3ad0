"""Tell waiting gangs why they wait: only what is new, and what changes for a whole group only to its first gangs."""

from __future__ import annotations

from collections.abc import Mapping, Set

from corral.model.plan import Reasons
from corral.scheduler.policy.order import QueueKey
from corral.scheduler.queues.waiting_queue import Entry, Group, Queue

BEHIND = "behind-head"
"""The reason code of a gang that would fit, but would delay the head of the queue."""
YIELDING = "others-yield"
"""The reason code of a gang that starts as soon as the evicted gangs have ended."""
_RANKS_PER_KEY = 8
"""The cost of one `Queue.ahead` call, in entries of the table that `Queue.ranks` builds."""
_REFRESHED = 8
"""The most gangs of a group that get new figures per cycle, or the reason that they may not take free room.

A change of the binding constraint goes to all of them.
"""


class Reports:
    """The new reasons of one cycle."""

    def __init__(self, queue: Queue, done: Set[QueueKey], reasons: dict[str, Reasons]) -> None:
        """`done` are the gangs that have a result of their own; new reasons are written to `reasons`, by job."""
        self._queue = queue
        self._done = done
        self._reasons = reasons
        self._waiting: list[tuple[Group, int, Reasons]] = []

    def one(self, entry: Entry, reasons: Reasons, ahead: Mapping[QueueKey, int] | None = None) -> None:
        """Store reasons with a gang that does not have them yet."""
        about = self._queue.about
        if self._queue.unexplained or about not in (None, entry.request.job):
            return
        reported = entry.reported
        if reported is None or reported.binding != reasons.binding or reported.possible != reasons.possible:
            if about is not None:
                place = 0  # whoever asks counts the gangs ahead in the whole queue
            else:
                place = ahead[entry.key] if ahead else self._queue.ahead(entry.key, entry.request.user)
            entry.reported = Reasons(reasons.binding, reasons.others, place, reasons.possible)
            self._reasons[entry.request.job] = entry.reported

    def later(self, group: Group, first: int, reasons: Reasons) -> None:
        """Note why a group waits from an index on; some of its later gangs may start all the same."""
        if self._queue.unexplained:
            return
        self._waiting.append((group, first, reasons))

    def groups(self) -> None:
        """Store what was noted with the gangs that do not have it yet, and have no result of their own."""
        for group, first, reasons in self._waiting:
            self._group(group, first, reasons)
        self._waiting.clear()

    def _group(self, group: Group, first: int, reasons: Reasons) -> None:
        if reasons is group.reported and not group.fresh:
            return
        if group.reported is not None and _much_the_same(group.reported.binding.code, reasons.binding.code):
            keys = group.keys[first : first + _REFRESHED]
            keys += sorted(key for key in group.fresh if key > keys[-1])
        else:
            keys = group.keys[first:]
        many = self._queue.about is None and len(keys) * _RANKS_PER_KEY > len(self._queue)
        ahead = self._queue.ranks() if many else None
        for key in keys:
            if key not in self._done:
                self.one(group.entries[key], reasons, ahead)
        group.reported = reasons
        group.fresh.difference_update(keys)


def _much_the_same(old: str, new: str) -> bool:
    """Return whether only the first gangs of a group need the new reasons.

    A momentarily free place is for the first of them, if for any.
    """
    return old == new or BEHIND in (old, new) or YIELDING in (old, new)
