"""Write event files byte by byte, by the published format and without the code that reads them."""

from __future__ import annotations

import struct
from pathlib import Path

NAME = "events.out.tfevents.1764028800.node-a.7.0"


def crc32c(data: bytes) -> int:
    """CRC32C bit by bit (RFC 3720)."""
    found = 0xFFFFFFFF
    for byte in data:
        found ^= byte
        for _ in range(8):
            found = found >> 1 ^ (0x82F63B78 if found & 1 else 0)
    return found ^ 0xFFFFFFFF


def _sum(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    """A TFRecord."""
    length = struct.pack("<Q", len(data))
    return length + _sum(length) + data + _sum(data)


def varint(number: int) -> bytes:
    number &= 0xFFFFFFFFFFFFFFFF
    found = b""
    while number > 0x7F:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def part(number: int, data: bytes) -> bytes:
    """A field with a length."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def whole(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def float_(number: int, value: float) -> bytes:
    return varint(number << 3 | 5) + struct.pack("<f", value)


def event(at: float, *values: bytes, step: int = 1) -> bytes:
    """An event with a summary of these values."""
    summary = b"".join(part(1, each) for each in values)
    return varint(1 << 3 | 1) + struct.pack("<d", at) + whole(2, step) + (part(5, summary) if values else b"")


def simple(tag: str, value: float) -> bytes:
    """A `Summary.Value` with `simple_value`."""
    return part(1, tag.encode()) + float_(2, value)


def tensor(tag: str, kind: int, *fields: bytes, shape: bytes = b"", plugin: str = "scalars") -> bytes:
    """A `Summary.Value` with a tensor, as TensorFlow 2 writes it."""
    metadata = part(9, part(1, part(1, plugin.encode()))) if plugin else b""
    return part(1, tag.encode()) + metadata + part(8, whole(1, kind) + part(2, shape) + b"".join(fields))


def scalars(*points: tuple[float, str, float]) -> bytes:
    """Records of events with one scalar each: time, tag and value."""
    return b"".join(record(event(at, simple(tag, value))) for at, tag, value in points)


def header(at: float) -> bytes:
    """The first record of a file."""
    return record(varint(1 << 3 | 1) + struct.pack("<d", at) + part(3, b"brain.Event:2"))


def write(folder: Path, data: bytes, name: str = NAME) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(data)
    return path
