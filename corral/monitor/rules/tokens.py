"""Split an expression into tokens with their positions."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from corral.kernel.errors import InvalidInput

LONGEST: Final = 5000
"""The most characters of an expression."""
MOST_TOKENS: Final = 1000
_TOKEN: Final = re.compile(
    r"(?P<space>\s+|\#[^\n]*)"
    r"|(?P<duration>(?:[0-9]{1,9}(?:ms|[smhdwy]))+(?![A-Za-z0-9_.]))"
    r"|(?P<number>0[xX][0-9a-fA-F]{1,16}(?![A-Za-z0-9_.])"
    r"|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?(?![A-Za-z0-9_.]))"
    r"|(?P<word>(?!:\s*[0-9\]])[A-Za-z_:][A-Za-z0-9_:]*)"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)"
    r"|(?P<sign>=~|!~|==|!=|<=|>=|[-+*/%^<>=(){}\[\],:@])",
    re.ASCII,
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}
_DURATION: Final = re.compile(r"([0-9]+)(ms|[smhdwy])")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0, "y": 31_536_000.0}
_ORDER: Final = ("y", "w", "d", "h", "m", "s", "ms")


class ExpressionProblem(InvalidInput):
    """An expression that is refused; line and column count from 1."""

    def __init__(self, text: str, at: int, reason: str) -> None:
        self.reason = reason
        self.line = text.count("\n", 0, at) + 1
        self.column = at - (text.rfind("\n", 0, at) + 1) + 1
        many = f"line {self.line}, " if "\n" in text.strip() else ""
        end = "" if reason.endswith("?") else "."
        super().__init__("bad-expression", f"At {many}column {self.column} of the expression: {reason}{end}")


class Token(NamedTuple):
    """A token; `kind` is duration, number, word, string, sign or end."""

    kind: str
    text: str
    at: int


def tokens_of(text: str) -> list[Token]:
    """All tokens of an expression, the last one of the kind `end`. Raises ExpressionProblem."""
    if len(text) > LONGEST:
        raise ExpressionProblem(text[:60], 0, f"an expression has at most {LONGEST} characters")
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionProblem(text, at, f"{text[at]!r} cannot be read here")
        if match.lastgroup != "space":
            found.append(Token(match.lastgroup or "", match[0], at))
            if len(found) > MOST_TOKENS:
                raise ExpressionProblem(text, at, f"an expression has at most {MOST_TOKENS} words and signs")
        at = match.end()
    return [*found, Token("end", "", len(text))]


def string_of(text: str) -> str:
    """The value of a quoted string; raises ValueError for an unknown escape."""
    if text[0] == "`":
        return text[1:-1]
    parts, at, inner = [], 0, text[1:-1]
    while at < len(inner):
        if inner[at] != "\\":
            parts.append(inner[at])
            at += 1
            continue
        escaped = inner[at + 1]
        if escaped not in _ESCAPES or (escaped in "\"'" and escaped != text[0]):
            raise ValueError(f"the escape \\{escaped} is not supported; write \\\\{escaped} for a backslash")
        parts.append(_ESCAPES[escaped])
        at += 2
    return "".join(parts)


def seconds_of(text: str) -> float:
    """Seconds of a duration such as `1h30m`; raises ValueError if it is none, or its units are not in order."""
    parts = _DURATION.findall(text)
    units = [_ORDER.index(unit) for _, unit in parts]
    if not parts or "".join(map("".join, parts)) != text or units != sorted(set(units)):
        raise ValueError("a duration is written as 90s, 5m or 1h30m, the longest unit first")
    return round(sum(int(count) * _SECONDS[unit] for count, unit in parts), 3)
