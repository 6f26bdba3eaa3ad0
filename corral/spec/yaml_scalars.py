"""Resolve unquoted YAML scalars by YAML 1.2's core schema.

YAML 1.1 reads `on`, `1_000` and `12:30:00` as a boolean, an integer and a base-60 number.
"""

from __future__ import annotations

import math
import re
from typing import Final

_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset({"true", "True", "TRUE"})
_FALSE: Final = frozenset({"false", "False", "FALSE"})
_DECIMAL: Final = re.compile(r"[-+]?[0-9]{1,18}", re.ASCII)
_HEXADECIMAL: Final = re.compile(r"0x[0-9a-fA-F]{1,15}", re.ASCII)
_OCTAL: Final = re.compile(r"0o[0-7]{1,20}", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]{1,30}|[0-9]{1,30}(?:\.[0-9]{0,30})?)(?:[eE][-+]?[0-9]{1,3})?", re.ASCII)


class WrittenInt(int):
    """An integer that keeps its source text, for fields that are text (`name: 007`)."""

    source: str


class WrittenFloat(float):
    """A float that keeps its source text, for fields that are text (`image: 3.10`)."""

    source: str


Scalar = str | int | float | bool | None


def resolve(text: str) -> Scalar:
    """Resolve an unquoted scalar by YAML 1.2's core schema.

    Numbers outside the lengths of the patterns above, and floats that are not finite, stay text.
    """
    if text in _NULLS:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if _DECIMAL.fullmatch(text):
        return _written_int(int(text), text)
    if _HEXADECIMAL.fullmatch(text):
        return _written_int(int(text, 16), text)
    if _OCTAL.fullmatch(text):
        return _written_int(int(text[2:], 8), text)
    if _FLOAT.fullmatch(text) and math.isfinite(value := float(text)):
        number = WrittenFloat(value)
        number.source = text
        return number
    return text


def written(value: object) -> object:
    """The source text of a number; every other value unchanged."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(getattr(value, "source", value))
    return value


def _written_int(value: int, text: str) -> int:
    if str(value) == text:
        return value
    number = WrittenInt(value)
    number.source = text
    return number
