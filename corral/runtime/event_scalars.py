"""The scalars in an event, from the wire format of Protocol Buffers.

The messages are TensorFlow's `tensorflow/core/util/event.proto`, `framework/summary.proto`, `framework/tensor.proto`
and `framework/tensor_shape.proto`; only the fields named here are looked at. What cannot be read has no scalars.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

LONGEST_NAME: Final = 100
"""Characters of a tag; scalars with a longer one are left out."""
_MOST_FIELDS: Final = 5000
"""Fields of one message that are looked at."""
_LONGEST_VARINT: Final = 10
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WALL_TIME, _SUMMARY = 1, 5
_WALL_TIME_KEY: Final = bytes([_WALL_TIME << 3 | _FIXED64])
_VALUE: Final = 1
_TAG, _SIMPLE_VALUE, _TENSOR, _METADATA = 1, 2, 8, 9
_PLUGIN, _PLUGIN_NAME = 1, 1
_SCALARS: Final = b"scalars"
_TYPE, _SHAPE, _CONTENT = 1, 2, 4
_DIMENSION: Final = 2
_DOUBLE: Final = struct.Struct("<d")
_FLOAT: Final = struct.Struct("<f")


class _Numbers(NamedTuple):
    """How the single number of a tensor of one type is written."""

    bytes: struct.Struct
    """In `tensor_content`."""
    field: int
    """The field with its values, if it has no content."""


_TYPES: Final[Mapping[int, _Numbers]] = {
    1: _Numbers(_FLOAT, 5),
    2: _Numbers(_DOUBLE, 6),
    3: _Numbers(struct.Struct("<i"), 7),
    9: _Numbers(struct.Struct("<q"), 10),
}
"""By `DataType`: DT_FLOAT, DT_DOUBLE, DT_INT32, DT_INT64."""


class Scalar(NamedTuple):
    """One value of a curve."""

    tag: str
    at: float
    """When it was written, in seconds since 1970."""
    value: float


class _Unreadable(ValueError):
    """The bytes are no message."""


def time_of(data: bytes) -> float | None:
    """Return the time of an event if it begins with it, as all writers have it; else None."""
    return _DOUBLE.unpack_from(data, 1)[0] if data[:1] == _WALL_TIME_KEY and len(data) >= 9 else None


def scalars_of(data: bytes) -> list[Scalar]:
    """Return the scalars of an event; none of one without a time, and of bytes that are no event."""
    try:
        fields = list(_fields(data))
        times = [_DOUBLE.unpack(each.value)[0] for each in fields if each.key == (_WALL_TIME, _FIXED64)]
        if not times or not math.isfinite(times[-1]):
            return []
        summaries = [each.value for each in fields if each.key == (_SUMMARY, _BYTES)]
        values = [each.value for summary in summaries for each in _fields(summary) if each.key == (_VALUE, _BYTES)]
        found = [_scalar(value) for value in values]
    except _Unreadable:
        return []
    return [Scalar(tag, times[-1], value) for tag, value in filter(None, found)]


class _Field(NamedTuple):
    key: tuple[int, int]
    """Its number and its wire type."""
    value: bytes
    """Of a varint, its eight bytes in little endian."""


def _fields(data: bytes) -> Iterator[_Field]:
    """Yield the fields of a message. Raises _Unreadable."""
    at, end = 0, len(data)
    for _ in range(_MOST_FIELDS):
        if at == end:
            return
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield _Field((number, wire), value.to_bytes(8, "little"))
            continue
        if wire == _BYTES:
            length, at = _varint(data, at)
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
        else:
            raise _Unreadable
        if length > end - at:
            raise _Unreadable
        yield _Field((number, wire), data[at : at + length])
        at += length
    raise _Unreadable


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the 64 bits of the number at a place, and the place after it."""
    found = 0
    for shift, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        found |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return found & 0xFFFFFFFFFFFFFFFF, at + shift + 1
    raise _Unreadable


def _scalar(value: bytes) -> tuple[str, float] | None:
    """Return the tag and the number of a `Summary.Value`; None if it is no scalar that can be shown."""
    tag, number = "", None
    for each in _fields(value):
        if each.key == (_TAG, _BYTES):
            tag = each.value.decode("utf-8", "replace")
        elif each.key == (_SIMPLE_VALUE, _FIXED32):
            number = _FLOAT.unpack(each.value)[0]
        elif each.key == (_TENSOR, _BYTES):
            number = _number(each.value)
        elif each.key == (_METADATA, _BYTES) and _plugin(each.value) not in (b"", _SCALARS):
            return None
    if number is None or not math.isfinite(number) or not is_name(tag):
        return None
    return tag, float(number)


def is_name(text: str) -> bool:
    """Whether a text may be a label: it is not empty, not too long, and has no character that a terminal obeys."""
    return 0 < len(text) <= LONGEST_NAME and text.isprintable()


def _plugin(metadata: bytes) -> bytes:
    """The name of the plug-in that shows a value, from `SummaryMetadata`."""
    plugins = [each.value for each in _fields(metadata) if each.key == (_PLUGIN, _BYTES)]
    return next((each.value for data in plugins for each in _fields(data) if each.key == (_PLUGIN_NAME, _BYTES)), b"")


def _number(tensor: bytes) -> float | None:
    """The number of a tensor without dimensions; None for any other."""
    fields = list(_fields(tensor))
    kinds = [int.from_bytes(each.value, "little") for each in fields if each.key == (_TYPE, _VARINT)]
    shapes = [each.value for each in fields if each.key == (_SHAPE, _BYTES)]
    kind = _TYPES.get(kinds[-1]) if kinds else None
    if kind is None or any(each.key[0] == _DIMENSION for shape in shapes for each in _fields(shape)):
        return None
    contents = [each.value for each in fields if each.key == (_CONTENT, _BYTES) and each.value]
    values = [each for each in fields if each.key[0] == kind.field]
    if contents:
        return _unpacked(kind, contents[-1])
    if not values:
        return 0.0  # a zero is not written
    (_, wire), value = values[-1]
    if kind.bytes in (_FLOAT, _DOUBLE):
        return _unpacked(kind, value)
    number = int.from_bytes(value, "little", signed=True) if wire == _VARINT else None
    if wire == _BYTES:
        packed, end = _varint(value, 0)
        number = int.from_bytes(packed.to_bytes(8, "little"), "little", signed=True) if end == len(value) else None
    return number


def _unpacked(kind: _Numbers, value: bytes) -> float | None:
    return kind.bytes.unpack(value)[0] if len(value) == kind.bytes.size else None
