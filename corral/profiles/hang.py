"""Who is odd in a gang that makes no progress: two looks at each rank, some seconds apart, and what its recorder has.

A rank that works explains the silence: it compiles, or saves a large checkpoint. In a gang in which nothing moves, the
odd rank is the one that is stopped, that is behind in its collectives, or that stands where few others do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from corral.profiles.recorder import Recorded
from corral.profiles.stacks import Stack

COLLECTIVES: Final = frozenset(
    {
        "all_reduce", "allreduce", "reduce", "broadcast", "all_gather", "all_gather_into_tensor", "all_gather_object",
        "gather", "scatter", "reduce_scatter", "reduce_scatter_tensor", "all_to_all", "all_to_all_single", "barrier",
        "monitored_barrier", "broadcast_object_list", "gather_object", "send", "recv", "allgather", "alltoall",
        "allreduce_", "grouped_allreduce", "synchronize_grads", "Allreduce", "Barrier", "Bcast", "Allgather",
    }
)  # fmt: skip
"""Functions of PyTorch, Horovod and mpi4py in which a rank waits for others."""
_MAIN: Final = "MainThread"
_MOST_PROBLEM: Final = 200
_STOPPED: Final = frozenset("Tt")
_BUSY: Final = 0.05
"""The part of the time between two looks in which a process that works used a processor; it may have to share one."""
_LEAST_IO: Final = 64 * 1024
"""Bytes that a process that works has read or written between two looks."""


class Standing(StrEnum):
    """What one rank does."""

    UNKNOWN = "unknown"
    """It could not be looked at."""
    STOPPED = "stopped"
    """A signal or a debugger stopped its process."""
    WORKS = "works"
    """It moves: another place in the program, processor time, or files and connections."""
    WAITS = "waits"
    """It is in a collective, or stands still while one that it began is not over."""
    STILL = "still"
    """It does nothing, outside of any collective."""


_ALONE: Final = {
    Standing.UNKNOWN: "could not be looked at",
    Standing.STOPPED: "is stopped",
    Standing.WAITS: "waits",
}
"""What the only process of a job does."""


class Look(NamedTuple):
    """One look at a process."""

    at: float
    """Seconds, by any clock."""
    state: str
    """The kernel's letter for it, such as S or T."""
    cpu_seconds: float
    """Of it and of its children."""
    io_bytes: int
    stacks: tuple[Stack, ...] = ()

    @property
    def frames(self) -> tuple[str, ...]:
        """The main thread's frames, innermost first."""
        return next((each.frames for each in self.stacks if each.thread == _MAIN), ())


class Rank(NamedTuple):
    """One process of a task, as it was found."""

    task: str
    process: int
    looks: tuple[Look, ...] = ()
    problem: str = ""
    recorded: Recorded | None = None
    """The last collective that its flight recorder has."""


class Found(NamedTuple):
    """What one rank does, and where."""

    task: str
    process: int
    standing: Standing
    collective: str = ""
    """The collective in which it stands, or that it was in last by its recorder."""
    number: int = 0
    """The number of that collective in its group; 0 is not known."""
    place: str = ""
    """The line of the program."""
    problem: str = ""


class Verdict(NamedTuple):
    """What is known of a gang that makes no progress."""

    hangs: bool
    """Whether nothing in it moves."""
    odd: tuple[Found, ...]
    """The ranks that the others wait for; none if all are alike."""
    ranks: tuple[Found, ...]
    why: str
    """One sentence."""

    @property
    def certain(self) -> bool:
        """Whether nothing moves, and each rank could be looked at."""
        return self.hangs and all(each.standing is not Standing.UNKNOWN for each in self.ranks)


def judge(ranks: Sequence[Rank]) -> Verdict:
    """Tell whether a silent gang hangs, and which of its ranks are odd."""
    found = tuple(_found(each) for each in ranks)
    working = tuple(each for each in found if each.standing is Standing.WORKS)
    if working:
        return Verdict(False, working, found, f"{_names(working)} {_verb(working, 'works', 'work')}.")
    if found and all(each.standing is Standing.UNKNOWN for each in found):
        return Verdict(False, (), found, _unseen(found))
    odd, why = _odd(found)
    return Verdict(True, odd, found, _sentence(odd, why, found))


def judge_tasks(ranks: Sequence[Rank], tasks: Container[str]) -> Verdict:
    """Tell of tasks that make no progress while their peers go on: whether they hang, and where they stand.

    They are the odd ones, however the others stand; those that work are only where all of them do.
    """
    own = [each for each in ranks if each.task in tasks]
    working = {each.task for each in own if _standing(each) is Standing.WORKS}
    verdict = judge([each for each in own if each.task not in working] or own)
    return verdict._replace(odd=verdict.ranks, ranks=tuple(map(_found, ranks)))


def _found(rank: Rank) -> Found:
    standing = _standing(rank)
    frames = rank.looks[-1].frames if rank.looks else ()
    at = next((at for at, frame in enumerate(frames) if _name(frame) in COLLECTIVES), None)
    collective = "" if at is None else _name(frames[at])
    number = rank.recorded.number if rank.recorded is not None else 0
    if not collective and rank.recorded is not None:
        collective = rank.recorded.name
    return Found(rank.task, rank.process, standing, collective, number, _place(frames, at), rank.problem)


def _standing(rank: Rank) -> Standing:
    if not rank.looks:
        return Standing.UNKNOWN
    first, last = rank.looks[0], rank.looks[-1]
    if last.state in _STOPPED:
        return Standing.STOPPED
    # On a device a collective is begun, and then something waits for it, often with a busy processor.
    begun = rank.recorded is not None and not rank.recorded.done and bool(last.frames)
    waits = begun or any(_name(frame) in COLLECTIVES for frame in last.frames)
    if last.io_bytes - first.io_bytes >= _LEAST_IO:
        return Standing.WORKS
    if waits and first.frames == last.frames:
        return Standing.WAITS
    took = last.at - first.at
    busy = took > 0 and (last.cpu_seconds - first.cpu_seconds) / took >= _BUSY
    moved = first.frames != last.frames and bool(first.frames) and bool(last.frames)
    if busy or moved:
        return Standing.WORKS
    return Standing.WAITS if waits else Standing.STILL


def _odd(found: Sequence[Found]) -> tuple[tuple[Found, ...], str]:
    """The odd ranks, and why; none if all are alike."""
    stopped = _those(found, Standing.STOPPED)
    if 0 < len(stopped) < len(found):
        return stopped, _verb(stopped, "is stopped", "are stopped")
    unknown = _those(found, Standing.UNKNOWN)
    if 0 < len(unknown) < len(found):
        return unknown, "could not be looked at"
    if len(found) > 1 and all(each.number for each in found):
        least, most = min(each.number for each in found), max(each.number for each in found)
        if least < most:
            behind = tuple(each for each in found if each.number == least)
            return behind, _verb(behind, "is behind", "are behind")
    still = _those(found, Standing.STILL)
    if 0 < 2 * len(still) <= len(found):
        return still, _verb(still, "stands elsewhere", "stand elsewhere")
    places = Counter((each.collective, each.place) for each in found)
    usual = max(places.values(), default=0)
    fewer = tuple(each for each in found if places[each.collective, each.place] < usual)
    if 0 < 2 * len(fewer) < len(found):
        return fewer, _verb(fewer, "stands elsewhere", "stand elsewhere")
    return (), ""


def _those(found: Sequence[Found], standing: Standing) -> tuple[Found, ...]:
    return tuple(each for each in found if each.standing is standing)


def _sentence(odd: Sequence[Found], why: str, found: Sequence[Found]) -> str:
    others = [each for each in found if each not in odd]
    waits = Counter(each.collective for each in others if each.standing is Standing.WAITS)
    waiting = _waiting(waits) if waits else ""
    if not odd:
        together = Counter(each.collective for each in found if each.standing is Standing.WAITS)
        if len(found) > 1 and sum(together.values()) == len(found) and len(together) == 1:
            return f"All {len(found)} ranks wait in {_or_none(together)}."
        return _alone(found[0]) if len(found) == 1 else "No rank moves."
    where = [each.place for each in odd if each.place]
    collective = next((each.collective for each in odd if each.collective), "")
    number = next((each.number for each in odd if each.number), 0)
    told = f"{_names(odd)} {why}"
    if collective:
        told += f" in {collective}" + (f" number {number}" if number else "")
    if where:
        told += f" at {where[0]}"
    return f"{told}; {waiting}." if waiting else f"{told}."


def _unseen(found: Sequence[Found]) -> str:
    """The sentence of ranks of which none could be looked at, with the first problem."""
    told = f"{found[0].task} could not" if len(found) == 1 else f"None of the {len(found)} ranks could"
    why = next((each.problem for each in found if each.problem), "")[:_MOST_PROBLEM].rstrip(".")
    return f"{told} be looked at{f': {why}' if why else ''}."


def _alone(rank: Found) -> str:
    """The sentence of a job of one process."""
    waits = rank.standing is Standing.WAITS
    told = f"{rank.task} {_ALONE.get(rank.standing, 'stands still')}"
    if waits and rank.collective:
        told += f" in {rank.collective}" + (f" number {rank.number}" if rank.number else "")
    return f"{told} at {rank.place}." if rank.place else f"{told}."


def _waiting(waits: Counter[str]) -> str:
    several = sum(waits.values())
    return f"{f'{several} others wait' if several > 1 else 'another waits'} in {_or_none(waits)}"


def _or_none(counted: Counter[str]) -> str:
    return counted.most_common(1)[0][0] or "a collective"


def _names(found: Sequence[Found]) -> str:
    names = list(dict.fromkeys(each.task for each in found))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _verb(found: Sequence[Found], one: str, several: str) -> str:
    return one if len({each.task for each in found}) == 1 else several


def _name(frame: str) -> str:
    return frame.partition(" (")[0].rpartition(".")[2]


def _place(frames: Iterable[str], at: int | None) -> str:
    """The innermost line of the program itself: outside of the collective's library."""
    rest = list(frames)[0 if at is None else at + 1 :]
    own = [frame for frame in rest if "torch/" not in frame and "threading.py" not in frame and "<frozen" not in frame]
    return (own or rest or [""])[0]
