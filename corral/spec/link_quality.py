"""Rank the link between two devices of a node as one integer; higher is better.

A vendor's own links (NVLink, XGMI, HCCS) rank above every path over PCIe, and more links above fewer. Paths over PCIe
rank by the bridges they cross. The words are those of `nvidia-smi topo -m`, `rocm-smi --showtopotype` and
`npu-smi info -t topo`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

Matrix = tuple[tuple[int, ...], ...]

UNKNOWN = 0
APART = 1
"""Not on one PCIe switch; the distance is unknown."""
NVLINK = 100
"""Base of the vendors' own links; the number of links is added."""
SAME_BOARD = 60
QUALITY = {"PIX": 50, "PXB": 40, "PHB": 30, "NODE": 20, "SYS": 10}
"""Quality by the word that nvidia-smi prints.

PIX crosses one PCIe bridge, PXB several, PHB a host bridge, NODE the host bridges of one NUMA node, SYS NUMA nodes.
"""
_OTHER = {"SOC": "SYS", "PCIE": "NODE"}
"""SOC is the older word for SYS; PCIE is AMD's word for any path over PCIe."""
_OWN_LINKS = {"XGMI": 1, "HCCS": 1, "HCCS_SW": 1, "SIO": 2}
"""Links counted for AMD's XGMI and Huawei's HCCS and SIO; their tools print no number.

HCCS is a direct link, HCCS_SW a switched one, SIO the link between the two dies of a module.
"""
SAME_SWITCH = QUALITY["PXB"]
"""The lowest quality of a pair below the same PCIe switches, without a processor between."""
SAME_NUMA = QUALITY["NODE"]

_LINKS = re.compile(r"NV([1-9]\d?)", re.ASCII)
_MOST_SEARCHED = 16


def quality(word: str) -> int:
    """Quality of one entry of a topology table: `NV12`, `PIX`, `SYS`, `XGMI`, …; `X`, `0` and `NA` are unknown.

    Raises ValueError for a word that no table uses.
    """
    if word in ("X", "0", "NA", "N/A"):
        return UNKNOWN
    if match := _LINKS.fullmatch(word):
        return NVLINK + int(match[1])
    if word in _OWN_LINKS:
        return NVLINK + _OWN_LINKS[word]
    try:
        return QUALITY[_OTHER.get(word, word)]
    except KeyError:
        raise ValueError(f'"{word[:20]}" is no link of a topology table') from None


def groups(matrix: Matrix, least: int, *, most: int = NVLINK) -> list[int]:
    """Number the connected groups of devices; returns each device's group.

    Two devices are connected by a link of at least `least` and below `most`; by default that leaves out vendor links.
    """
    number: list[int] = [-1] * len(matrix)
    count = 0
    for first in range(len(matrix)):
        if number[first] >= 0:
            continue
        waiting = [first]
        while waiting:
            at = waiting.pop()
            if number[at] >= 0:
                continue
            number[at] = count
            waiting += [other for other, link in enumerate(matrix[at]) if number[other] < 0 and least <= link < most]
        count += 1
    return number


def islands(matrix: Matrix) -> list[int]:
    """Number the islands of devices that all have vendor links to each other; returns each device's island.

    Behind NVSwitches all devices form one island. In a partial mesh (DGX-1) the largest sets are formed, lowest device
    numbers first. A device without such links is alone; [] when no device has any.
    """
    size = len(matrix)
    linked = [{b for b in range(size) if b != a and matrix[a][b] > NVLINK} for a in range(size)]
    if not any(linked):
        return []
    number = [-1] * size
    for first in range(size):
        if number[first] < 0:
            free = {b for b in linked[first] if number[b] < 0}
            for member in (first, *_largest(matrix, linked, first, free)):
                number[member] = first
    names = {root: at for at, root in enumerate(dict.fromkeys(number))}
    return [names[root] for root in number]


def _largest(matrix: Matrix, linked: list[set[int]], first: int, free: set[int]) -> tuple[int, ...]:
    """The largest set of `free` devices that are all linked to each other.

    Of equal sets the one with the most links wins, then the one with the lowest numbers. With more than _MOST_SEARCHED
    free devices, the set is built greedily unless all of them are linked.
    """
    for count in range(len(free), 0, -1) if len(free) <= _MOST_SEARCHED else (len(free),):
        fits = [each for each in combinations(sorted(free), count) if _all_linked(linked, each)]
        if fits:
            return max(fits, key=lambda each: (_sum(matrix, (first, *each)), tuple(-member for member in each)))
    return tuple(_greedily(matrix, linked, first, free))


def _greedily(matrix: Matrix, linked: list[set[int]], first: int, free: set[int]) -> Iterator[int]:
    chosen, waiting = [first], set(free)
    while waiting:
        best = max(waiting, key=lambda each: (_sum(matrix, (*chosen, each)), -each))
        chosen.append(best)
        waiting &= linked[best]
        yield best


def _all_linked(linked: list[set[int]], members: Sequence[int]) -> bool:
    return all(b in linked[a] for a, b in combinations(members, 2))


def _sum(matrix: Matrix, members: Sequence[int]) -> int:
    return sum(matrix[a][b] for a, b in combinations(members, 2))


def symmetric(rows: Sequence[Sequence[int]]) -> Matrix:
    """The matrix with the better of both directions, and 0 on the diagonal."""
    size = range(len(rows))
    return tuple(tuple(0 if a == b else max(rows[a][b], rows[b][a]) for b in size) for a in size)
