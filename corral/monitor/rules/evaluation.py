"""Evaluate an expression at one time over a source of series, with the semantics of Prometheus 2.42.

A metric that does not exist gives nothing. An instant selector reads the newest point of the last five minutes.
A range includes both its ends.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, isnan, nan
from typing import Final

from corral.kernel.errors import InvalidInput
from corral.model.alerts.matchers import Matcher
from corral.monitor.rules.operators import Vector, arithmetic, combine, compare, with_scalar
from corral.monitor.rules.range_functions import (
    Window,
    bucket_quantile,
    largest,
    mean,
    over_range,
    smallest,
    total,
)
from corral.monitor.rules.series import NAME, Labels, Series, SeriesSource, labels_of, only, without
from corral.monitor.rules.syntax import (
    Aggregation,
    Binary,
    Call,
    Expression,
    Negation,
    Number,
    Selector,
    Subquery,
)

LOOKBACK: Final = 300.0
"""Seconds for which the newest point of a series stands for its present value."""
MOST_SERIES: Final = 20_000
"""The most series of one selector or result."""
_KEEPS_NAME: Final = ("last_over_time",)
_JOINED: Final[dict[str, Callable[[list[float]], float]]] = {
    "sum": total, "avg": mean, "min": smallest, "max": largest, "count": lambda values: float(len(values)),
}  # fmt: skip


def evaluate(expression: Expression, source: SeriesSource, at: float) -> Vector:
    """The series and values of an expression at `at` (seconds since 1970); a number has no labels.

    Raises InvalidInput if the expression has no meaning for these series, such as two that match one.
    """
    found = _Evaluation(source, at).value(expression)
    return {(): found} if isinstance(found, float) else found


class _Evaluation:
    def __init__(self, source: SeriesSource, at: float) -> None:
        self._source = source
        self._at = at

    def value(self, expression: Expression) -> Vector | float:
        if isinstance(expression, Number):
            return expression.value
        if isinstance(expression, Selector):
            return self._newest(expression)
        if isinstance(expression, Call):
            return self._call(expression)
        if isinstance(expression, Aggregation):
            return self._aggregation(expression)
        if isinstance(expression, Binary):
            return self._binary(expression)
        if isinstance(expression, Negation):
            inner = self.value(expression.inner)
            return -inner if isinstance(inner, float) else _unnamed({key: -each for key, each in inner.items()})
        raise TypeError("a range has no value of its own")

    def _vector(self, expression: Expression) -> Vector:
        found = self.value(expression)
        return {(): found} if isinstance(found, float) else found

    def _scalar(self, expression: Expression) -> float:
        found = self.value(expression)
        assert isinstance(found, float)
        return found

    # ---- series

    def _newest(self, selector: Selector) -> Vector:
        end = self._at - selector.offset
        found: Vector = {}
        for labels, points in self._select(selector.matchers, end - LOOKBACK, end):
            if points and points[-1][0] >= end - LOOKBACK and (value := points[-1][1]) is not None:
                found[labels] = value
        return found

    def _select(self, matchers: tuple[Matcher, ...], begin: float, end: float) -> list[Series]:
        found: list[Series] = []
        for each in self._source.select(matchers, begin, end):
            found.append(each)
            if len(found) > MOST_SERIES:
                raise InvalidInput("too-many-series", f"A selector finds more than {MOST_SERIES} series.")
        return found

    def _windows(self, expression: Expression) -> list[tuple[Labels, Window]]:
        if isinstance(expression, Subquery):
            return self._subquery(expression)
        assert isinstance(expression, Selector)
        end = self._at - expression.offset
        begin = end - expression.range
        windows = []
        for labels, points in self._select(expression.matchers, begin, end):
            known = [(time, value) for time, value in points if value is not None]
            if known:
                times, values = zip(*known, strict=True)
                windows.append((labels, Window(times, values, begin, end)))
        return windows

    def _subquery(self, expression: Subquery) -> list[tuple[Labels, Window]]:
        """Evaluations at multiples of the step, as Prometheus aligns them, so that two evaluations share points."""
        end = self._at - expression.offset
        begin = end - expression.range
        points: dict[Labels, tuple[list[float], list[float]]] = {}
        for step in range(ceil(begin / expression.step), floor(end / expression.step) + 1):
            at = step * expression.step
            for labels, value in _Evaluation(self._source, at)._vector(expression.inner).items():
                times, values = points.setdefault(labels, ([], []))
                times.append(at)
                values.append(value)
        return [(labels, Window(*each, begin, end)) for labels, each in points.items()]

    # ---- functions

    def _call(self, call: Call) -> Vector | float:
        function, arguments = call.function, call.arguments
        if function == "time":
            return self._at
        if function == "vector":
            return {(): self._scalar(arguments[0])}
        if function == "scalar":
            found = self._vector(arguments[0])
            return next(iter(found.values())) if len(found) == 1 else nan
        if function == "absent":
            return {} if self._vector(arguments[0]) else {_labels_of_absent(arguments[0]): 1.0}
        if function == "histogram_quantile":
            return _quantiles(self._scalar(arguments[0]), self._vector(arguments[1]))
        if function in ("abs", "ceil", "floor"):
            change = _ROUNDED[function]
            return _unnamed({labels: change(value) for labels, value in self._vector(arguments[0]).items()})
        found = {}
        for labels, window in self._windows(arguments[0]):
            if (value := over_range(function, window)) is not None:
                found[labels] = value
        return found if function in _KEEPS_NAME else _unnamed(found)

    def _aggregation(self, aggregation: Aggregation) -> Vector:
        groups: dict[Labels, list[float]] = {}
        for labels, value in self._vector(aggregation.inner).items():
            if aggregation.without:
                group = without(labels, NAME, *aggregation.labels)
            else:
                group = only(labels, aggregation.labels)
            groups.setdefault(group, []).append(value)
        return {group: _JOINED[aggregation.operator](values) for group, values in groups.items()}

    def _binary(self, binary: Binary) -> Vector | float:
        left, right = self.value(binary.left), self.value(binary.right)
        if isinstance(left, float) and isinstance(right, float):
            if binary.to_bool:
                return float(compare(binary.operator, left, right))
            return arithmetic(binary.operator, left, right)
        if isinstance(left, float):
            assert not isinstance(right, float)
            return _checked(with_scalar(binary, right, left, scalar_is_left=True))
        if isinstance(right, float):
            return _checked(with_scalar(binary, left, right, scalar_is_left=False))
        return combine(binary, left, right)


def _unnamed(vector: Vector) -> Vector:
    return _checked([(without(labels, NAME), value) for labels, value in vector.items()])


def _checked(pairs: list[tuple[Labels, float]]) -> Vector:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidInput(
            "same-labels", "Two series have the same labels once the names of their metrics are dropped."
        )
    return found


def _labels_of_absent(expression: Expression) -> Labels:
    """The labels that a missing series would have, as far as its selector says them by `=` alone."""
    if not isinstance(expression, Selector):
        return ()
    equal = [each for each in expression.matchers if each.label != NAME]
    named = [each.label for each in equal]
    return labels_of({e.label: e.value for e in equal if e.operator == "=" and named.count(e.label) == 1})


def _quantiles(quantile: float, vector: Vector) -> Vector:
    buckets: dict[Labels, list[tuple[float, float]]] = {}
    for labels, value in vector.items():
        try:
            bound = float(dict(labels).get("le", "").replace("_", "x"))
        except ValueError:
            continue
        if not isnan(bound):
            buckets.setdefault(without(labels, NAME, "le"), []).append((bound, value))
    return {labels: bucket_quantile(quantile, each) for labels, each in buckets.items()}


def _ceil(value: float) -> float:
    return float(ceil(value)) if abs(value) < 2**53 else value


def _floor(value: float) -> float:
    return float(floor(value)) if abs(value) < 2**53 else value


_ROUNDED: Final[dict[str, Callable[[float], float]]] = {"abs": abs, "ceil": _ceil, "floor": _floor}
