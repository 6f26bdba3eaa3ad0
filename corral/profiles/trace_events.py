"""Read the events of a Chrome trace piece by piece: memory stays bounded however long the trace is."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from corral.kernel.errors import InvalidInput
from corral.profiles.kernel_names import KERNEL, short_kernel_name

MOST_EVENTS: Final = 500_000
_MOST_EVENT: Final = 256 * 1024
"""Bytes of one event's text."""
_MOST_NUMBER: Final = 1e18
_LONGEST_NAME: Final = 200
_BEGIN: Final = '"traceEvents"'


class Event(NamedTuple):
    """A span of a thread or a device's stream, in microseconds."""

    name: str
    kind: str
    """The trace's category, such as `cpu_op` or `kernel`."""
    process: str
    thread: str
    begin: float
    length: float
    bytes: float = 0.0
    """The bytes that a copy moved, where the trace tells them."""
    group: str = ""
    """The ranks of a collective's process group, or its name, as PyTorch tells them; "" where it does not, as of gloo."""
    operation: str = ""
    """The collective and the type of its elements, where the trace tells them."""

    @property
    def end(self) -> float:
        """When it ended."""
        return self.begin + self.length


def read_events(pieces: Iterable[str]) -> Iterator[Event]:
    """Yield the spans of a trace, given as pieces of its text. Events of other kinds are left out.

    Raises InvalidInput `bad-trace`.
    """
    for count, found in enumerate(members(pieces)):
        if count >= MOST_EVENTS:
            raise refused(f"it has more than {MOST_EVENTS:,} events")
        if isinstance(found, dict) and found.get("ph") == "X":
            yield _event(found)


def members(pieces: Iterable[str]) -> Iterator[Any]:
    """Yield the members of the list `traceEvents`, or of a trace that is a list itself."""
    source = iter(pieces)
    text, at = _list_begin(source)
    decoder = json.JSONDecoder()
    while True:
        at = _after_blank(text, at)
        if at < len(text) and text[at] == "]":
            return
        try:
            if at >= len(text):
                raise ValueError
            found, end = decoder.raw_decode(text, at)
            if end >= len(text):
                raise ValueError  # a number may go on
        except RecursionError:
            raise refused("an event in it is nested too deep") from None
        except ValueError:
            text, at = text[at:], 0
            if len(text) > _MOST_EVENT:
                raise refused(f"an event in it is no JSON, or longer than {_MOST_EVENT >> 10} KiB") from None
            more = next(source, "")
            if not more:
                raise refused("it ends within its events") from None
            text += more
            continue
        yield found
        at = end


def _list_begin(source: Iterator[str]) -> tuple[str, int]:
    text = ""
    for piece in source:
        text += piece
        start = text.lstrip("\ufeff \t\r\n")
        if start.startswith("["):
            return start, 1
        found = text.find(_BEGIN)
        opened = text.find("[", found) if found >= 0 else -1
        if opened >= 0 and not text[found + len(_BEGIN) : opened].strip(": \t\r\n"):
            return text, opened + 1
        if len(text) > 4 * _MOST_EVENT:
            break
    raise refused("it has no list of events (traceEvents)")


def _after_blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at


def _event(found: dict[str, Any]) -> Event:
    begin, length = number(found.get("ts")), number(found.get("dur", 0))
    if length < 0:
        raise refused("an event in it has a negative length")
    told = found.get("args")
    args = told if isinstance(told, dict) else {}
    size = args.get("bytes", 0)
    kind, name = _text(found.get("cat")), found.get("name")
    return Event(
        _text(short_kernel_name(name) if kind == KERNEL and isinstance(name, str) else name),
        kind,
        _text(found.get("pid")),
        _text(found.get("tid")),
        begin,
        length,
        float(size) if isinstance(size, int | float) and 0 <= size <= _MOST_NUMBER else 0.0,
        _text(args.get("Process Group Ranks") or args.get("Process Group Name")),
        f"{_text(args.get('Collective name'))} {_text(args.get('dtype'))}".strip(),
    )


def number(value: Any) -> float:
    """A number of a trace, within bounds. Raises InvalidInput `bad-trace`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _MOST_NUMBER:
        raise refused("an event in it has no time, or one out of bounds")
    if not math.isfinite(found := float(value)):
        raise refused("an event in it has no time, or one out of bounds")
    return found


def _text(value: Any) -> str:
    text = str(value if isinstance(value, str | int | float) else "")
    return "".join(each if each.isprintable() else "?" for each in text[:_LONGEST_NAME])


def refused(why: str) -> InvalidInput:
    """The refusal of a trace, in one sentence."""
    return InvalidInput("bad-trace", f"This is not a trace that can be read: {why}.")
