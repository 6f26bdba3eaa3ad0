"""Why: a rack that is owed and the nodes in it, owed too, are the same devices: they must not be shown to both owners."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import structs

from corral.model.overview import CellShare

Parts = tuple[tuple[int | str, int], ...]
"""A cell's devices: node (as its owner calls it) and mask."""


class Whole(NamedTuple):
    """A cell of which no part is bound; `held` of its devices are in use, by guests then, and `lacking` cannot be given."""

    held: int
    parts: Parts
    lacking: int = 0


class Claim(NamedTuple):
    """How many cells of a type a queue owns, and how many of them are not bound yet."""

    owner: str
    owned: int
    owed: int


class Kind(NamedTuple):
    """A type of cells; `share` says what such a cell is."""

    share: CellShare
    claims: Sequence[Claim]
    whole: Iterable[Whole]


def dealt(kinds: Iterable[Kind]) -> Iterator[tuple[str, CellShare]]:
    """Whole cells serve owners in order, the emptiest first; those with guests in them are lent.

    Wider types come first, and with each cell its devices are taken from narrower types, as placement keeps cells for
    those that are owed them; for a cell that is missing it keeps one that could be whole again, the worst.
    """
    taken: dict[int | str, int] = {}
    for kind in kinds:
        left = sum(max(0, claim.owed) for claim in kind.claims)
        given: list[int] = []
        for cell in sorted(kind.whole, key=_best_first) if left else ():
            if not any(taken.get(at, 0) & mask for at, mask in cell.parts):
                if not cell.lacking:
                    given.append(cell.held)
                for at, mask in cell.parts:
                    taken[at] = taken.get(at, 0) | mask
                left -= 1
                if not left:
                    break
        for claim in kind.claims:
            mine, given = given[: max(0, claim.owed)], given[max(0, claim.owed) :]
            free = sum(not each for each in mine)
            yield (
                claim.owner,
                structs.replace(
                    kind.share,
                    owned=claim.owned,
                    bound=claim.owned - claim.owed,
                    free=free,
                    lent=len(mine) - free,
                    missing=claim.owed - len(mine),
                ),
            )


def _best_first(cell: Whole) -> tuple[bool, int, int]:
    return (cell.lacking > 0, -cell.lacking, cell.held)
