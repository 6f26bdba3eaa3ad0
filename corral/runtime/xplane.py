"""Read an XSpace, the trace of XLA's profiler (xplane.proto), as the events of a Chrome trace. Needs Python 3.8 alone.

A plane is a host or a device, its lines are threads or streams. Times are picoseconds after the line's beginning.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_NAME = 200
_COPIES = ("memcpy", "copy-start", "copy-done", "infeed", "outfeed")
_IDLE = ("wait", "idle", "sleep", "listener")
"""Beginnings of names, in small letters, of what a thread does when it does nothing."""
_BELOW = ("xla modules", "framework", "source", "steps", "name scope", "launch stats", "derived")
"""Lines of a device that repeat its kernels in other words."""


class BadXSpace(ValueError):
    """Bytes that are no XSpace."""


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message, each with its number: whole numbers, or bytes. Raises BadXSpace."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        size, at = (8, at) if kind == 1 else (4, at) if kind == 5 else _varint(data, at) if kind == 2 else (-1, at)
        if size < 0 or at + size > end:
            raise BadXSpace
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise BadXSpace
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
        shift += 7


def chrome_events(data: bytes) -> Iterator[dict[str, Any]]:
    """The events of an XSpace, with categories as PyTorch's traces have them: `cpu_op`, `kernel`, `gpu_memcpy`."""
    for number, plane in enumerate(value for field, value in fields(data) if field == 1):
        yield from _plane(number, plane)


def _plane(number: int, plane: bytes) -> Iterator[dict[str, Any]]:
    name, lines, names, stats = "", [], {}, {}
    for field, value in fields(plane):
        if field == 2:
            name = _text(value)
        elif field == 3:
            lines.append(value)
        elif field == 4:
            names.update(_entry(value))
        elif field == 5:
            stats.update(_entry(value))
    device = name.startswith("/device:")
    if not device and not name.startswith("/host:"):
        return  # metadata of programs, and derived planes
    steps = {key for key, word in stats.items() if word == "step_num"}
    yield {"ph": "M", "name": "process_name", "pid": number, "args": {"name": name}}
    for thread, line in enumerate(lines):
        yield from _line((number, thread), line, names, steps, device)


def _entry(value: bytes) -> dict[int, str]:
    """An entry of a map from ids to names: of XEventMetadata and XStatMetadata field 2 is the name."""
    key, name = 0, ""
    for field, found in fields(value):
        if field == 1 and isinstance(found, int):
            key = found
        elif field == 2 and isinstance(found, bytes):
            name = next((_text(each) for number, each in fields(found) if number == 2), "")
    return {key: name}


def _line(
    place: tuple[int, int], line: bytes, names: dict[int, str], steps: set[int], device: bool
) -> Iterator[dict[str, Any]]:
    number, thread = place
    known = {field: value for field, value in fields(line) if field in (2, 3)}
    title, begun = _text(known.get(2, b"")), (known[3] if isinstance(known.get(3), int) else 0) / 1000
    if device and title.lower().startswith(_BELOW):
        return
    yield {"ph": "M", "name": "thread_name", "pid": number, "tid": thread, "args": {"name": title}}
    for field, event in fields(line):
        if field != 4:
            continue
        found = _event(event, steps)
        name = names.get(found[0], "")
        yield {
            "ph": "X", "name": name[:_LONGEST_NAME], "cat": _kind(name, found[3], device), "pid": number, "tid": thread,
            "ts": round(begun + found[1] / 1e6, 3), "dur": round(found[2] / 1e6, 3),
        }  # fmt: skip


def _event(event: bytes, steps: set[int]) -> tuple[int, int, int, bool]:
    """What an event is called by its id, when it begins, how long it takes, and whether it is a step of training."""
    values = {1: 0, 2: 0, 3: 0}
    step = False
    for field, value in fields(event):
        if field in values and isinstance(value, int):
            values[field] = value
        elif field == 4 and isinstance(value, bytes):
            step = step or any(number == 1 and id in steps for number, id in fields(value))
    return values[1], values[2], values[3], step


def _kind(name: str, step: bool, device: bool) -> str:
    small = name.lower()
    if device:
        return "gpu_memcpy" if small.startswith(_COPIES) else "kernel"
    if step:
        return "user_annotation"
    if name.startswith("$"):
        return "python_function"
    return "idle" if any(word in small for word in _IDLE) else "cpu_op"


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def chrome_trace(data: bytes, most: int) -> Iterator[bytes]:
    """The text of a Chrome trace in pieces, up to `most` bytes; an empty piece at the end says that it was cut."""
    head = b'{"traceEvents":[\n'
    yield head
    left, between = most - len(head) - 8, b""
    for event in chrome_events(data):
        line = between + json.dumps(event).encode()
        left -= len(line)
        if left < 0:
            yield b"\n]}\n"
            yield b""
            return
        yield line
        between = b",\n"
    yield b"\n]}\n"
