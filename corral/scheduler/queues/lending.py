"""Account for the devices that queues lend to and borrow from each other now.

Beyond its deserved amount, a queue first uses devices that none of its siblings deserves (lender ""), and only then
theirs. Each sibling lends in proportion to its idle part. Lending is between queues of one parent; an inner queue
borrows as a whole. The devices of a virtual cluster's owned cells count as deserved, whichever cell a guest sits in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from corral.scheduler.cells.ownership_registry import Ownership
from corral.scheduler.queues.queue_tree import QueueNode, QueueTree

_DEVICES = 0
"""The index of devices in queue resource vectors."""


_NONE: Mapping[str, int] = {}


def owned_devices(ownership: Ownership) -> dict[str, int]:
    """Return the devices of each queue's owned cells, in thousandths.

    They change only with configuration and machines.
    """
    owned: dict[str, int] = {}
    for cells in ownership.cells.values():
        for owner, quotas in cells.quotas.items():
            for kind, count in quotas.items():
                owned[owner] = owned.get(owner, 0) + cells.structure.thousandths(kind) * count
    return owned


def lending(tree: QueueTree, owned: Mapping[str, int] = _NONE) -> dict[tuple[str, str], int]:
    """Return the thousandths of devices lent now, by (lender, borrower), without zero entries.

    `owned` are the devices of the cells of each virtual cluster. O(queues), plus O(lenders x borrowers).
    """
    if not owned and not tree.deserving:
        return {}
    found: dict[tuple[str, str], int] = {}
    for parent in (tree.root, *tree.nodes.values()):
        if parent.children:
            whole = tree.total[_DEVICES] if parent is tree.root else _own(parent, owned)
            _between([(node, _own(node, owned)) for node in parent.children], whole, found)
    return found


def _own(node: QueueNode, owned: Mapping[str, int]) -> int:
    return node.deserved[_DEVICES] + owned.get(node.name, 0)


def _between(siblings: Sequence[tuple[QueueNode, int]], whole: int, found: dict[tuple[str, str], int]) -> None:
    """Record the lending between siblings, given with their own devices; `whole` are the devices of their parent."""
    borrowed = [(node.name, node.used[_DEVICES] - own) for node, own in siblings]
    borrowers = sorted((name, over) for name, over in borrowed if over > 0)
    lenders = sorted((name, -over) for name, over in borrowed if over < 0)
    if not borrowers:
        return
    spare = max(0, whole - sum(own for _, own in siblings))
    wanted = max(0, sum(over for _, over in borrowers) - spare)
    given = [
        ("", spare),
        *zip((name for name, _ in lenders), _part(wanted, [idle for _, idle in lenders]), strict=True),
    ]
    given = [(name, amount) for name, amount in given if amount]
    for borrower, over in borrowers:
        left = over
        while left and given:
            lender, amount = given[0]
            taken = min(left, amount)
            found[lender, borrower] = taken
            left -= taken
            given[:1] = [(lender, amount - taken)] if amount > taken else []


def _part(amount: int, weights: Sequence[int]) -> list[int]:
    """Split `amount` into integers in proportion to `weights`, none above its weight.

    The first entries get the rest left by rounding.
    """
    total = sum(weights)
    if amount >= total:
        return list(weights)
    parts = [amount * weight // total for weight in weights]
    rest = amount - sum(parts)
    for at, weight in enumerate(weights):
        if rest and parts[at] < weight:
            parts[at] += 1
            rest -= 1
    return parts
