"""Why: a queue that lets others use what it deserves is owed an account of it: who has how much of whose devices now.

Beyond what it deserves, a queue first uses what none of its siblings deserves (lender ""), and only then theirs: the idle
part of each lends in proportion. Between queues of one parent; what an inner queue borrows, it borrows as one. The devices
of the cells that a virtual cluster owns count as deserved: which cell a guest sits in says nothing of whose it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from corral.scheduler.ownership import Ownership
from corral.scheduler.queues import QueueNode, QueueTree

_DEVICES = 0
"""The place of devices in the vectors of the tree."""


_NONE: Mapping[str, int] = {}


def owned_devices(ownership: Ownership) -> dict[str, int]:
    """By queue the devices of the cells that it owns, in thousandths; changes only with configuration and machines."""
    owned: dict[str, int] = {}
    for cells in ownership.cells.values():
        for owner, quotas in cells.quotas.items():
            for kind, count in quotas.items():
                owned[owner] = owned.get(owner, 0) + cells.structure.thousandths(kind) * count
    return owned


def lending(tree: QueueTree, owned: Mapping[str, int] = _NONE) -> dict[tuple[str, str], int]:
    """Thousandths of devices lent now, by lender and borrower, only where there are any.

    `owned` are those of the cells of each virtual cluster. O(queues), plus O(lenders x borrowers).
    """
    if not owned and not any(node.deserved[_DEVICES] for node in tree.nodes.values()):
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
    """Who of these has whose, each with what is its own; `whole` is what all of them may call their parent's."""
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
    """`amount` in whole parts as `weights` are to each other, none above its weight; the rounded rest goes first come."""
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
