"""Resume reading a pod's log by the timestamps of its lines, since Kubernetes has no offsets.

The kubelet puts a time with nanoseconds before each line (`timestamps`) and can start at a whole second (`sinceTime`).
Reading resumes at that second. It skips lines of earlier times, the counted lines of the last time, and the bytes
already read of a partial line. The last line must appear again. If it does not, the kubelet has rotated it away, and a
marker in the copy says that something may be missing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

GAP: Final = b"[corral: the connection broke here; what was printed meanwhile may be missing]\n"
_LONGEST_STAMP: Final = 64

Stamp = tuple[int, int]
"""Seconds since 1970 and nanoseconds."""


class Position(msgspec.Struct, frozen=True):
    """The read position in a log, and the size of the copy at that point in bytes."""

    size: int = 0
    stamp: Stamp = (0, 0)
    """The time of the last line."""
    lines: int = 0
    """The number of whole lines read with that time."""
    cut: int = 0
    """The number of bytes read of one more line with that time."""

    @property
    def since(self) -> int:
        """The second from which to resume, 0 for the beginning."""
        return self.stamp[0]

    def mark(self) -> str:
        """Encode everything but the size, in digits and points."""
        return f"{self.stamp[0]}.{self.stamp[1]:09d}.{self.lines}.{self.cut}"

    @staticmethod
    def of_mark(mark: str, size: int) -> Position:
        """Decode a mark. Invalid text gives the beginning."""
        numbers = mark.split(".")
        if len(numbers) != 4 or not all(number.isascii() and number.isdigit() for number in numbers):
            return Position()
        seconds, nanoseconds, lines, cut = map(int, numbers)
        return Position(size, (seconds, nanoseconds), lines, cut)


class LogLines:
    """Strips the timestamps from the lines of one connection and skips lines that were read before."""

    def __init__(self, position: Position, size: int = -1) -> None:
        """`size` is the current size of the copy: bytes beyond the position's size are skipped too."""
        self.position = position
        self._over = max(0, size - position.size) if size >= 0 else 0
        self._target = position.stamp
        self._again = position.lines
        """Whole lines of the last read time that are still to be skipped."""
        self._resuming = position.stamp != (0, 0)
        self._met = False
        """Whether a line of that time has appeared again."""
        self._begun = b""
        self._in_line = False
        self._had = False
        """Whether the current line was read before."""
        self._cut = 0
        """Bytes of the current line that were read before."""
        self._counts = True
        """Whether the current line has the latest time: a container's two streams may be slightly out of order."""

    def feed(self, chunk: bytes) -> bytes:
        """Return the new part of the chunk, without timestamps."""
        out = bytearray()
        view = self._begun + chunk if self._begun else chunk
        self._begun, at = b"", 0
        while at < len(view):
            if not self._in_line:
                space = view.find(b" ", at, at + _LONGEST_STAMP)
                if space < 0 and len(view) - at < _LONGEST_STAMP:
                    self._begun = view[at:]
                    break
                stamp = _stamp(view[at:space]) if space >= 0 else None
                if stamp is not None:
                    at = space + 1
                out += self._line(stamp or self.position.stamp)
            newline = view.find(b"\n", at)
            end = newline + 1 if newline >= 0 else len(view)
            out += self._piece(view[at:end], whole=newline >= 0)
            at = end
        return self._new(bytes(out))

    def _line(self, stamp: Stamp) -> bytes:
        """Begin a line of this time. Return the marker if lines before it may be missing."""
        self._in_line, self._cut = True, 0
        self._had = self._resuming and (stamp < self._target or (stamp == self._target and self._again > 0))
        self._met = self._met or stamp == self._target
        if self._had:
            self._again -= stamp == self._target
            return b""
        missing = self._resuming and not self._met
        if self._resuming and stamp == self._target:
            self._cut = self.position.cut
        self._resuming = False
        if stamp > self.position.stamp:
            self.position = msgspec.structs.replace(self.position, stamp=stamp, lines=0, cut=0)
        self._counts = stamp == self.position.stamp
        return GAP if missing else b""

    def _piece(self, piece: bytes, *, whole: bool) -> bytes:
        """Take bytes of the current line; `whole` ends it."""
        self._in_line = not whole
        if self._had:
            return b""
        passed = min(self._cut, len(piece))
        self._cut -= passed
        place = self.position
        if not self._counts:
            pass
        elif whole:
            self.position = msgspec.structs.replace(place, lines=place.lines + 1, cut=0)
        else:
            self.position = msgspec.structs.replace(place, cut=place.cut + len(piece) - passed)
        return piece[passed:]

    def _new(self, out: bytes) -> bytes:
        passed = min(self._over, len(out))
        self._over -= passed
        self.position = msgspec.structs.replace(self.position, size=self.position.size + len(out))
        return out[passed:]


def _stamp(text: bytes) -> Stamp | None:
    """Parse the timestamp of a line, None if there is none (then the line is kept as it is)."""
    head, dot, rest = text.partition(b".")
    digits = rest[: len(rest) - len(rest.lstrip(b"0123456789"))] if dot else b""
    zone = rest[len(digits) :] if dot else b""
    try:
        moment = datetime.fromisoformat((head + zone).decode("ascii"))
        return int(moment.timestamp()), int(digits.ljust(9, b"0")[:9] or b"0")
    except ValueError:
        return None
