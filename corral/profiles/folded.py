"""Sampled stacks in the folded form (`outer;inner COUNT` lines): read, add up by function, put together as a tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from corral.kernel.errors import InvalidInput
from corral.profiles.stacks import printable

_MOST_LINES: Final = 200_000
_MOST_DEPTH: Final = 250
_MOST_COUNT: Final = 10**9


class Sampled(NamedTuple):
    """A stack, outermost frame first, and in how many samples it was seen."""

    frames: tuple[str, ...]
    samples: int


class Function(NamedTuple):
    """A function's share of all samples: at the stack's top, and anywhere in the stack."""

    name: str
    own: float
    total: float


class Frame(NamedTuple):
    """A frame of the tree of stacks as a rectangle: `begin` and `samples` are its place in the width of all samples."""

    name: str
    depth: int
    begin: int
    samples: int


class Node(NamedTuple):
    """A frame of the tree of stacks, with all samples below it."""

    name: str
    samples: int
    below: tuple[Node, ...]


def read_folded(text: str) -> list[Sampled]:
    """Read folded stacks. Raises InvalidInput `bad-profile` for a line that is none, or too many lines."""
    found: Counter[tuple[str, ...]] = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        stack, _, count = line.rpartition(" ")
        known = count.isascii() and count.isdigit() and len(count) <= 10 and 0 < int(count) <= _MOST_COUNT
        if not stack or not known or number > _MOST_LINES:
            raise InvalidInput("bad-profile", f"Line {number} of the profile is not a stack with its count of samples.")
        found[tuple(map(printable, stack.split(";")[:_MOST_DEPTH]))] += int(count)
    return [Sampled(frames, count) for frames, count in found.items()]


def functions(stacks: Iterable[Sampled]) -> list[Function]:
    """Add samples up by function, the one with the most of its own first. The thread's name is no function."""
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    samples = 0
    for stack in stacks:
        frames = stack.frames[1:]
        samples += stack.samples
        if frames:
            own[frames[-1]] += stack.samples
        for name in set(frames):
            total[name] += stack.samples
    made = [Function(name, own[name] / samples, count / samples) for name, count in total.items()]
    return sorted(made, key=lambda each: (-each.own, -each.total, each.name))


def tree(stacks: Iterable[Sampled], name: str = "all") -> Node:
    """Put stacks together by their outer frames; frames beside each other are in the order of their names."""
    listed = list(stacks)
    count = sum(each.samples for each in listed)
    groups: dict[str, list[Sampled]] = {}
    for stack in listed:
        if stack.frames:
            groups.setdefault(stack.frames[0], []).append(Sampled(stack.frames[1:], stack.samples))
    return Node(name, count, tuple(tree(groups[each], each) for each in sorted(groups)))


def frames(root: Node, most: int, least: float = 0.0005) -> list[Frame]:
    """The frames of a tree, each before those below it; at most `most`, and none narrower than a share of all.

    Where there are more, the deepest are left out.
    """
    found: list[Frame] = []
    level = [(root, 0)]
    depth = 0
    while level and len(found) + len(level) <= most:
        found += [Frame(node.name, depth, begin, node.samples) for node, begin in level]
        level = [each for node, begin in level for each in _below(node, begin, least * root.samples)]
        depth += 1
    return sorted(found, key=lambda each: (each.begin, each.depth))


def _below(node: Node, begin: int, least: float) -> Iterator[tuple[Node, int]]:
    for each in node.below:
        if each.samples >= least:
            yield each, begin
        begin += each.samples
