"""Parse Kubernetes quantities (`500m`, `2Gi`, `1e3`) to whole numbers, with a cache.

Source: apimachinery's `resource.Quantity`: a decimal number, then a binary or decimal suffix or an exponent.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Final

from corral.kernel.amounts import names_for

_QUANTITY: Final = re.compile(
    r"([+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30}))(?:([eE][+-]?\d{1,2})|([numkMGTPE]|[KMGTPE]i)?)"
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
CPU: Final = "cpu"
_PER_UNIT: Final = {name: each.unit.per_quantity for name, each in names_for("kubernetes").items()}


@lru_cache(maxsize=10_000)
def amount(text: str, per_unit: int = 1) -> int:
    """Return the quantity in units of 1/`per_unit`, rounded up as Kubernetes does; 0 for invalid text."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return 0
    value = Decimal(found[1] + (found[2] or ""))
    suffix = found[3] or ""
    factor = Decimal(1024) ** _BINARY[suffix] if suffix in _BINARY else Decimal(10) ** _DECIMAL.get(suffix, 0)
    return int((value * factor * per_unit).to_integral_value(ROUND_CEILING))


def count(resource: str, text: str) -> int:
    """Return an amount of a resource in Corral's units: thousandths of a processor, bytes or pieces."""
    return amount(text, _PER_UNIT.get(resource, 1))
