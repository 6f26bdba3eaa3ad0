"""The syntax tree of expressions in the supported subset of PromQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from corral.model.alerts.matchers import Matcher


class Type(StrEnum):
    """What an expression gives."""

    SCALAR = "a number"
    VECTOR = "an instant vector"
    RANGE = "a range vector"


@dataclass(frozen=True, slots=True)
class Number:
    """A constant."""

    value: float


@dataclass(frozen=True, slots=True)
class Selector:
    """Series by their labels; a range vector if `range` is set. Times in seconds."""

    matchers: tuple[Matcher, ...]
    range: float = 0.0
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Subquery:
    """An expression evaluated every `step` within a range, which gives a range vector. Times in seconds."""

    inner: Expression
    range: float
    step: float
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Call:
    """A function and its arguments."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """Series joined in groups: by some labels, or by all but some."""

    operator: str
    inner: Expression
    labels: tuple[str, ...] = ()
    without: bool = False


@dataclass(frozen=True, slots=True)
class Matching:
    """Which labels must be equal for two series to meet: these (`on`), or all but these."""

    labels: tuple[str, ...] = ()
    on: bool = False


@dataclass(frozen=True, slots=True)
class Binary:
    """Two expressions joined by an operator."""

    operator: str
    left: Expression
    right: Expression
    matching: Matching = Matching()
    to_bool: bool = False
    """Whether a comparison gives 0 or 1, where it otherwise leaves out what does not meet it."""


@dataclass(frozen=True, slots=True)
class Negation:
    """The negative of an expression."""

    inner: Expression


Expression = Number | Selector | Subquery | Call | Aggregation | Binary | Negation


def selectors(expression: Expression) -> Iterator[Selector]:
    """All selectors of an expression."""
    if isinstance(expression, Selector):
        yield expression
    elif isinstance(expression, Call):
        for each in expression.arguments:
            yield from selectors(each)
    elif isinstance(expression, Binary):
        yield from selectors(expression.left)
        yield from selectors(expression.right)
    elif isinstance(expression, Subquery | Aggregation | Negation):
        yield from selectors(expression.inner)


def longest_past(expression: Expression, lookback: float) -> float:
    """Seconds of the past that an expression reads, with the lookback of its instant selectors."""
    if isinstance(expression, Selector):
        return (expression.range or lookback) + max(0.0, expression.offset)
    if isinstance(expression, Subquery):
        return expression.range + max(0.0, expression.offset) + longest_past(expression.inner, lookback)
    if isinstance(expression, Call):
        return max((longest_past(each, lookback) for each in expression.arguments), default=0.0)
    if isinstance(expression, Binary):
        return max(longest_past(expression.left, lookback), longest_past(expression.right, lookback))
    if isinstance(expression, Aggregation | Negation):
        return longest_past(expression.inner, lookback)
    return 0.0
