"""Decompression of gzip and decoding of records, as a loader of data does it in one process."""

from __future__ import annotations

import gzip
import struct
import zlib

from corral.benchmarks.programs.given import Given, best_seconds

_RECORD = struct.Struct("<I252s")


def measure(given: Given) -> dict[str, float]:
    """Return GB/s of decompressed bytes, and records in a second."""
    size = given.parameters["size_mib"] * 2**20 // 4  # compressing is slow; a quarter shows the rate as well
    line = b"".join(str(number * 2654435761 % 2**32).encode() + b"," for number in range(4096))
    text = (line * (size // len(line) + 1))[:size]
    packed = gzip.compress(text, compresslevel=1, mtime=0)
    if zlib.crc32(gzip.decompress(packed)) != zlib.crc32(text):
        raise ArithmeticError("decompressed bytes differ")
    repeat = given.parameters["repeat"]
    records = text[: len(text) // _RECORD.size * _RECORD.size]
    count = len(records) // _RECORD.size
    return {
        "gunzip_bw": len(text) / best_seconds(lambda: gzip.decompress(packed), repeat) / 1e9,
        "records_throughput": count / best_seconds(lambda: sum(key for key, _ in _RECORD.iter_unpack(records)), repeat),
    }
