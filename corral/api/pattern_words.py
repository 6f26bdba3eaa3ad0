"""Say in words what the regular expressions of parameters and fields allow."""

from __future__ import annotations

import re
from typing import Final

_ONE_OF: Final = re.compile(r"\^\((\w+(?:\|\w+)*)\)\$")
_CHARACTERS: Final = re.compile(r"\^(?:\[([^\]]+)\])?\[([^\]]+)\]\{(\d+)(?:,(\d+))?\}\$")
_RANGES: Final = (("A-Za-z", "letters"), ("a-zA-Z", "letters"), ("a-z", "lower-case letters"), ("0-9", "digits"))
_PLAIN: Final = {"A-Za-z0-9": "a letter or digit", "a-zA-Z0-9": "a letter or digit", "a-z0-9": "a letter or digit"}
_REFUSED: Final = re.compile(r"Expected `str` matching regex '(.*)'(?: - at `\$\.?(.*)`)?")
_SHOWN: Final = 100
"""Characters of a refused value or field that a message repeats."""


def words_of(pattern: str) -> str:
    """Return what a pattern allows, such as `letters, digits and '-', 63 characters at most`."""
    if found := _ONE_OF.fullmatch(pattern):
        return f"one of {', '.join(found[1].split('|'))}"
    if (found := _CHARACTERS.fullmatch(pattern)) is None:
        return f"text of the form {pattern}"
    first, characters, least, most = found.groups()
    longest = int(most or least) + (1 if first else 0)
    if characters == "0-9a-f":
        return f"{longest} hexadecimal digits"
    begins = f", beginning with {_PLAIN.get(first) or _characters(first)}" if first else ""
    return f"{_characters(characters)}{begins}, {longest} characters at most"


def refused_parameter(name: str, value: str, pattern: str) -> str:
    """Return the refusal of a parameter that does not match its pattern."""
    if name == "ref":
        way = "jobs are named one by one, and `corral ls -q PART -o name` lists those with a part of a name"
        return f"There is no job {value[:_SHOWN]!r}: {way}."
    return f"The parameter {name} cannot be {value[:_SHOWN]!r}; expected {words_of(pattern)}."


def refused_field(said: str) -> str | None:
    """Return msgspec's refusal of a field by its pattern in words; None for another refusal."""
    if (found := _REFUSED.fullmatch(said)) is None:
        return None
    where = f"The field {found[2][:_SHOWN]}" if found[2] else "The body"
    return f"{where} does not fit; expected {words_of(found[1])}."


def _characters(allowed: str) -> str:
    named = []
    for written, words in _RANGES:
        if written in allowed:
            named.append(words)
            allowed = allowed.replace(written, "")
    named += [repr(each) for each in allowed]
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
