"""Pack values at steps of a regular grid into few bytes: rounded numbers, their differences, and DEFLATE.

A value is rounded to some significant bits. All values of a chunk are then whole multiples of one power of two, so that
their differences are small whole numbers. Their bytes are sorted by significance, which DEFLATE packs well. The ideas are
those of Gorilla (Pelkonen et al., VLDB 2015) and of Blosc's shuffle filter; bit by bit they are too slow in Python.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from math import ldexp
from typing import Final, NamedTuple

EXACT: Final = 53
"""Significant bits that keep any float as it is."""
_RAW, _DEFLATED, _FLOATS = 0, 1, 2
_WIDTHS: Final = ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))
_OF_BYTE: Final = tuple((each >> 1) ^ -(each & 1) for each in range(256))
"""The whole number that a byte of a plane stands for."""
_EXACT_SHIFT: Final = 800
"""Beyond this shift products could become infinite, which `ldexp` refuses."""
_MOST_BITS: Final = 60
"""Bits of a multiple; chunks of wider range are packed as floats."""
_MOST_STEPS: Final = 1 << 12
_MOST_BYTES: Final = 1 << 18
"""Bytes of one chunk once inflated."""
_LEVEL: Final = 6
_NO_HEADER: Final = -15


class Chunk(NamedTuple):
    """Values at steps counted from the chunk's beginning; all columns are as long as `steps`, which ascend."""

    steps: Sequence[int]
    columns: tuple[Sequence[float], ...]


class BrokenChunk(ValueError):
    """The bytes are not those of a packed chunk."""


def round_to(value: float, bits: int) -> float:
    """The value rounded to significant bits: the relative error is at most 2^-bits."""
    fraction, exponent = math.frexp(value)
    return math.ldexp(round(math.ldexp(fraction, bits)), exponent - bits)


def pack(chunk: Chunk, bits: int) -> bytes:
    """The chunk in few bytes; its values are finite, and are rounded to `bits` significant bits.

    Columns after the first one are packed as differences from it: the least and the most of a step are near its mean.
    """
    body = bytearray()
    _write_runs(body, chunk.steps)
    body.append(len(chunk.columns))
    multiples = _multiples(chunk.columns, bits)
    if multiples is None:
        for column in chunk.columns:
            body += struct.pack(f"<{len(column)}d", *column)
        return _framed(body, floats=True)
    shift, columns = multiples
    body += struct.pack("<h", shift)
    first = columns[0]
    _write_whole(body, first[0])
    _write_planes(body, [b - a for a, b in pairwise(first)])
    for column in columns[1:]:
        _write_planes(body, [b - a for a, b in zip(first, column, strict=True)])
    return _framed(body, floats=False)


def unpack(data: bytes, most_steps: int = _MOST_STEPS) -> Chunk:
    """The chunk that was packed, with its values rounded.

    Raises BrokenChunk for other bytes, and for a chunk with a step of `most_steps` or later.
    """
    try:
        if not data or data[0] & ~(_DEFLATED | _FLOATS):
            raise BrokenChunk("The first byte of a chunk of series is not one that is known.")
        body = data[1:]
        if data[0] & _DEFLATED:
            inflater = zlib.decompressobj(_NO_HEADER)
            body = inflater.decompress(body, _MOST_BYTES)
            if not inflater.eof:
                raise BrokenChunk("A chunk of series is cut, or too long.")
        return _Reader(body).chunk(floats=bool(data[0] & _FLOATS), most_steps=most_steps)
    except (zlib.error, struct.error, IndexError, OverflowError) as error:
        raise BrokenChunk(f"A chunk of series is broken: {error}.") from None


def _multiples(columns: Iterable[Sequence[float]], bits: int) -> tuple[int, list[list[int]]] | None:
    """The rounded values as multiples of 2^shift; None if their range is too wide for that."""
    scale = float(1 << bits)
    split: dict[float, tuple[int, int]] = {}
    lowest, highest = 1 << 20, -(1 << 20)
    for column in columns:
        for value in column:
            if value in split:
                continue
            fraction, exponent = math.frexp(value)
            whole = round(fraction * scale)
            exponent -= bits
            split[value] = whole, exponent
            if whole:
                lowest = min(lowest, exponent + (whole & -whole).bit_length() - 1)
                highest = max(highest, exponent + whole.bit_length())
    if lowest > highest:
        lowest = highest = 0
    if highest - lowest > _MOST_BITS or lowest < -(1 << 15):
        return None
    made = {
        value: (whole << (exponent - lowest)) if exponent >= lowest else whole >> (lowest - exponent)
        for value, (whole, exponent) in split.items()
    }
    return lowest, [[made[value] for value in column] for column in columns]


def _framed(body: bytearray, *, floats: bool) -> bytes:
    kind = _FLOATS if floats else _RAW
    deflater = zlib.compressobj(_LEVEL, zlib.DEFLATED, _NO_HEADER, 6)
    packed = deflater.compress(body) + deflater.flush()
    if len(packed) < len(body):
        return bytes((kind | _DEFLATED,)) + packed
    return bytes((kind,)) + bytes(body)


def _runs(steps: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Runs of successive steps: how many steps lie before each, and its length."""
    if steps and steps[-1] - steps[0] == len(steps) - 1:
        yield steps[0], len(steps)
        return
    end = begun = 0
    last = None
    for step in steps:
        if last is not None and step == last + 1:
            last = step
            continue
        if last is not None:
            yield begun - end, last + 1 - begun
            end = last + 1
        begun = last = step
    if last is not None:
        yield begun - end, last + 1 - begun


def _write_runs(body: bytearray, steps: Sequence[int]) -> None:
    runs = list(_runs(steps))
    _write_natural(body, len(runs))
    for skipped, length in runs:
        _write_natural(body, skipped)
        _write_natural(body, length)


def _write_natural(body: bytearray, number: int) -> None:
    """Seven bits a byte, the lowest first."""
    while number > 0x7F:
        body.append(number & 0x7F | 0x80)
        number >>= 7
    body.append(number)


def _write_whole(body: bytearray, number: int) -> None:
    _write_natural(body, number << 1 if number >= 0 else ~(number << 1))


def _write_planes(body: bytearray, numbers: list[int]) -> None:
    """Whole numbers of equal width, all their lowest bytes first."""
    natural = [number << 1 if number >= 0 else ~(number << 1) for number in numbers]
    most = max(natural, default=0)
    width, code = next(each for each in _WIDTHS if most < 1 << (8 * each[0]))
    data = struct.pack(f"<{len(natural)}{code}", *natural)
    body.append(width)
    for at in range(width):
        body += data[at::width]


def _scaled(multiples: Sequence[int], shift: int) -> list[float]:
    """The multiples of 2^shift; a product with a power of two is exact, and faster than `ldexp`."""
    if -1022 <= shift <= _EXACT_SHIFT:
        scale = 2.0**shift
        return [each * scale for each in multiples]
    return [ldexp(each, shift) for each in multiples]


class _Reader:
    """Reads the body of a chunk."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def chunk(self, *, floats: bool, most_steps: int) -> Chunk:
        steps = self._steps(most_steps)
        columns = self._byte()
        if not steps or columns > 3 or not columns:
            raise BrokenChunk("A chunk of series has no steps, or not one to three columns.")
        if floats:
            return Chunk(steps, tuple(self._floats(len(steps)) for _ in range(columns)))
        (shift,) = struct.unpack("<h", self._take(2))
        value = self._whole()
        first = list(accumulate(self._planes(len(steps) - 1), initial=value))
        others = [[a + b for a, b in zip(first, self._planes(len(steps)), strict=True)] for _ in range(columns - 1)]
        return Chunk(steps, tuple(_scaled(column, shift) for column in (first, *others)))

    def _steps(self, most: int) -> list[int]:
        steps: list[int] = []
        end = 0
        for _ in range(self._natural()):
            begun = end + self._natural()
            end = begun + self._natural()
            if end > most:
                raise BrokenChunk(f"A chunk of series has a step after its end of {most} steps.")
            steps.extend(range(begun, end))
        return steps

    def _planes(self, count: int) -> list[int]:
        width = self._byte()
        code = dict(_WIDTHS).get(width)
        if code is None:
            raise BrokenChunk("A chunk of series has numbers of a width that is not known.")
        planes = self._take(width * count)
        data = bytearray(width * count)
        for at in range(width):
            data[at::width] = planes[at * count : (at + 1) * count]
        if width == 1:
            return [_OF_BYTE[each] for each in data]
        return [(each >> 1) ^ -(each & 1) for each in struct.unpack(f"<{count}{code}", data)]

    def _floats(self, count: int) -> list[float]:
        return list(struct.unpack(f"<{count}d", self._take(8 * count)))

    def _whole(self) -> int:
        number = self._natural()
        return ~(number >> 1) if number & 1 else number >> 1

    def _natural(self) -> int:
        number = shift = 0
        while (byte := self._byte()) > 0x7F:
            number |= (byte & 0x7F) << shift
            shift += 7
            if shift > 70:
                raise BrokenChunk("A chunk of series has a number that is too long.")
        return number | byte << shift

    def _byte(self) -> int:
        self._at += 1
        return self._body[self._at - 1]

    def _take(self, size: int) -> bytes:
        data = self._body[self._at : self._at + size]
        self._at += size
        if len(data) != size:
            raise BrokenChunk("A chunk of series ends in the midst of its numbers.")
        return data
