"""Persist the past usage of queues and users, so that a restart does not reset fair ordering.

Between two changes the decaying average follows from the last value and the current usage. So it is written only when
the usage changes, in the same transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from corral.control.core.pending_writes import PendingWrites
from corral.model.queues import QueueUsage, UserUsage
from corral.scheduler.queues.queue_tree import QueueTree


class UsageHistory:
    """The stored past usage of queues and users; `pending` receives the changes."""

    def __init__(self, found: Sequence[QueueUsage] = (), of_users: Sequence[UserUsage] = ()) -> None:
        self.written = {usage.queue: usage for usage in found}
        self.of_users = of_users
        """The past usage of users that was stored when control began."""
        self._tree: QueueTree | None = None

    def fork(self, tree: QueueTree, copied: QueueTree) -> UsageHistory:
        """An independent copy; `copied` is the copy of the queues `tree`."""
        twin = UsageHistory((), self.of_users)
        twin.written = dict(self.written)
        twin._tree = copied if self._tree is tree else None
        return twin

    def fold(self, pending: PendingWrites, tree: QueueTree, now: float) -> None:
        """Write the changes since the last call: O(queues with a half-life, and users whose usage changed)."""
        configured, self._tree = tree is not self._tree, tree
        if configured:
            tree.users.forget(now, tree.half_life)
        for key in tree.users.changed:
            pending.user_usage[key] = tree.users.usage(key)
        tree.users.changed.clear()
        for node in tree.decaying:
            written = self.written.get(node.name)
            if configured or (written.at if written else 0.0) != node.seen:
                usage = tree.past_use(node)
                if usage != written and (written or usage.at):
                    self.written[node.name] = pending.usage[node.name] = usage
        if configured:
            for queue in self.written.keys() - {node.name for node in tree.decaying}:
                del self.written[queue]
                pending.usage[queue] = None
