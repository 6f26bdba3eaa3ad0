"""Parse an assertion by recursive descent; a refusal names the column and what was probably meant.

assertion := sum ("<=" | "<" | ">=" | ">" | "==") sum
sum       := product (("+" | "-") product)*
product   := factor (("*" | "/") factor)*
factor    := number | duration | "base" | metric | "(" sum ")"
metric    := name ["." statistic] ["(" filter ("," filter)* ")"]
filter    := ("queue" | "user") "=" name | "size" "=" (number | [number] ".." [number])
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from corral.kernel.errors import InvalidInput
from corral.kernel.units import parse_duration
from corral.spec.assertions.syntax import (
    FILTERS,
    METRICS,
    STATISTICS,
    Assertion,
    Base,
    Metric,
    Number,
    Operation,
    Size,
    Term,
    Unit,
    leaves,
)
from corral.spec.errors import did_you_mean, shorten

LONGEST: Final = 500
"""The most characters of an assertion."""
DEEPEST: Final = 20
"""The most parentheses that may stand in each other."""
MOST_OPERATIONS: Final = 50
MOST_SECONDS: Final = 100 * 366 * 86_400
"""The longest duration: a century of device time."""
_SPACE: Final = re.compile(r"[ \t]*")
_COMPARISON: Final = re.compile(r"<=|>=|==|<|>")
_WRONG_COMPARISON: Final = re.compile(r"=<|=>|!=|=|≤|≥")
_NUMBER: Final = re.compile(r"[0-9][0-9A-Za-z.%]*")
_PLAIN_NUMBER: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)(%?)", re.ASCII)
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_STATISTIC: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[0-9]+)?", re.ASCII)
_PERCENTILE: Final = re.compile(r"p([0-9]{1,2}(?:\.[0-9]{1,3})?|100)", re.ASCII)
_VALUE: Final = re.compile(r'"([^"]{1,100})"|([^\s(),="<>]{1,100})')
_SIZE: Final = re.compile(r"([0-9]{0,6})(\.\.)?([0-9]{0,6})", re.ASCII)
_MEANT: Final = {"=": "==", "=<": "<=", "≤": "<=", "=>": ">=", "≥": ">="}


class AssertionProblem(InvalidInput):
    """An assertion that cannot be read; the message names the column, counted from 1."""

    def __init__(self, text: str, column: int, reason: str) -> None:
        end = "" if reason.endswith("?") else "."
        super().__init__(
            "bad-assertion", f"Column {column} of the assertion {shorten(text)}: {reason}{end}", column=column
        )
        self.column = column


def parse_assertion(text: str) -> Assertion:
    """Parse one assertion; raises AssertionProblem."""
    if len(text) > LONGEST:
        raise AssertionProblem(text[:60], LONGEST + 1, f"an assertion has at most {LONGEST} characters")
    return _Parser(text).assertion()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.operations = 0

    def assertion(self) -> Assertion:
        begin = self._skip()
        left = self._sum()
        if any(isinstance(each, Base) for each in leaves(left)):
            self._fail(begin, "base stands for the left side, so it may stand on the right side only")
        at = self._skip()
        comparison = self._comparison(at)
        begin = self._skip()
        right = self._sum()
        if self._skip() < len(self.text):
            self._fail(self.at, f"{self._rest()} is too much; an assertion has one comparison")
        unit = self._unit(left, Unit.NUMBER)
        if (other := self._unit(right, unit)) is not unit:
            self._fail(begin, _mixed(unit, other))
        return Assertion(self.text, left, comparison, right, unit)

    def _comparison(self, at: int) -> str:
        if found := self._take(_COMPARISON):
            return found
        wrong = self._take(_WRONG_COMPARISON)
        if wrong in _MEANT:
            self._fail(at, f'there is no comparison {wrong}; did you mean "{_MEANT[wrong]}"?')
        self._fail(at, "a comparison is missing; expected one of <=, <, >=, >, ==")

    def _sum(self) -> Term:
        term = self._product()
        while operator := self._operator("+-"):
            term = self._operation(operator, self.at, term, self._product())
        return term

    def _product(self) -> Term:
        term = self._factor()
        while operator := self._operator("*/"):
            term = self._operation(operator, self.at, term, self._factor())
        return term

    def _operation(self, operator: str, column: int, left: Term, right: Term) -> Term:
        self.operations += 1
        if self.operations > MOST_OPERATIONS:
            self._fail(column - 1, f"an assertion has at most {MOST_OPERATIONS} operations")
        return Operation(operator, left, right, column)

    def _factor(self) -> Term:
        begin = self._skip()
        if self._take_char("("):
            self.depth += 1
            if self.depth > DEEPEST:
                self._fail(begin, f"at most {DEEPEST} parentheses may stand in each other")
            term = self._sum()
            self._expect(")")
            self.depth -= 1
            return term
        if number := self._take(_NUMBER):
            return self._number(begin, number)
        if word := self._take(_WORD):
            return Base() if word == "base" else self._metric(begin, word)
        self._fail(begin, f"{self._rest()} is no metric, number, duration or base")

    def _number(self, begin: int, text: str) -> Number:
        if plain := _PLAIN_NUMBER.fullmatch(text):
            return Number(float(plain[1]) / (100 if plain[2] else 1))
        try:
            seconds = parse_duration(text)
        except ValueError:
            self._fail(begin, f"{shorten(text)} is no number or duration; write 1.5, 80%, 90s, 30m, 1h30m or 2d")
        if seconds > MOST_SECONDS:
            self._fail(begin, "the duration is longer than a century")
        return Number(float(seconds), Unit.DURATION)

    # ---- metrics

    def _metric(self, begin: int, name: str) -> Metric:
        if name not in METRICS:
            self._fail(begin, f"there is no metric {shorten(name)}{did_you_mean(name, METRICS)}")
        statistic = self._statistic(begin, name)
        found: dict[str, str | Size] = {}
        columns = [("metric", begin + 1)]
        if self._take_char("("):
            while True:
                at = self._skip()
                key, value, column = self._filter()
                if key in found:
                    self._fail(at, f"{key} is named twice")
                found[key] = value
                columns.append((key, column))
                if not self._take_char(","):
                    break
            self._expect(")")
        return Metric(name, statistic, columns=tuple(columns), **found)  # type: ignore[arg-type]

    def _statistic(self, begin: int, name: str) -> str:
        kind = METRICS[name]
        if not self._take_char("."):
            if kind.by_job and not kind.statistic:
                self._fail(begin, f"{name} has a value for each job; write {name}.p95, {name}.mean or {name}.max")
            return kind.statistic
        at = self._skip()
        word = self._take(_STATISTIC)
        if not kind.by_job:
            self._fail(at, f"{name} has one value for all jobs and takes no statistic")
        if word in STATISTICS or _PERCENTILE.fullmatch(word):
            return word
        known = did_you_mean(word, ("p50", "p90", "p95", "p99", *STATISTICS))
        self._fail(at, f"there is no statistic {shorten(word) or self._rest()}{known}")

    def _filter(self) -> tuple[str, str | Size, int]:
        at = self._skip()
        key = self._take(_WORD)
        if key not in FILTERS:
            self._fail(at, f"there is no filter {shorten(key) or self._rest()}{did_you_mean(key, FILTERS)}")
        self._expect("=")
        at = self._skip()
        match = _VALUE.match(self.text, at)
        if match is None:
            self._fail(at, f"{key} needs a value, such as {key}={'8' if key == 'size' else 'research'}")
        self.at = match.end()
        value = match[1] or match[2]
        return key, self._size(at, value) if key == "size" else value, at + 1

    def _size(self, at: int, text: str) -> Size:
        match = _SIZE.fullmatch(text)
        if match is None or not (match[1] or match[3]):
            self._fail(at, "a size is a number of devices, such as 8, 2..8, 8.. or ..8")
        least, most = (int(each) if each else None for each in (match[1], match[3]))
        if not match[2]:
            least = most = int(match[1] + match[3])
        if least is not None and most is not None and least > most:
            self._fail(at, f"no job has from {least} to {most} devices")
        return Size(least, most)

    # ---- units

    def _unit(self, term: Term, base: Unit) -> Unit:
        """The unit of a term; `base` is that of the left side."""
        if isinstance(term, Base):
            return base
        if not isinstance(term, Operation):
            return term.unit
        left, right = self._unit(term.left, base), self._unit(term.right, base)
        if term.operator in "+-":
            if left is not right:
                self._fail(term.column - 1, f"in {term}, {_mixed(left, right)}")
            return left
        durations = (left, right).count(Unit.DURATION)
        if term.operator == "*":
            if durations == 2:
                self._fail(term.column - 1, f"in {term}, two durations cannot be multiplied")
            return Unit.DURATION if durations else Unit.NUMBER
        if right is Unit.DURATION and left is Unit.NUMBER:
            self._fail(term.column - 1, f"in {term}, a number cannot be divided by a duration")
        return Unit.NUMBER if durations != 1 else Unit.DURATION

    # ---- text

    def _skip(self) -> int:
        """Go past blanks; returns the position."""
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.at

    def _take(self, pattern: re.Pattern[str]) -> str:
        """Go past a token; "" if there is none here."""
        match = pattern.match(self.text, self._skip())
        if match is None:
            return ""
        self.at = match.end()
        return match[0]

    def _take_char(self, char: str) -> bool:
        found = self.text.startswith(char, self._skip())
        self.at += found
        return found

    def _operator(self, among: str) -> str:
        at = self._skip()
        if at < len(self.text) and self.text[at] in among:
            self.at += 1
            return self.text[at]
        return ""

    def _expect(self, char: str) -> None:
        if not self._take_char(char):
            self._fail(self.at, f"expected {char} instead of {self._rest()}")

    def _rest(self) -> str:
        return shorten(self.text[self.at : self.at + 20]) or "the end"

    def _fail(self, at: int, reason: str) -> NoReturn:
        raise AssertionProblem(self.text, at + 1, reason)


def _mixed(one: Unit, other: Unit) -> str:
    hint = "give a duration such as 1h" if one is Unit.DURATION else "give a number such as 0.8 or 80%"
    return f"a {one.value} and a {other.value} cannot be compared or added; {hint}"
