"""Where the bytes of a job's inputs are, by the nodes that hold them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

MOST_SETS: Final = 128
"""The most different sets of nodes that are told apart; with more of them each node is counted by itself."""
MOST_NODES: Final = 256
"""The most nodes that are counted by themselves: those with the most bytes."""
_ON_NODES: Final = " of its inputs are on its nodes"
_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


class InputBytes(msgspec.Struct, frozen=True):
    """The bytes of a job's inputs, and which nodes hold how many of them."""

    total: int
    """Bytes of all files that were located, wherever they are."""
    held: tuple[tuple[tuple[str, ...], int], ...] = ()
    """Sets of nodes, sorted, each with the bytes that all nodes of the set hold and no other node."""
    overlapping: bool = False
    """Whether each set is one node, so that bytes of which there are copies count at each node that has one."""

    def on(self, nodes: Collection[str]) -> int:
        """Return how many bytes at least one of these nodes holds; an upper bound if sets are `overlapping`."""
        return min(self.total, sum(size for holders, size in self.held if not frozenset(holders).isdisjoint(nodes)))


def input_bytes(total: int, by_holders: Mapping[frozenset[str], int]) -> InputBytes:
    """Count bytes by the sets of nodes that hold them, within the bounds of this module."""
    held = {holders: size for holders, size in by_holders.items() if holders and size > 0}
    overlapping = len(held) > MOST_SETS
    if overlapping:
        held = _by_node(held)
    rows = sorted((tuple(sorted(holders)), size) for holders, size in held.items())
    return InputBytes(total, tuple(rows), overlapping)


def _by_node(held: Mapping[frozenset[str], int]) -> dict[frozenset[str], int]:
    """The bytes on each node by itself, of the nodes with the most bytes."""
    found: dict[str, int] = {}
    for holders, size in held.items():
        for node in holders:
            found[node] = found.get(node, 0) + size
    most = sorted(found.items(), key=lambda entry: (-entry[1], entry[0]))[:MOST_NODES]
    return {frozenset((node,)): size for node, size in most}


def locality_note(inputs: InputBytes, on_nodes: int, in_racks: int) -> str:
    """The sentence of how much of its inputs a job finds on its nodes, and how much more in their racks."""
    power = 0
    while power + 1 < len(_UNITS) and inputs.total >= 1000 ** (power + 1):
        power += 1
    most, factor, digits = ("at most " if inputs.overlapping else ""), 1000**power, 1 if power else 0
    near, all_of_it, unit = on_nodes / factor, inputs.total / factor, _UNITS[power]
    note = f"{most}{near:.{digits}f} of {all_of_it:.{digits}f} {unit}{_ON_NODES}"
    more = max(0, in_racks - on_nodes)
    return f"{note}, {most}{more / factor:.{digits}f} {unit} more in the same racks" if more else note


def note_in_words(notes: Iterable[str]) -> str:
    """The note of `locality_note` among a placement's notes, as a sentence; "" if there is none."""
    note = next((each for each in notes if _ON_NODES in each), "")
    return f"{note[0].upper()}{note[1:]}." if note else ""
