"""Parse and format units: `500m`, `2Gi` and `1h30m` to whole thousandths, bytes and seconds, and back."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

_CPU: Final = re.compile(r"(?:(\d{1,7})m|(\d{1,6}(?:\.\d{1,9})?|\.\d{1,9}))", re.ASCII)
_MEMORY: Final = re.compile(r"(\d{1,19}(?:\.\d{1,9})?)([kKMGTPE]i?)?[bB]?", re.ASCII)
_DURATION: Final = re.compile(r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,9})s)?", re.ASCII)
_SECONDS: Final = re.compile(r"\d{1,10}", re.ASCII)
_POWERS: Final = {"k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_DEVICES: Final = re.compile(r"\d{1,12}(?:\.\d{1,9})?|\.\d{1,9}", re.ASCII)
_MAX_BYTES: Final = 2**63 - 1

DEVICE: Final = 1000
"""One whole device, in the thousandths that queues count."""


def parse_cpu(text: str) -> int:
    """Parse CPUs, written as `2`, `0.5` or `500m`, to thousandths of a CPU.

    Raises ValueError if `text` is none of these, or finer than a thousandth.
    """
    match = _CPU.fullmatch(text)
    if match is None:
        raise ValueError("processors are written as 2, 0.5 or 500m")
    if match[1] is not None:
        return int(match[1])
    millis = Decimal(match[2]) * 1000
    if millis != int(millis):
        raise ValueError("a processor is divided into thousandths at most, such as 0.125 or 125m")
    return int(millis)


def parse_devices(text: str) -> int:
    """Parse devices, written as `2` or `0.5`, to thousandths of a device.

    Raises ValueError if `text` is no such number, or finer than a thousandth.
    """
    if not _DEVICES.fullmatch(text):
        raise ValueError("devices are written as 2 or 0.5")
    millis = Decimal(text) * DEVICE
    if millis != int(millis):
        raise ValueError("a device is divided into thousandths at most, such as 0.125")
    return int(millis)


def devices(millis: float) -> int | float:
    """Convert thousandths to devices: 4, or 2.5."""
    exact = round(millis)
    return exact / DEVICE if exact % DEVICE else exact // DEVICE


def parse_memory(text: str) -> int:
    """Parse memory, written as `2Gi`, `512Mi`, `2GB` (powers of 1000 without the i) or plain bytes, to bytes.

    Raises ValueError if `text` is none of these, or above 8Ei.
    """
    match = _MEMORY.fullmatch(text)
    if match is None or (text[-1] in "bB" and match[2] is None):
        raise ValueError("memory is written as 512Mi, 2Gi or a number of bytes")
    unit = match[2] or ""
    factor = (1024 if unit.endswith("i") else 1000) ** _POWERS[unit[0].replace("K", "k")] if unit else 1
    size = int(Decimal(match[1]) * factor)
    if size > _MAX_BYTES:
        raise ValueError("memory above 8Ei cannot be counted")
    return size


def parse_duration(text: str) -> int:
    """Parse a duration, written as `90`, `90s`, `30m`, `2h`, `1h30m` or `2d`, to seconds.

    Raises ValueError if `text` is none of these.
    """
    if _SECONDS.fullmatch(text):
        return int(text)
    match = _DURATION.fullmatch(text)
    if match is None or not text:
        raise ValueError("a duration is written as 90s, 30m, 2h, 1h30m or 2d")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def format_memory(size: int) -> str:
    """Format `size` bytes in the shortest exact form: `2Gi`, `1536Mi`, or plain bytes."""
    for unit in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"):
        factor = 1024 ** _POWERS[unit[0].replace("K", "k")]
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def format_cpu(millis: int) -> str:
    """Format thousandths of a CPU: `2` or `500m`."""
    return str(millis // 1000) if millis % 1000 == 0 else f"{millis}m"


def format_devices(millis: int) -> str:
    """Format thousandths of a device exactly: `4` or `2.5`."""
    whole, rest = divmod(millis, DEVICE)
    return f"{whole}.{rest:03}".rstrip("0") if rest else str(whole)


def format_duration(seconds: int) -> str:
    """Format `seconds` in the shortest exact form: `2h`, `1h30m`, `45s`, `0s`."""
    days, rest = divmod(seconds, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    parts = ((days, "d"), (hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"


def counted(number: int, noun: str) -> str:
    """Format a number with its noun: `1 device`, `3 devices`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
