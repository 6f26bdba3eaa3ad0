"""Parse Kubernetes quantities (`1e3`, `500m`, `1Gi`) and format them as amounts of a job file."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from typing import Final

from corral.kernel.amounts import BYTES, Unit

_QUANTITY: Final = re.compile(
    r"\+?(\d{1,24}(?:\.\d{0,12})?|\.\d{1,12})(?:([numkMGTPE]|[KMGTPE]i)|[eE]([-+]?\d{1,2}))?", re.ASCII
)
_UNITS: Final = {"": 0, "n": -3, "u": -2, "m": -1, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_MOST: Final = 2**62


def quantity(text: str) -> Decimal:
    """Parse a Kubernetes quantity.

    Raises ValueError for other text and for amounts above 2^62.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError("expected an amount as Kubernetes writes it, such as 500m, 2 or 1Gi")
    unit = match[2] or ""
    base = Decimal(1024 if unit.endswith("i") else 1000)
    value: Decimal = Decimal(match[1]) * base ** _UNITS[unit[:1].replace("K", "k")] * Decimal(10) ** int(match[3] or 0)
    if value > _MOST:
        raise ValueError("more than can be counted")
    return value


def whole(value: Decimal) -> int:
    """Round up to a whole number."""
    return int(value.to_integral_value(ROUND_CEILING))


def document_amount(unit: Unit, value: Decimal) -> str | int:
    """Format a quantity for a job file, rounded up to whole pieces of the unit."""
    pieces = whole(value * unit.per_quantity)
    return _memory_text(pieces) if unit is BYTES else unit.written(pieces)


def _memory_text(size: int) -> str:
    """Format bytes with the largest unit that is exact, at most Ti."""
    for power, unit in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
        if size and size % 1024**power == 0:
            return f"{size // 1024**power}{unit}"
    return str(size)
