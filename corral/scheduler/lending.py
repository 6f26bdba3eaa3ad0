"""Why: a queue that lets others use what it deserves is owed an account of it: who has how much of whose devices now.

Beyond what it deserves, a queue first uses what none of its siblings deserves (lender ""), and only then theirs: the idle
part of each lends in proportion. Between queues of one parent; what an inner queue borrows, it borrows as one.
"""

from __future__ import annotations

from collections.abc import Sequence

from corral.scheduler.queues import QueueNode, QueueTree

_DEVICES = 0
"""The place of devices in the vectors of the tree."""


def lending(tree: QueueTree) -> dict[tuple[str, str], int]:
    """Devices lent now, by lender and borrower, only where there are any: O(queues), plus O(lenders x borrowers)."""
    if not any(node.deserved[_DEVICES] for node in tree.nodes.values()):
        return {}
    found: dict[tuple[str, str], int] = {}
    for parent in (tree.root, *tree.nodes.values()):
        if parent.children:
            owned = tree.total[_DEVICES] if parent is tree.root else parent.deserved[_DEVICES]
            _between(parent.children, owned, found)
    return found


def _between(siblings: Sequence[QueueNode], owned: int, found: dict[tuple[str, str], int]) -> None:
    """Who of these has whose; `owned` is what all of them may call their parent's own."""
    borrowed = [(node.name, node.used[_DEVICES] - node.deserved[_DEVICES]) for node in siblings]
    borrowers = sorted((name, over) for name, over in borrowed if over > 0)
    lenders = sorted((name, -over) for name, over in borrowed if over < 0)
    if not borrowers:
        return
    spare = max(0, owned - sum(node.deserved[_DEVICES] for node in siblings))
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
