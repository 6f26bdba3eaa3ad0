"""Criteria of rules: comparisons of one value, joined by `and`, `or` and `not`.

```
criterion = ["lambda" NAME ":"] ["True" "if"] either ["else" "False"]
either    = both {"or" both}
both      = plain {"and" plain}
plain     = "not" plain | "(" either ")" | sum COMPARISON sum
sum       = term {("+" | "-") term}
term      = factor {("*" | "/") factor}
factor    = NUMBER | NAME | NAME "[" STRING "]" | "-" factor | "(" sum ")"
```
The form with `lambda` is that of SuperBench's rules files (docs/user-tutorial/data-diagnosis.md there). Nothing is
evaluated but numbers and names that the caller gives.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Final

from corral.kernel.errors import InvalidInput

LONGEST: Final = 500
"""Characters of a criterion."""
_DEEPEST: Final = 10
_TOO_DEEP: Final = "criterion-too-deep"
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+)|(?P<name>[A-Za-z_]\w*)
    |(?P<text>"[^"]*"|'[^']*')|(?P<sign><=|>=|==|!=|[<>()+\-*/:\[\]]))""",
    re.VERBOSE,
)
_COMPARE: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_WORDS: Final = frozenset({"and", "or", "not", "lambda"})

Values = Mapping[str, float]
_Number = Callable[[Values], float]
Criterion = Callable[[Values], bool]
"""Whether it holds of some values by name. Raises KeyError for a name that has no value."""


def read_criterion(text: str) -> Criterion:
    """Read a criterion. Raises InvalidInput with the place of the fault."""
    if len(text) > LONGEST:
        raise InvalidInput("criterion-too-long", f"A criterion has at most {LONGEST} characters.")
    return _Reader(text).whole()


class _Reader:
    """Reads one criterion from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._at = 0
        self._depth = 0
        self._renamed = ""
        """The parameter of a lambda, which means the value."""

    def _split(self) -> list[tuple[str, int]]:
        found, at = list[tuple[str, int]](), 0
        end = len(self._text.rstrip())
        while at < end:
            match = _TOKEN.match(self._text, at)
            if match is None:
                raise self._fault("is not understood", at)
            found.append((match.group().strip(), at))
            at = match.end()
        return found

    def whole(self) -> Criterion:
        if self._next() == "lambda":
            self._take()
            self._renamed = self._take()
            self._expect(":")
        if spelt := self._words("True", "if"):
            self._at += spelt
        read = self._either()
        if spelt:
            self._at += self._words("else", "False")
        if self._next():
            raise self._fault("is one word too many")
        return read

    def _words(self, *words: str) -> int:
        """How many of `words` come next: all or none."""
        found = tuple(word for word, _ in self._tokens[self._at : self._at + len(words)])
        return len(words) if found == words else 0

    def _either(self) -> Criterion:
        parts = [self._both()]
        while self._next() == "or":
            self._take()
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else lambda values: any(part(values) for part in parts)

    def _both(self) -> Criterion:
        parts = [self._plain()]
        while self._next() == "and":
            self._take()
            parts.append(self._plain())
        return parts[0] if len(parts) == 1 else lambda values: all(part(values) for part in parts)

    def _plain(self) -> Criterion:
        self._deeper()
        try:
            if self._next() == "not":
                self._take()
                inner = self._plain()
                return lambda values: not inner(values)
            if self._next() == "(" and (grouped := self._grouped()) is not None:
                return grouped
            return self._comparison()
        finally:
            self._depth -= 1

    def _grouped(self) -> Criterion | None:
        """A criterion in parentheses; None, having read nothing, where they hold a number."""
        begun = self._at
        self._take()
        try:
            inner = self._either()
            self._expect(")")
        except InvalidInput as refused:
            if refused.code == _TOO_DEEP:
                raise
            self._at = begun
            return None
        if self._next() in _COMPARE or self._next() in {"+", "-", "*", "/"}:
            self._at = begun
            return None
        return inner

    def _comparison(self) -> Criterion:
        left = self._sum()
        compare = _COMPARE.get(self._next())
        if compare is None:
            raise self._fault("stands where a comparison such as < or >= is needed")
        self._take()
        right = self._sum()
        return lambda values: compare(left(values), right(values))

    def _sum(self) -> _Number:
        return self._chain({"+": operator.add, "-": operator.sub}, self._term)

    def _term(self) -> _Number:
        return self._chain({"*": operator.mul, "/": _divide}, self._factor)

    def _chain(self, signs: Mapping[str, Callable[[float, float], float]], part: Callable[[], _Number]) -> _Number:
        read = part()
        while (combine := signs.get(self._next())) is not None:
            self._take()
            read = _combined(combine, read, part())
        return read

    def _factor(self) -> _Number:
        self._deeper()
        try:
            word = self._take()
            if word == "-":
                inner = self._factor()
                return lambda values: -inner(values)
            if word == "(":
                inner = self._sum()
                self._expect(")")
                return inner
            if word[0].isdigit() or word[0] == ".":
                number = float(word)
                return lambda values: number
            if (word[0].isalpha() or word[0] == "_") and word not in _WORDS:
                name = self._subscript() if self._next() == "[" else "x" if word == self._renamed else word
                return lambda values: values[name]
            self._at -= 1
            raise self._fault("stands where a number or a name is needed")
        finally:
            self._depth -= 1

    def _subscript(self) -> str:
        self._take()
        text = self._take()
        self._expect("]")
        return text.strip("\"'")

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise InvalidInput(_TOO_DEEP, f'The criterion "{self._text}" is nested more than {_DEEPEST} deep.')

    def _next(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        word = self._next()
        if not word:
            raise self._fault("ends too early")
        self._at += 1
        return word

    def _expect(self, word: str) -> None:
        if self._next() != word:
            raise self._fault(f"stands where {word} is needed")
        self._at += 1

    def _fault(self, what: str, at: int | None = None) -> InvalidInput:
        if at is None and self._at >= len(self._tokens):
            return InvalidInput("bad-criterion", f'The criterion "{self._text}" ends too early.')
        place = at if at is not None else self._tokens[self._at][1]
        word = self._text[place:].strip()[:20]
        return InvalidInput("bad-criterion", f'In the criterion "{self._text}", "{word}" {what}.')


def _combined(combine: Callable[[float, float], float], left: _Number, right: _Number) -> _Number:
    return lambda values: combine(left(values), right(values))


def _divide(left: float, right: float) -> float:
    """Divide; by nothing it gives infinity of the right sign, and 0 / 0 no number."""
    if right:
        return left / right
    return left * float("inf")
