"""When each stack of a process was seen, from py-spy's Chrome trace: calls that begin (B) and end (E) on threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from corral.profiles.stacks import printable
from corral.profiles.trace_events import MOST_EVENTS, members, number, refused

_MOST_DEPTH: Final = 250
_MOST_THREADS: Final = 1_000


class Seen(NamedTuple):
    """A stack, outermost frame first, and from when to when it was that of a thread, in seconds."""

    begin: float
    end: float
    frames: tuple[str, ...]


def read_calls(pieces: Iterable[str]) -> Iterator[Seen]:
    """Yield the stacks of all threads, each thread's in order. Raises InvalidInput `bad-trace`."""
    threads: dict[str, list[str]] = {}
    since: dict[str, float] = {}
    for count, found in enumerate(members(pieces)):
        if count >= MOST_EVENTS or len(threads) > _MOST_THREADS:
            raise refused(f"it has more than {MOST_EVENTS:,} events")
        if not isinstance(found, dict) or found.get("ph") not in ("B", "E"):
            continue
        thread, at = str(found.get("tid"))[:50], number(found.get("ts")) / 1e6
        frames = threads.setdefault(thread, [])
        if frames and at > since[thread]:
            yield Seen(since[thread], at, tuple(frames[:_MOST_DEPTH]))
        since[thread] = at
        if found["ph"] == "B":
            frames.append(_frame(found))
        elif frames:
            frames.pop()


def _frame(found: dict[str, Any]) -> str:
    args = found.get("args")
    name = str(found.get("name"))
    if not isinstance(args, dict) or not args.get("filename"):
        return printable(name)
    return printable(f"{name} ({args['filename']}:{args.get('line')})")
