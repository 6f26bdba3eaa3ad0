"""Evaluate assertions from measured metrics, and take statistics of measured values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Sequence
from math import ceil, inf, isnan, nan
from typing import Final, NamedTuple

from corral.kernel.units import format_duration
from corral.spec.assertions.parser import AssertionProblem
from corral.spec.assertions.syntax import METRICS, Assertion, Base, Metric, Number, Operation, Term, Unit
from corral.spec.errors import did_you_mean, shorten

Measure = Callable[[Metric], float]
"""Returns a metric; infinite: it would take for ever; not a number: it is undefined."""
_COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {
    "<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt, "==": operator.eq,
}  # fmt: skip


class Outcome(NamedTuple):
    """What became of an assertion."""

    assertion: Assertion
    left: float
    right: float
    base: float | None
    """The left side under the base, where it is known."""
    held: bool

    def shown(self, value: float | None) -> str:
        """A value in the unit of the assertion."""
        return "" if value is None else shown(value, self.assertion.unit)


def evaluate(assertion: Assertion, measure: Measure, base: Measure | None = None) -> Outcome:
    """Evaluate both sides and compare them; an undefined side (0 / 0) does not hold.

    Raises InvalidInput if the assertion compares with the base and there is none, and what `measure` raises.
    """
    if base is None and assertion.needs_base:
        raise AssertionProblem(assertion.text, assertion.text.find("base") + 1, "there is no base to compare with")
    before = None if base is None else _value(assertion.left, base, nan)
    left = _value(assertion.left, measure, nan)
    right = _value(assertion.right, measure, nan if before is None else before)
    return Outcome(assertion, left, right, before, _COMPARISONS[assertion.comparison](left, right))


def check_known(
    assertion: Assertion,
    *,
    queues: Collection[str],
    users: Collection[str] = (),
    metrics: Collection[str] = tuple(METRICS),
    filters: Collection[str] = ("queue", "user", "size"),
    where: str,
) -> None:
    """Check that metrics, filters, queues and users are among the known ones of `where` ("the trace").

    Raises AssertionProblem.
    """
    for metric in assertion.metrics:
        if metric.name not in metrics:
            reason = f"{where} cannot tell {metric.name}, only {', '.join(metrics)}"
            raise AssertionProblem(assertion.text, metric.column_of("metric"), reason)
        for name, known in (("queue", queues), ("user", users), ("size", ())):
            value = getattr(metric, name)
            if value and name not in filters:
                reason = f"{where} cannot tell {metric.name} by {name}, only by {', '.join(filters)}"
            elif value and name != "size" and value not in known:
                reason = f"{where} has no {name} {shorten(value)}{did_you_mean(value, known)}"
            else:
                continue
            raise AssertionProblem(assertion.text, metric.column_of(name), reason)


def statistic_of(name: str, values: Sequence[float]) -> float:
    """A statistic of sorted values; percentiles by the nearest rank. Undefined (nan) of none, but their sum is 0."""
    if name == "sum":
        return sum(values)
    if not values:
        return nan
    if name == "mean":
        return sum(values) / len(values)
    if name in ("min", "max"):
        return values[0] if name == "min" else values[-1]
    part = 50.0 if name == "median" else float(name[1:])
    # Rounded, because 0.07 * 100 is a little more than 7.
    return values[min(len(values), max(1, ceil(round(part * len(values) / 100, 9)))) - 1]


def shown(value: float, unit: Unit) -> str:
    """A value for people."""
    if isnan(value):
        return "undefined"
    if value in (inf, -inf):
        return "never" if unit is Unit.DURATION else "infinite"
    if unit is Unit.DURATION:
        return ("-" if round(value) < 0 else "") + format_duration(abs(round(value)))
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"


def _value(term: Term, measure: Measure, base: float) -> float:
    if isinstance(term, Number):
        return term.value
    if isinstance(term, Base):
        return base
    if isinstance(term, Metric):
        return measure(term)
    return _computed(term, _value(term.left, measure, base), _value(term.right, measure, base))


def _computed(term: Operation, left: float, right: float) -> float:
    if term.operator == "+":
        return left + right
    if term.operator == "-":
        return left - right
    if term.operator == "*":
        return left * right
    if right == 0:
        return nan if left == 0 or isnan(left) else inf if left > 0 else -inf
    return left / right
