"""The records of an event file: TFRecord, the framing of TensorFlow's `tensorflow/core/lib/io/record_writer.h`.

A record is its length (uint64, little endian), the masked CRC32C of these eight bytes, the data, and the masked CRC32C
of the data. The mask is `((crc >> 15) | (crc << 17)) + 0xa282ead8`. CRC32C is that of RFC 3720 (Castagnoli).
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

HEADER: Final = 12
FOOTER: Final = 4
LONGEST: Final = 2**30
"""Bytes of a record; a file that claims a longer one is broken."""
_POLYNOMIAL: Final = 0x82F63B78
_MASK: Final = 0xA282EAD8
_LENGTH: Final = struct.Struct("<QI")
_SUM: Final = struct.Struct("<I")


def _remainders() -> tuple[int, ...]:
    found = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        found.append(value)
    return tuple(found)


_TABLE: Final = _remainders()


class BrokenRecord(ValueError):
    """The bytes are not what a writer wrote, so that nobody knows where the next record begins."""


class Header(NamedTuple):
    """What stands before the data of a record."""

    length: int

    @property
    def whole(self) -> int:
        """The bytes of the whole record."""
        return HEADER + self.length + FOOTER


def crc32c(data: bytes) -> int:
    """Return the CRC32C of some bytes."""
    found = 0xFFFFFFFF
    for byte in data:
        found = _TABLE[(found ^ byte) & 0xFF] ^ found >> 8
    return found ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    """Return a checksum as it is stored."""
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF


def header_at(data: bytes, at: int) -> Header | None:
    """Return the header that begins at a place; None if its end is not there yet.

    Raises BrokenRecord if its checksum is wrong, or its length is above `LONGEST`.
    """
    if len(data) - at < HEADER:
        return None
    length, stored = _LENGTH.unpack_from(data, at)
    if stored != masked(crc32c(data[at : at + 8])):
        raise BrokenRecord("the checksum of a record's length is wrong")
    if length > LONGEST:
        raise BrokenRecord(f"a record claims to have {length} bytes")
    return Header(length)


def data_of(record: bytes) -> bytes | None:
    """Return the data of a whole record; None if its checksum is wrong."""
    data = record[HEADER:-FOOTER]
    return data if _SUM.unpack(record[-FOOTER:])[0] == masked(crc32c(data)) else None
