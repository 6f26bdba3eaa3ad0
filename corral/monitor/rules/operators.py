"""Operators between values and vectors, with Prometheus' rules of matching (promql/engine.go, VectorBinop)."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import fmod, inf, isinf, isnan, nan
from typing import Final

from corral.kernel.errors import InvalidInput
from corral.monitor.rules.series import NAME, Labels, only, without
from corral.monitor.rules.syntax import Binary, Matching

Vector = dict[Labels, float]
"""One value a series."""

_COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def compare(sign: str, left: float, right: float) -> bool:
    """Whether a comparison holds."""
    return _COMPARISONS[sign](left, right)


def arithmetic(sign: str, left: float, right: float) -> float:
    """The result of an arithmetic operator, by IEEE 754: division by zero is infinite or undefined."""
    if sign == "+":
        return left + right
    if sign == "-":
        return left - right
    if sign == "*":
        return left * right
    if sign == "/":
        return _quotient(left, right)
    if sign == "%":
        return nan if right == 0 or isinf(left) or isnan(left) or isnan(right) else fmod(left, right)
    return _power(left, right)


def with_scalar(binary: Binary, vector: Vector, scalar: float, *, scalar_is_left: bool) -> list[tuple[Labels, float]]:
    """Each series with a number; a comparison without bool keeps the series' own values."""
    found = []
    for labels, value in vector.items():
        left, right = (scalar, value) if scalar_is_left else (value, scalar)
        if binary.operator not in _COMPARISONS:
            found.append((without(labels, NAME), arithmetic(binary.operator, left, right)))
        elif binary.to_bool:
            found.append((without(labels, NAME), float(compare(binary.operator, left, right))))
        elif compare(binary.operator, left, right):
            found.append((labels, value))
    return found


def combine(binary: Binary, left: Vector, right: Vector) -> Vector:
    """Two vectors joined by the labels that match. Raises InvalidInput where one series matches several."""
    if binary.operator in ("and", "or", "unless"):
        return _set(binary, left, right)
    if not left or not right:
        return {}
    by_key: dict[Labels, float] = {}
    for labels, value in right.items():
        if (key := _key(labels, binary.matching)) in by_key:
            raise _ambiguous(binary.operator, "right", key)
        by_key[key] = value
    found: Vector = {}
    seen = set()
    for labels, value in left.items():
        key = _key(labels, binary.matching)
        if key not in by_key or (kept := _joined(binary, value, by_key[key])) is None:
            continue
        if key in seen:
            raise _ambiguous(binary.operator, "left", key)
        seen.add(key)
        found[_result_labels(labels, binary)] = kept
    return found


def _joined(binary: Binary, left: float, right: float) -> float | None:
    if binary.operator not in _COMPARISONS:
        return arithmetic(binary.operator, left, right)
    holds = compare(binary.operator, left, right)
    if binary.to_bool:
        return float(holds)
    return left if holds else None


def _result_labels(labels: Labels, binary: Binary) -> Labels:
    matching = binary.matching
    if binary.to_bool or binary.operator not in _COMPARISONS:
        labels = without(labels, NAME)
    return only(labels, matching.labels) if matching.on else without(labels, *matching.labels)


def _set(binary: Binary, left: Vector, right: Vector) -> Vector:
    matching = binary.matching
    if binary.operator == "or":
        known = {_key(labels, matching) for labels in left}
        return left | {labels: value for labels, value in right.items() if _key(labels, matching) not in known}
    known, wanted = {_key(labels, matching) for labels in right}, binary.operator == "and"
    return {labels: value for labels, value in left.items() if (_key(labels, matching) in known) is wanted}


def _key(labels: Labels, matching: Matching) -> Labels:
    return only(labels, matching.labels) if matching.on else without(labels, NAME, *matching.labels)


def _ambiguous(sign: str, side: str, key: Labels) -> InvalidInput:
    shown = ", ".join(f'{name}="{value}"' for name, value in key)
    return InvalidInput("many-matches", f"Several series on the {side} of {sign} have the same labels {{{shown}}}.")


def _quotient(left: float, right: float) -> float:
    if right:
        return left / right
    if left == 0 or isnan(left) or isnan(right):
        return nan
    # The sign of a zero counts.
    negative = (left < 0) != (str(right)[0] == "-")
    return -inf if negative else inf


def _power(left: float, right: float) -> float:
    try:
        found = left**right
    except OverflowError:
        return inf if left > 0 or right % 2 == 0 else -inf
    except ZeroDivisionError:
        return inf
    return nan if isinstance(found, complex) else found
