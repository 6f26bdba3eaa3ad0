"""Deal whole cells out to their owners without counting a device twice, when owned cells of several types overlap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import structs

from corral.model.queue_views import CellShare

Parts = tuple[tuple[int | str, int], ...]
"""A cell's devices: pairs of node (named as its owner names it) and mask."""


class Whole(NamedTuple):
    """A cell without bound parts; guests use `held` of its devices, and `lacking` devices cannot be given."""

    held: int
    parts: Parts
    lacking: int = 0


class Claim(NamedTuple):
    """How many cells of a type a queue owns, and how many of these are not bound yet."""

    owner: str
    owned: int
    owed: int


class Kind(NamedTuple):
    """A type of cells; `share` describes one cell of the type."""

    share: CellShare
    claims: Sequence[Claim]
    whole: Iterable[Whole]


def allotted(kinds: Iterable[Kind]) -> Iterator[tuple[str, CellShare]]:
    """Deal whole cells to owners in order, emptiest first; a cell used by guests counts as lent.

    Wider types come first, and the devices of an allotted cell are not allotted again for narrower types, just as
    placement keeps owed cells free. For a missing cell, the worst cell that could become whole again is kept back.
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
