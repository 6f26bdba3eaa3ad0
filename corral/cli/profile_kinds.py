"""What is read from the profiles of each kind, and the files that are kept of them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from corral.cli.profile_session import Taken
from corral.kernel.errors import CorralError
from corral.kernel.units import counted
from corral.profiles.advice import advise
from corral.profiles.flame_graph import flame_graph
from corral.profiles.folded import Sampled, functions, read_folded, tree
from corral.profiles.stacks import places, read_stacks
from corral.profiles.trace_events import read_events, refused
from corral.profiles.trace_report import RankReport, imbalance, report

MOST_BYTES: Final = {"python": 4 * 1024**2, "stacks": 4 * 1024**2, "torch": 64 * 1024**2}
"""Bytes of one process's profile, by kind."""
FLAMES: Final = "flame-graph.svg"
_PIECE: Final = 256 * 1024

Good = Sequence[tuple[Taken, Any]]


def read(taken: Taken, what: str) -> tuple[Any, str]:
    """What a process gave, read; or None and the problem in one sentence. A cut profile is both."""
    if taken.problem:
        return None, taken.problem
    try:
        found = _READ[what](taken)
    except CorralError as error:
        return None, error.message
    if not found:
        return None, "No sample of this process could be taken."
    return found, f"Its profile was cut after {MOST_BYTES[what] >> 20} MiB." if taken.cut else ""


def facts_of(good: Good, what: str) -> dict[str, Any]:
    """What is told of the profiles together."""
    return _FACTS[what](good)


def files_of(good: Good, what: str, job: str) -> dict[str, str | bytes]:
    """The files that are kept, by name."""
    if what == "torch":
        return {f"{each.task}-{each.process}.trace.json.gz": each.trace for each, _ in good}
    files: dict[str, str | bytes] = {f"{each.task}-{each.process}.txt": each.text for each, _ in good}
    if what == "python":
        stacks = [Sampled((taken.rank, *each.frames), each.samples) for taken, found in good for each in found]
        files[FLAMES] = flame_graph(tree(stacks, job), f"{job}: {counted(len(good), 'rank')}")
    return files


def unpacked(data: bytes) -> Iterator[str]:
    """The pieces of a trace's text, unpacked up to a bound. Raises InvalidInput `bad-trace`."""
    packed, left, rest = zlib.decompressobj(wbits=31), MOST_BYTES["torch"] + 1024, data
    while not packed.eof:
        try:
            piece = packed.decompress(rest, _PIECE)
        except zlib.error:
            raise refused("it is not compressed with gzip") from None
        rest = packed.unconsumed_tail
        left -= len(piece)
        if not piece and not rest:
            raise refused("it ends within its compressed part")
        if left < 0:
            raise refused(f"it is longer than {MOST_BYTES['torch'] >> 20} MiB")
        if piece:
            yield piece.decode("utf-8", "replace")


def _trace(taken: Taken) -> RankReport:
    return report(taken.rank, read_events(unpacked(taken.trace)))


def _places(good: Good) -> dict[str, Any]:
    found = places((each.rank, stacks) for each, stacks in good)
    return {
        "places": [
            {
                "thread": place.stack.thread,
                "active": place.stack.active,
                "frames": list(place.stack.frames),
                "ranks": list(place.ranks),
            }
            for place in found
        ]
    }


def _functions(good: Good) -> dict[str, Any]:
    every = functions(each for _, stacks in good for each in stacks)
    samples = sum(each.samples for _, stacks in good for each in stacks)
    return {"samples": samples, "functions": [each._asdict() for each in every[:100]]}


def _traces(good: Good) -> dict[str, Any]:
    ranks: list[RankReport] = [found for _, found in good]
    return {
        "reports": [_plain(each) for each in ranks],
        "imbalance": imbalance(ranks),
        "advice": [each._asdict() for each in advise(ranks)],
    }


def _plain(rank: RankReport) -> Mapping[str, Any]:
    tops = {name: [each._asdict() for each in getattr(rank, name)] for name in ("operators", "kernels", "collectives")}
    return rank._asdict() | tops


_READ: Final = {
    "stacks": lambda taken: read_stacks(taken.text),
    "python": lambda taken: read_folded(taken.text),
    "torch": _trace,
}
_FACTS: Final = {"stacks": _places, "python": _functions, "torch": _traces}
