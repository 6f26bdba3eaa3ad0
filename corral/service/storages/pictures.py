"""Pictures that a browser may show: their type by their first bytes, and their size in pixels. Pure functions.

A name says nothing of what is in a file, so only the bytes decide. A small file can claim billions of pixels, which a
browser would hold in memory; such a picture is refused by what its header says.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from corral.kernel.errors import InvalidInput

MOST_BYTES: Final = 16 << 20
MOST_PIXELS: Final = 40_000_000
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_START_OF_FRAME: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_START_OF_SCAN: Final = 0xDA


def picture_type(data: bytes) -> str:
    """The media type of a PNG, JPEG, GIF or WebP picture; "" for anything else, SVG included, as it can hold scripts."""
    if data.startswith(_PNG):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return ""


def checked_picture(data: bytes, size: int) -> str:
    """The media type of a picture that may be shown, by its first bytes and its whole size.

    Raises InvalidInput `no-picture`, and `picture-too-large` for too many bytes or pixels.
    """
    found = picture_type(data)
    if not found:
        raise InvalidInput("no-picture", "Only PNG, JPEG, GIF and WebP pictures are shown; fetch the file instead.")
    if size > MOST_BYTES:
        message = f"Pictures of at most {MOST_BYTES >> 20} MiB are shown, and this one has {size:,} bytes; fetch it."
        raise InvalidInput("picture-too-large", message)
    try:
        extents = list(_EXTENTS[found](data))
    except (struct.error, IndexError):
        extents = []
    if not extents:
        raise InvalidInput(
            "no-picture", "The picture's beginning does not say how large it is; fetch the file instead."
        )
    width, height = max(extents, key=lambda each: each[0] * each[1])
    if width * height > MOST_PIXELS:
        message = (
            f"Pictures of at most {MOST_PIXELS // 10**6} million pixels are shown, and this one has {width:,} x "
            f"{height:,}; fetch it instead."
        )
        raise InvalidInput("picture-too-large", message)
    return found


def _of_png(data: bytes) -> Iterator[tuple[int, int]]:
    if data[12:16] == b"IHDR":
        yield struct.unpack_from(">II", data, 16)


def _of_gif(data: bytes) -> Iterator[tuple[int, int]]:
    """The screen, and the first frame, which may be larger than the screen."""
    yield struct.unpack_from("<HH", data, 6)
    at = 13 + _colours(data[10])
    while data[at] == 0x21:  # an extension: its blocks, up to an empty one
        at += 2
        while data[at]:
            at += data[at] + 1
        at += 1
    if data[at] == 0x2C:
        left, top, width, height = struct.unpack_from("<HHHH", data, at + 1)
        yield left + width, top + height


def _colours(packed: int) -> int:
    """The bytes of a colour table that a packed field announces."""
    return 3 << ((packed & 7) + 1) if packed & 0x80 else 0


def _of_webp(data: bytes) -> Iterator[tuple[int, int]]:
    kind = data[12:16]
    if kind == b"VP8X" and len(data) >= 30:
        yield int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    elif kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        yield (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        yield width & 0x3FFF, height & 0x3FFF


def _of_jpeg(data: bytes) -> Iterator[tuple[int, int]]:
    at = 2
    while data[at] == 0xFF:
        kind = data[at + 1]
        if kind == 0xFF:  # padding
            at += 1
            continue
        (length,) = struct.unpack_from(">H", data, at + 2)
        if kind in _START_OF_FRAME:
            height, width = struct.unpack_from(">HH", data, at + 5)
            yield width, height
            return
        if kind == _START_OF_SCAN:
            return
        at += 2 + length


_EXTENTS: Final = {"image/png": _of_png, "image/jpeg": _of_jpeg, "image/gif": _of_gif, "image/webp": _of_webp}
