"""The kinds of profiles: how each is read, its bounds, and the files that are kept of it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from corral.kernel.errors import CorralError
from corral.kernel.units import counted
from corral.profiles.flame_graph import flame_graph
from corral.profiles.folded import Node, Sampled, read_folded, tree
from corral.profiles.memory import MemoryReport, read_memory
from corral.profiles.sampled_calls import read_calls
from corral.profiles.stacks import read_stacks
from corral.profiles.system import SystemReport, read_system
from corral.profiles.taken import Taken
from corral.profiles.trace_events import read_events, refused
from corral.profiles.trace_report import RankReport, report

MOST_BYTES: Final = {
    "python": 4 * 1024**2,
    "stacks": 4 * 1024**2,
    "torch": 64 * 1024**2,
    "jax": 64 * 1024**2,
    "tensorflow": 64 * 1024**2,
    "memory": 32 * 1024**2,
    "system": 4 * 1024**2,
}
"""Bytes of one process's profile, by kind."""
MOST_SECONDS: Final = {"python": 60, "stacks": 0, "torch": 10, "jax": 10, "tensorflow": 10, "memory": 30, "system": 60}
"""The longest profile of each kind; a look at stacks takes no time."""
TRACES: Final = ("torch", "jax", "tensorflow")
"""Kinds that are traces of a framework."""
FLAMES: Final = "flame-graph.svg"
_PIECE: Final = 256 * 1024

Good = Sequence[tuple[Taken, Any]]
"""What processes gave, with what was read of it."""


def read(taken: Taken, what: str) -> tuple[Any, str]:
    """What a process gave, read; or None and the problem in one sentence. A cut profile is both."""
    if taken.problem:
        return None, taken.problem
    found: Any
    try:
        found = _READ[what](taken)
    except CorralError as error:
        return None, error.message
    if not found:
        return None, "No sample of this process could be taken."
    if taken.cut:
        told = f" What is told is of its first {found.seconds:.1f} s." if isinstance(found, RankReport) else ""
        return found, f"Its profile was cut after {MOST_BYTES[what] >> 20} MiB.{told}"
    return found, _without_functions(found) if what == "memory" else ""


def _without_functions(found: MemoryReport) -> str:
    told = found.unseen[:1].upper() + found.unseen[1:]
    return f"Its growth is told without functions. {told}" if told else ""


def tree_of(good: Good, job: str) -> Node:
    """The samples of all ranks as one tree, with the ranks below its root."""
    stacks = [Sampled((taken.rank, *each.frames), each.samples) for taken, found in good for each in stacks_of(found)]
    return tree(stacks, job)


def stacks_of(found: Any) -> Sequence[Sampled]:
    """The stacks of what was read: those of samples, or those beneath which memory grew."""
    return found.stacks if isinstance(found, MemoryReport) else found


def flames_of(good: Good, job: str) -> str:
    """The flame graph of all ranks as an SVG file."""
    unit = "KiB grown" if good and isinstance(good[0][1], MemoryReport) else "samples"
    return flame_graph(tree_of(good, job), f"{job}: {counted(len(good), 'rank')}", unit)


def file_of(taken: Taken) -> tuple[str, bytes]:
    """The name and the content of the file that is kept of one process."""
    base = f"{taken.task}-{taken.process}"
    return (f"{base}.trace.json.gz", taken.trace) if taken.trace else (f"{base}.txt", taken.text.encode())


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


def _memory(taken: Taken) -> MemoryReport:
    return read_memory(taken.rank, taken.text, read_calls(unpacked(taken.trace)) if taken.trace else ())


def _system(taken: Taken) -> SystemReport:
    return read_system(taken.rank, taken.text)


def _trace(taken: Taken) -> RankReport:
    return report(taken.rank, read_events(unpacked(taken.trace)), cut=taken.cut)


_READ: Final = {
    "stacks": lambda taken: read_stacks(taken.text),
    "python": lambda taken: read_folded(taken.text),
    "torch": _trace,
    "jax": _trace,
    "tensorflow": _trace,
    "memory": _memory,
    "system": _system,
}
