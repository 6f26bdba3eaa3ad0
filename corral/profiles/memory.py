"""Who holds the memory of a process, and beneath which functions it grew during a profile.

Memory that grows is written by a thread that runs. So what private memory grew between two looks, which are milliseconds
apart, counts for the functions that py-spy saw on the process's threads meanwhile.
"""

from __future__ import annotations

import bisect
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from corral.kernel.errors import InvalidInput
from corral.profiles.curves import Curve, curve
from corral.profiles.folded import Sampled
from corral.profiles.sampled_calls import Seen
from corral.profiles.stacks import printable

UNSEEN: Final = "(no Python thread was seen running)"
_MOST_KIB: Final = 1 << 50
_TOP: Final = 20
_PARTS: Final = ("private", "files", "shared", "swapped out")
_LIBRARY: Final = re.compile(r"\.so(\.|$)")


class _Facts(msgspec.Struct, frozen=True):
    """What the program in the task answers of one process; milliseconds and KiB."""

    seconds: float
    begun: float
    rate: int
    fine: list[tuple[float, float, int]]
    parts: list[tuple[float, int, int, int, int, int]]
    before: dict[str, int]
    after: dict[str, int]
    sampling: float = 0.0
    wrote: float = 0.0
    unseen: str = ""


_READ: Final = msgspec.json.Decoder(_Facts)


class Holder(NamedTuple):
    """Memory by what holds it, in KiB before and after the profile."""

    kind: str
    name: str
    before: int
    after: int


class MemoryReport(NamedTuple):
    """The memory of one process during a profile; KiB."""

    rank: str
    seconds: float
    used: int
    """At the end, without swap."""
    peak: int
    """The most it ever had, since it began."""
    grown: int
    """All growth of private memory, also where some was given back."""
    kept: int
    """By how much private memory was larger at the end."""
    holders: tuple[Holder, ...]
    names: tuple[Holder, ...]
    stacks: tuple[Sampled, ...]
    """Growth by stack, in KiB in place of samples."""
    curves: tuple[Curve, ...]
    unseen: str = ""
    """Why no functions are told."""


def read_memory(rank: str, text: str, calls: Iterable[Seen]) -> MemoryReport:
    """Read what a task answered of one process. Raises InvalidInput `bad-profile`."""
    facts = _facts(text)
    seen = list(calls)
    start = _start_of_calls(facts, seen) - facts.begun - 0.5 / facts.rate  # a stack began before the look that saw it
    rises = [
        (begin / 1000, end / 1000, more - less)
        for (_, _, less), (begin, end, more) in pairwise(facts.fine)
        if more > less
    ]
    first, last = facts.parts[0], facts.parts[-1]
    names = _names(facts.before, facts.after)
    return MemoryReport(
        rank=rank,
        seconds=facts.seconds,
        used=sum(last[1:4]),
        peak=max(last[5], *(sum(each[1:4]) for each in facts.parts)),
        grown=sum(rise for *_, rise in rises),
        kept=last[1] - first[1],
        holders=_kinds(names),
        names=tuple(sorted(names, key=lambda each: -each.after)[:_TOP]),
        stacks=grown_beneath(rises, [each._replace(begin=each.begin + start, end=each.end + start) for each in seen]),
        curves=tuple(_curves(facts)),
        unseen=printable(facts.unseen),
    )


def _facts(text: str) -> _Facts:
    try:
        facts = _READ.decode(text)
    except msgspec.DecodeError:
        raise InvalidInput("bad-profile", "What the task told of its memory cannot be read.") from None
    numbers = [
        facts.seconds,
        facts.begun,
        *(at for each in facts.fine for at in each[:2]),
        *(each[0] for each in facts.parts),
    ]
    sizes = [each[2] for each in facts.fine] + [size for each in facts.parts for size in each[1:]]
    sizes += [*facts.before.values(), *facts.after.values()]
    bounded = all(0 <= size <= _MOST_KIB for size in sizes) and all(0 <= each < 1e9 for each in numbers)
    if (
        not facts.parts
        or not bounded
        or not math.isfinite(facts.sampling + facts.wrote)
        or min(facts.seconds, facts.rate) <= 0
    ):
        raise InvalidInput("bad-profile", "What the task told of its memory is empty or out of bounds.")
    return facts


def _start_of_calls(facts: _Facts, seen: Sequence[Seen]) -> float:
    """When py-spy's clock began: not after it said so, and no later than its last call before it had written."""
    last = max((each.end for each in seen), default=0.0)
    return min(facts.sampling, facts.wrote - last) if facts.wrote else facts.sampling


def grown_beneath(rises: Sequence[tuple[float, float, int]], seen: Sequence[Seen]) -> tuple[Sampled, ...]:
    """Growth in KiB by the stacks that were seen meanwhile; where there were several, each has its part of the time.

    `rises` are spans with the growth in each, in order.
    """
    ordered = sorted(seen)
    longest = max((each.end - each.begin for each in ordered), default=0.0)
    begins = [each.begin for each in ordered]
    grown: Counter[tuple[str, ...]] = Counter()
    for begin, end, rise in rises:
        at, parts = bisect.bisect_left(begins, begin - longest), Counter[tuple[str, ...]]()
        while at < len(ordered) and begins[at] < end:
            both = min(end, ordered[at].end) - max(begin, begins[at])
            if both > 0:
                parts[ordered[at].frames] += both  # type: ignore[assignment]
            at += 1
        whole = sum(parts.values())
        for frames, part in parts.items():
            grown[frames] += round(rise * part / whole)
        if not whole:
            grown["", UNSEEN] += rise
    return tuple(Sampled(frames, kib) for frames, kib in grown.items() if kib > 0)


def _names(before: Mapping[str, int], after: Mapping[str, int]) -> list[Holder]:
    return [
        Holder(_kind(name), printable(_shown(name)), before.get(name, 0), after.get(name, 0))
        for name in sorted({*before, *after})
    ]


def _kind(name: str) -> str:
    """What a mapping is, as people call it."""
    if name.startswith(("/dev/shm/", "/memfd:", "/SYSV", "/dev/zero")):
        return "shared memory"
    if name.startswith("/dev/"):
        return "devices"
    if name == "[heap]":
        return "heap"
    if name == "(others)":
        return "other files"
    if name.startswith("/"):
        return "libraries" if _LIBRARY.search(name) else "mapped files"
    return "kernel" if name in ("[vdso]", "[vvar]", "[vsyscall]", "[vvar_vclock]") else "anonymous"


def _shown(name: str) -> str:
    return {"": "anonymous: arrays, tensors and threads", "[heap]": "heap: small objects", "[stack]": "stack"}.get(
        name, name
    )


def _kinds(names: Iterable[Holder]) -> tuple[Holder, ...]:
    sums: dict[str, tuple[int, int]] = {}
    for each in names:
        before, after = sums.get(each.kind, (0, 0))
        sums[each.kind] = (before + each.before, after + each.after)
    found = [Holder(kind, kind, *both) for kind, both in sums.items() if any(both)]
    return tuple(sorted(found, key=lambda each: (-each.after, each.kind)))


def _curves(facts: _Facts) -> Iterable[Curve]:
    for at, name in enumerate(_PARTS, 1):
        points = [(each[0] / 1000, each[at] / 1024) for each in facts.parts]
        if any(value for _, value in points):
            yield curve(name, "MiB", points, facts.seconds)
