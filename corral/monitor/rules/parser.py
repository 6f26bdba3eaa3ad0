"""Parse the supported subset of PromQL by precedence climbing; a refusal names the position and what was meant.

Grammar, precedences and type rules are those of Prometheus 2.42 (prometheus.io/docs/prometheus/latest/querying).
"""

from __future__ import annotations

from typing import Final, NoReturn

from corral.model.alerts.matchers import Matcher
from corral.model.alerts.patterns import Pattern
from corral.monitor.rules.functions import AGGREGATIONS, FUNCTIONS, UNSUPPORTED
from corral.monitor.rules.series import NAME
from corral.monitor.rules.syntax import (
    Aggregation,
    Binary,
    Call,
    Expression,
    Matching,
    Negation,
    Number,
    Selector,
    Subquery,
    Type,
)
from corral.monitor.rules.tokens import ExpressionProblem, Token, seconds_of, string_of, tokens_of
from corral.spec.errors import did_you_mean, shorten

DEEPEST: Final = 30
"""How many expressions may stand in each other."""
LONGEST_RANGE: Final = 366 * 86_400.0
"""The longest range or offset, in seconds."""
MOST_EVALUATIONS: Final = 2000
"""How often subqueries may evaluate their inner expressions."""
_SETS: Final = ("and", "or", "unless")
_COMPARISONS: Final = ("==", "!=", "<=", ">=", "<", ">")
_PRECEDENCE: Final = {
    "or": 1, "and": 2, "unless": 2, **dict.fromkeys(_COMPARISONS, 3), "+": 4, "-": 4, "*": 5, "/": 5, "%": 5, "^": 6,
}  # fmt: skip
_UNARY: Final = 5
_NUMBERS: Final = {"inf": float("inf"), "nan": float("nan")}
_KEYWORDS: Final = frozenset(("by", "without", "on", "ignoring", "group_left", "group_right", "bool", "offset", *_SETS))


def parse_expression(text: str) -> Expression:
    """Parse an expression; raises ExpressionProblem."""
    return _Parser(text).whole()


def type_of(expression: Expression) -> Type:
    """What an expression gives."""
    if isinstance(expression, Number):
        return Type.SCALAR
    if isinstance(expression, Selector):
        return Type.RANGE if expression.range else Type.VECTOR
    if isinstance(expression, Subquery):
        return Type.RANGE
    if isinstance(expression, Call):
        return FUNCTIONS[expression.function].result
    if isinstance(expression, Negation):
        return type_of(expression.inner)
    if isinstance(expression, Binary) and type_of(expression.left) is type_of(expression.right) is Type.SCALAR:
        return Type.SCALAR
    return Type.VECTOR


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens_of(text)
        self._place = 0
        self._depth = 0
        self._evaluations = 0

    def whole(self) -> Expression:
        found = self._expression(0)
        if self._next.kind != "end":
            self._fail(self._next, f"{self._shown(self._next)} is too much")
        if type_of(found) is Type.RANGE:
            self._fail(self._tokens[0], "a range needs a function, such as rate(…[5m])")
        return found

    # ---- tokens

    @property
    def _next(self) -> Token:
        return self._tokens[self._place]

    def _take(self) -> Token:
        token = self._next
        self._place += token.kind != "end"
        return token

    def _taken(self, *texts: str) -> Token | None:
        token = self._next
        if token.kind in ("sign", "word") and token.text.lower() in texts:
            return self._take()
        return None

    def _expect(self, text: str, after: str) -> Token:
        if (token := self._taken(text)) is not None:
            return token
        self._fail(self._next, f'{after} needs "{text}" here, and has {self._shown(self._next)}')

    def _fail(self, token: Token, reason: str) -> NoReturn:
        raise ExpressionProblem(self._text, token.at, reason)

    def _shown(self, token: Token) -> str:
        return f'"{shorten(token.text, 30)}"' if token.kind != "end" else "the end"

    # ---- expressions

    def _expression(self, least: int) -> Expression:
        begin = self._next
        self._depth += 1
        if self._depth > DEEPEST:
            self._fail(begin, f"at most {DEEPEST} expressions may stand in each other")
        left = self._signed()
        while (precedence := _PRECEDENCE.get(self._next.text.lower(), 0)) >= max(1, least):
            if self._next.kind not in ("sign", "word"):
                break
            left = self._binary(left, precedence)
        self._depth -= 1
        return left

    def _signed(self) -> Expression:
        sign = self._taken("-", "+")
        if sign is None:
            return self._with_range(self._primary())
        inner = self._expression(_UNARY + 1)
        if type_of(inner) is Type.RANGE:
            self._fail(sign, "a range has no sign")
        if sign.text == "+":
            return inner
        return Number(-inner.value) if isinstance(inner, Number) else Negation(inner)

    def _binary(self, left: Expression, precedence: int) -> Expression:
        token = self._take()
        operator = token.text.lower()
        to_bool = self._taken("bool") is not None
        if to_bool and operator not in _COMPARISONS:
            self._fail(token, f"bool stands after a comparison only, and not after {operator}")
        matching = self._matching()
        # The power operator is right-associative, all others are left-associative.
        right = self._expression(precedence if operator == "^" else precedence + 1)
        types = type_of(left), type_of(right)
        if Type.RANGE in types:
            self._fail(token, f"{operator} joins no ranges")
        if operator in _SETS and Type.SCALAR in types:
            self._fail(token, f"{operator} joins series only, no numbers")
        if operator in _COMPARISONS and types == (Type.SCALAR, Type.SCALAR) and not to_bool:
            self._fail(token, f"a comparison of two numbers is written {operator} bool")
        if matching != Matching() and Type.SCALAR in types:
            self._fail(token, "on and ignoring stand between series only, not beside a number")
        return Binary(operator, left, right, matching, to_bool)

    def _matching(self) -> Matching:
        word = self._taken("on", "ignoring")
        if word is None:
            return Matching()
        found = Matching(self._names(word.text), word.text.lower() == "on")
        if (group := self._taken("group_left", "group_right")) is not None:
            self._fail(group, f"{group.text} is not supported")
        return found

    def _names(self, after: str) -> tuple[str, ...]:
        self._expect("(", after)
        names: list[str] = []
        while self._taken(")") is None:
            token = self._take()
            if token.kind != "word" or ":" in token.text:
                self._fail(token, f"{after} needs names of labels, and has {self._shown(token)}")
            names.append(token.text)
            if self._taken(",") is None:
                self._expect(")", after)
                break
        return tuple(sorted(set(names)))

    def _primary(self) -> Expression:
        token = self._take()
        if token.kind == "number":
            return Number(float(int(token.text, 16)) if token.text[:2].lower() == "0x" else float(token.text))
        if token.text == "(" and token.kind == "sign":
            inner = self._expression(0)
            self._expect(")", "a parenthesis")
            return inner
        if token.text == "{" and token.kind == "sign":
            return self._selector(token, "")
        if token.kind == "word":
            return self._word(token)
        if token.kind == "string":
            self._fail(token, "a text is no value; only matchers of labels have one")
        if token.kind == "duration":
            self._fail(token, "a duration stands only in a range or after offset; write seconds as a number")
        self._fail(token, f"an expression is missing before {self._shown(token)}")

    def _word(self, token: Token) -> Expression:
        word, following = token.text, self._next
        if word.lower() in AGGREGATIONS and following.text.lower() in ("(", "by", "without"):
            return self._aggregation(token)
        if word.lower() in _NUMBERS:
            return Number(_NUMBERS[word.lower()])
        if following.text == "(" or (word in UNSUPPORTED and following.text.lower() in ("by", "without")):
            return self._call(token)
        if word.lower() in _KEYWORDS:
            self._fail(token, f"an expression is missing before {word}")
        return self._selector(token, word)

    def _aggregation(self, token: Token) -> Expression:
        grouping = self._grouping()
        self._expect("(", token.text)
        inner = self._expression(0)
        self._expect(")", token.text)
        if grouping is None:
            grouping = self._grouping()
        if type_of(inner) is not Type.VECTOR:
            self._fail(token, f"{token.text} takes an instant vector, and has {type_of(inner)}")
        without, labels = grouping or (False, ())
        return Aggregation(token.text.lower(), inner, labels, without)

    def _grouping(self) -> tuple[bool, tuple[str, ...]] | None:
        word = self._taken("by", "without")
        return None if word is None else (word.text.lower() == "without", self._names(word.text))

    def _call(self, token: Token) -> Expression:
        name = token.text
        if name in UNSUPPORTED:
            self._fail(token, f"{name} is not supported")
        if name not in FUNCTIONS:
            self._fail(token, f"there is no function {shorten(name)}{did_you_mean(name, (*FUNCTIONS, *AGGREGATIONS))}")
        self._expect("(", name)
        arguments: list[Expression] = []
        while self._next.text != ")":
            arguments.append(self._expression(0))
            if self._taken(",") is None:
                break
        self._expect(")", name)
        needed = FUNCTIONS[name].arguments
        if len(arguments) != len(needed):
            self._fail(token, f"{name} takes {_counted(len(needed))}, and has {len(arguments)}")
        for argument, kind in zip(arguments, needed, strict=True):
            if type_of(argument) is not kind:
                self._fail(token, f"{name} takes {kind}, and has {type_of(argument)}")
        return Call(name, tuple(arguments))

    # ---- selectors

    def _selector(self, token: Token, name: str) -> Selector:
        matchers = [Matcher(NAME, "=", name)] if name else []
        if name == "" or self._taken("{") is not None:
            while self._taken("}") is None:
                matchers.append(self._matcher(named=bool(name)))
                if self._taken(",") is None:
                    self._expect("}", "a selector")
                    break
        if all(each.matches("") for each in matchers):
            self._fail(token, "a selector needs a matcher that does not match the empty text")
        return Selector(tuple(matchers))

    def _matcher(self, *, named: bool) -> Matcher:
        label, operator = self._take(), self._take()
        if label.kind != "word" or ":" in label.text:
            self._fail(label, f"a selector needs the name of a label, and has {self._shown(label)}")
        if named and label.text == NAME:
            self._fail(label, "the name of the metric is given twice")
        if operator.text not in ("=", "!=", "=~", "!~") or operator.kind != "sign":
            self._fail(operator, f"a matcher has one of =, !=, =~ and !~, and not {self._shown(operator)}")
        token = self._take()
        if token.kind != "string":
            self._fail(token, f"the matcher of {shorten(label.text)} needs a text in quotes")
        try:
            value = string_of(token.text)
        except ValueError as error:
            self._fail(token, str(error))
        if operator.text in ("=", "!="):
            return Matcher(label.text, operator.text, value)
        try:
            return Matcher(label.text, operator.text, value, Pattern(value))
        except ValueError as error:
            self._fail(token, f"the pattern {shorten(value)} {error}")

    def _with_range(self, found: Expression) -> Expression:
        while True:
            if (token := self._taken("[")) is not None:
                found = self._ranged(token, found)
            elif (token := self._taken("offset")) is not None:
                found = self._offset(token, found)
            elif (token := self._taken("@")) is not None:
                self._fail(token, "@ is not supported")
            else:
                return found

    def _ranged(self, token: Token, found: Expression) -> Expression:
        length = self._duration("a range")
        if self._taken(":") is not None:
            return self._subquery(token, found, length)
        self._expect("]", "a range")
        if not isinstance(found, Selector) or found.range:
            self._fail(token, "a range stands after a selector; a subquery is written [1h:1m]")
        if found.offset:
            self._fail(token, "offset stands after the range")
        return Selector(found.matchers, length)

    def _subquery(self, token: Token, found: Expression, length: float) -> Expression:
        if self._next.text == "]":
            self._fail(self._next, "a subquery needs a step, such as [1h:1m]")
        step = self._duration("the step of a subquery")
        self._expect("]", "a subquery")
        if type_of(found) is not Type.VECTOR:
            self._fail(token, f"a subquery stands after an instant vector, and not after {type_of(found)}")
        subquery = Subquery(found, length, step)
        if evaluations(subquery) > MOST_EVALUATIONS:
            self._fail(token, f"subqueries evaluate at most {MOST_EVALUATIONS} times; choose a longer step")
        return subquery

    def _offset(self, token: Token, found: Expression) -> Expression:
        sign = -1.0 if self._taken("-") is not None else 1.0
        seconds = sign * self._duration("offset")
        if isinstance(found, Selector) and not found.offset:
            return Selector(found.matchers, found.range, seconds)
        if isinstance(found, Subquery) and not found.offset:
            return Subquery(found.inner, found.range, found.step, seconds)
        self._fail(token, "offset stands once, after a selector or a subquery")

    def _duration(self, of: str) -> float:
        token = self._take()
        try:
            seconds = seconds_of(token.text)
        except ValueError as error:
            self._fail(token, f"{of} needs a duration: {error}")
        if not 0 < seconds <= LONGEST_RANGE:
            self._fail(token, f"{of} is longer than nothing and at most a year")
        return seconds


def _counted(count: int) -> str:
    return "no argument" if count == 0 else "1 argument" if count == 1 else f"{count} arguments"


def evaluations(expression: Expression) -> int:
    """How often the innermost expressions of subqueries are evaluated at one time."""
    if isinstance(expression, Subquery):
        return max(1, int(expression.range / expression.step) + 1) * evaluations(expression.inner)
    if isinstance(expression, Call):
        return max(1, sum(map(evaluations, expression.arguments)))
    if isinstance(expression, Binary):
        return evaluations(expression.left) + evaluations(expression.right)
    if isinstance(expression, Aggregation | Negation):
        return evaluations(expression.inner)
    return 1
