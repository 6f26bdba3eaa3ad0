"""Expand hostlists such as `node[0001-8192]`.

The notation is that of Slurm's hostlists and pdsh: `[1-3,7]` are numbers, and leading zeros are kept.
"""

from __future__ import annotations

import re
from typing import Final

MOST_NAMES: Final = 200_000
"""Maximum names that one expression may expand to."""
MOST_DEVICES: Final = 1024
_GROUP: Final = re.compile(r"\[([^\[\]]*)\]")
_OUTER: Final = re.compile(r",(?![^\[\]]*\])")
_PART: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", re.ASCII)


def is_range(text: str) -> bool:
    """Whether the text stands for several names."""
    return "[" in text or "]" in text or "," in text


def parts(text: str) -> list[str]:
    """Split `a[1-3,7],b` at the commas outside brackets."""
    return _OUTER.split(text)


def expand(text: str) -> list[str]:
    """Expand `node[1-3,7]`, `r[1-2]n[1-16]` or `a[1-2],b` to all names; the last brackets vary fastest.

    Raises ValueError for malformed brackets, or for more than MOST_NAMES names.
    """
    if "," in text and len(several := parts(text)) > 1:
        return expand_all(several)
    pieces = _GROUP.split(text)
    if any("[" in piece or "]" in piece for piece in pieces[::2]):
        raise ValueError(f'"{text}": brackets are written as node[1-16] or node[1-3,7]')
    names = [pieces[0]]
    for group, after in zip(pieces[1::2], pieces[2::2], strict=True):
        numbers = _numbers(group, text)
        if len(names) * len(numbers) > MOST_NAMES:
            raise ValueError(f'"{text}" stands for more than {MOST_NAMES} names')
        names = [f"{name}{number}{after}" for name in names for number in numbers]
    return names


def expand_all(texts: list[str]) -> list[str]:
    """Expand several expressions to their names, in order.

    Raises ValueError as `expand` does.
    """
    names: list[str] = []
    for text in texts:
        names += expand(text) if is_range(text) else [text]
        if len(names) > MOST_NAMES:
            raise ValueError(f"these stand for more than {MOST_NAMES} names")
    return names


def expand_numbers(text: str) -> list[int]:
    """Expand `0-7` or `0,2,8-9` to device numbers, in the order written.

    Raises ValueError for malformed numbers, numbers of MOST_DEVICES or more, and repeated ones.
    """
    numbers = [int(number) for number in _numbers(text.strip("[] "), text, most=MOST_DEVICES)]
    if len(set(numbers)) < len(numbers):
        raise ValueError(f'"{text}" has a number twice')
    if max(numbers) >= MOST_DEVICES:
        raise ValueError(f"device numbers go from 0 to {MOST_DEVICES - 1}")
    return numbers


def _numbers(group: str, text: str, most: int = MOST_NAMES) -> list[str]:
    found: list[str] = []
    for part in group.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise ValueError(f'"{text}": numbers are written as 1-16 or 1-3,7')
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first):
            raise ValueError(f'"{text}": {first}-{last} counts backwards')
        if int(last) - int(first) + len(found) >= most:
            raise ValueError(f'"{text}" stands for more than {most} of them')
        width = len(first) if first.startswith("0") else 0
        found += [str(number).zfill(width) for number in range(int(first), int(last) + 1)]
    return found
