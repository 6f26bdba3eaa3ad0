"""Why: in the fair order a queue answers for what it held before, and a restart of control must be no pardon.

Between two changes the decaying average follows from the last one and from what is held, so a queue's past is written
with the changes of what it holds, in the same transaction, and at no other time.
"""

from __future__ import annotations

from collections.abc import Sequence

from corral.control.draft import Draft
from corral.model.queues import QueueUsage
from corral.scheduler.queues import QueueTree


class Past:
    """What is written of the past of queues; `draft` takes what has changed."""

    def __init__(self, found: Sequence[QueueUsage] = ()) -> None:
        self.written = {usage.queue: usage for usage in found}
        self._tree: QueueTree | None = None

    def fold(self, draft: Draft, tree: QueueTree) -> None:
        """Write down what changed since the last call: O(queues with a half-life)."""
        configured, self._tree = tree is not self._tree, tree
        for node in tree.decaying:
            written = self.written.get(node.name)
            if configured or (written.at if written else 0.0) != node.seen:
                usage = tree.past_use(node)
                if usage != written and (written or usage.at):
                    self.written[node.name] = draft.usage[node.name] = usage
        if configured:
            for queue in self.written.keys() - {node.name for node in tree.decaying}:
                del self.written[queue]
                draft.usage[queue] = None
