"""Why: "close together" needs one number a pair of devices, whoever measured it and in whatever words.

Higher is better. NVLink (or XGMI) beats every path over PCIe, more links beat fewer; below, the fewer bridges the better.
The words are those of `nvidia-smi topo -m`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

Matrix = tuple[tuple[int, ...], ...]

SELF = 0
NVLINK = 100
"""Plus the number of links."""
QUALITY = {"PIX": 50, "PXB": 40, "PHB": 30, "NODE": 20, "SYS": 10}
"""One PCIe bridge; several; a host bridge; across host bridges of one NUMA node; across NUMA nodes."""
SAME_SWITCH = QUALITY["PXB"]
"""Pairs at least this near hang on the same PCIe switches, without a processor between."""

_LINKS = re.compile(r"NV(\d{1,2})")
_DEVICE = re.compile(r"(?:GPU|NPU)(\d+)")


def quality(word: str) -> int:
    """The quality of one entry of a topology table.

    Raises ValueError for a word that no table uses.
    """
    if word == "X":
        return SELF
    if match := _LINKS.fullmatch(word):
        return NVLINK + int(match[1])
    try:
        return QUALITY[word]
    except KeyError:
        raise ValueError(f"{word!r} is no link of a topology table") from None


def parse_table(text: str) -> Matrix:
    """The links between GPUs in what `nvidia-smi topo -m` prints; network cards and affinities are left out.

    Raises ValueError when the table is not square or holds unknown words.
    """
    rows = [line.replace("\x1b[4m", "").replace("\x1b[0m", "").split() for line in text.splitlines()]
    header = next((row for row in rows if row and _DEVICE.fullmatch(row[0])), None)
    if header is None:
        raise ValueError("the table has no line of devices")
    columns = [place for place, word in enumerate(header) if _DEVICE.fullmatch(word)]
    found: dict[int, tuple[int, ...]] = {}
    for row in rows[rows.index(header) + 1 :]:
        match = _DEVICE.fullmatch(row[0]) if row else None
        if match is None:
            continue
        if len(row) < len(columns) + 1:
            raise ValueError(f"the line of {row[0]} is cut short")
        found[int(match[1])] = tuple(quality(row[1 + place]) for place in columns)
    if sorted(found) != list(range(len(columns))):
        raise ValueError("the table does not have one line for each of its columns")
    return tuple(found[index] for index in range(len(columns)))


def groups(matrix: Matrix, least: int, *, most: int = NVLINK) -> list[int]:
    """For each device the number of its group: those joined by links of at least `least` and below `most` (PCIe only)."""
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


def symmetric(rows: Sequence[Sequence[int]]) -> Matrix:
    """The matrix with the better of both directions, and nothing on the diagonal."""
    size = range(len(rows))
    return tuple(tuple(0 if a == b else max(rows[a][b], rows[b][a]) for b in size) for a in size)
