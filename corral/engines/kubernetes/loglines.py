"""Why: a pod's log cannot be read from an offset; what was read already is told by the times that stand before its lines.

The kubelet puts a time with nanoseconds before each line (`timestamps`) and can begin at a whole second (`sinceTime`).
Reading goes on in that second and passes over what was had: lines of earlier times, as many lines of the last time as
were counted, and the bytes of a line that was cut off. The last line that was had must come again; where it does not,
the kubelet has rotated it away, and a marker says that something may be missing.
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
    """How far a log was read, and how large the copy was then."""

    size: int = 0
    stamp: Stamp = (0, 0)
    """The time of the last line."""
    lines: int = 0
    """How many whole lines of that time were had."""
    cut: int = 0
    """How many bytes of one more line of that time were had."""

    @property
    def since(self) -> int:
        """The second from which to read on; 0 is the beginning."""
        return self.stamp[0]

    def mark(self) -> str:
        """All but the size, in digits and points."""
        return f"{self.stamp[0]}.{self.stamp[1]:09d}.{self.lines}.{self.cut}"

    @staticmethod
    def of_mark(mark: str, size: int) -> Position:
        """The position that was marked so; the beginning for what is no mark."""
        numbers = mark.split(".")
        if len(numbers) != 4 or not all(number.isascii() and number.isdigit() for number in numbers):
            return Position()
        seconds, nanoseconds, lines, cut = map(int, numbers)
        return Position(size, (seconds, nanoseconds), lines, cut)


class LogLines:
    """Takes the times off the lines of one connection, and passes over what was had before it."""

    def __init__(self, position: Position, size: int = -1) -> None:
        """`size` is that of the copy now: what it has beyond the position's is passed over too."""
        self.position = position
        self._over = max(0, size - position.size) if size >= 0 else 0
        self._target = position.stamp
        self._again = position.lines
        """Whole lines of the last time that was had, still to come again."""
        self._resuming = position.stamp != (0, 0)
        self._met = False
        """Whether a line of that time has come again."""
        self._begun = b""
        self._in_line = False
        self._had = False
        """Whether the line under way was had."""
        self._cut = 0
        """How many bytes of it were."""
        self._counts = True
        """Whether it is of the latest time: two streams of a container may be told slightly out of order."""

    def feed(self, chunk: bytes) -> bytes:
        """What of the chunk is new, without the times."""
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
        """A line of this time begins; the marker when something before it may be missing."""
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
        """Bytes of the line under way; `whole` ends it."""
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
    """The time before a line; None when there is none (then the line is taken as it is)."""
    head, dot, rest = text.partition(b".")
    digits = rest[: len(rest) - len(rest.lstrip(b"0123456789"))] if dot else b""
    zone = rest[len(digits) :] if dot else b""
    try:
        moment = datetime.fromisoformat((head + zone).decode("ascii"))
        return int(moment.timestamp()), int(digits.ljust(9, b"0")[:9] or b"0")
    except ValueError:
        return None
