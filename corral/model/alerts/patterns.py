"""A bounded subset of RE2's regular expressions, whose matching time is bounded as well.

Prometheus uses RE2, which is linear. Python's `re` backtracks, so repeated groups and counted repeats are refused and
few unbounded repeats are allowed: with n of them, matching takes at most the n-th power of the text's length.
"""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 300
"""The most characters of a pattern."""
MOST_REPEATS: Final = 3
"""The most `*` and `+` of a pattern."""
LONGEST_VALUE: Final = 500
"""The most characters of a value that is compared; a longer one does not match."""
_TOKEN: Final = re.compile(
    r"(?P<escape>\\[\\.\-+*?()\[\]{}|^$/_dDwWsS])|(?P<set>\[\^?\]?(?:\\[\\.\-+*?()\[\]{}|^$/_dDwWsS]|[^\\\[\]])*\])"
    r"|(?P<open>\((?:\?:)?)|(?P<close>\))|(?P<repeat>[*+])|(?P<option>\?)|(?P<bar>\|)|(?P<anchor>[\^$])"
    r"|(?P<char>[^\\()\[\]{}*+?|^$])"
)


class Pattern:
    """A compiled pattern that must match the whole of a text."""

    __slots__ = ("_compiled", "text")

    def __init__(self, text: str) -> None:
        """Compile a pattern; raises ValueError that says what is not supported."""
        _check(text)
        self.text = text
        try:
            self._compiled = re.compile(text, re.ASCII)
        except re.error as error:
            raise ValueError(f"is no regular expression: {error}") from None

    def matches(self, value: str) -> bool:
        """Whether the pattern matches the whole value."""
        return len(value) <= LONGEST_VALUE and self._compiled.fullmatch(value) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"


def _check(text: str) -> None:
    if len(text) > LONGEST:
        raise ValueError(f"has more than {LONGEST} characters")
    at, repeats, before = 0, 0, ""
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"has {text[at]!r} where it is not supported")
        kind = token.lastgroup or ""
        if kind == "repeat":
            repeats += 1
            if before == "close":
                raise ValueError("repeats a group, which is not supported")
            if repeats > MOST_REPEATS:
                raise ValueError(f"has more than {MOST_REPEATS} of * and +")
        if kind in ("repeat", "option") and before in ("", "open", "bar", "repeat", "option", "anchor"):
            raise ValueError(f"has {token[0]!r} with nothing to repeat")
        before = kind
        at = token.end()
