"""Texts of labels and annotations with `{{ $labels.x }}` and `{{ $value }}`: a small part of Go's templates.

Numbers are written as Prometheus writes them (template/template.go): `$value` in the shortest form, and by the functions
humanize, humanize1024, humanizeDuration, humanizePercentage and printf with one verb such as `%.2f`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import isinf, isnan
from typing import Final, NamedTuple

from corral.kernel.errors import InvalidInput
from corral.spec.errors import did_you_mean, shorten

LONGEST: Final = 4000
"""The most characters of a template, and of its text."""
_ACTION: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_LABEL: Final = re.compile(r"(?:\$labels|\.Labels)\.([A-Za-z_][A-Za-z0-9_]*)", re.ASCII)
_VALUES: Final = ("$value", ".Value")
_PRINTF: Final = re.compile(r'printf\s+"([^"%\\]*)%(?:\.([0-9]))?([fg])([^"%\\]*)"(?:\s+(\$value|\.Value))?', re.ASCII)
_SMALL: Final = ("m", "u", "n", "p", "f", "a", "z", "y")
_LARGE: Final = ("k", "M", "G", "T", "P", "E", "Z", "Y")
_BINARY: Final = ("ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")


class _Label(NamedTuple):
    name: str


class Template:
    """A parsed text."""

    __slots__ = ("_parts", "text")

    def __init__(self, text: str) -> None:
        """Parse a text; raises InvalidInput that names what is not supported."""
        if len(text) > LONGEST:
            raise InvalidInput("bad-template", f"A text of an alert has at most {LONGEST} characters.")
        self.text = text
        self._parts: list[str | _Label | Callable[[float], str]] = []
        at = 0
        for match in _ACTION.finditer(text):
            self._parts += [text[at : match.start()], _action(match[1])]
            at = match.end()
        if "{{" in text[at:]:
            raise InvalidInput("bad-template", 'A text of an alert has "{{" without "}}".')
        self._parts.append(text[at:])

    def text_for(self, labels: Mapping[str, str], value: float) -> str:
        """The text with the labels and value of an alert; a missing label is empty."""
        done = []
        for part in self._parts:
            if isinstance(part, str):
                done.append(part)
            elif isinstance(part, _Label):
                done.append(labels.get(part.name, ""))
            else:
                done.append(part(value))
        return "".join(done)[:LONGEST]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Template) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def number(value: float) -> str:
    """A number as Go writes it: the shortest digits, with an exponent below 1e-4 and from 1e6 on."""
    if isnan(value) or isinf(value):
        return _special(value)
    digits, _, exponent = f"{value:.17e}".partition("e")
    for precision in range(17):
        digits, _, exponent = f"{value:.{precision}e}".partition("e")
        if float(f"{digits}e{exponent}") == value:
            break
    power = int(exponent)
    if value and (power < -4 or power >= 6):
        return f"{digits}e{'-' if power < 0 else '+'}{abs(power):02d}"
    decimals = max(0, len(digits.lstrip("-").replace(".", "")) - 1 - power)
    return f"{value:.{decimals}f}"


def _action(text: str) -> _Label | Callable[[float], str]:
    first, *pipes = (part.strip() for part in text.split("|"))
    if (label := _LABEL.fullmatch(first)) is not None:
        if pipes:
            raise InvalidInput("bad-template", f"A label takes no function, and {shorten(text.strip())} has one.")
        return _Label(label[1])
    if (formatted := _PRINTF.fullmatch(first)) is not None and formatted[5] and not pipes:
        return _printf(formatted)
    if first not in _VALUES or len(pipes) > 1:
        shown = shorten(text.strip())
        raise InvalidInput(
            "bad-template", f"A text of an alert has $labels.NAME and $value in {{{{ }}}}, and not {shown}."
        )
    if not pipes:
        return number
    if (formatted := _PRINTF.fullmatch(pipes[0])) is not None and not formatted[5]:
        return _printf(formatted)
    if pipes[0] not in _FUNCTIONS:
        raise InvalidInput(
            "bad-template",
            f"A text of an alert has no function {shorten(pipes[0])}{did_you_mean(pipes[0], _FUNCTIONS)}",
        )
    return _FUNCTIONS[pipes[0]]


def _printf(match: re.Match[str]) -> Callable[[float], str]:
    before, precision, verb, after, _ = match.groups()

    def written(value: float) -> str:
        if isnan(value) or isinf(value):
            return before + _special(value) + after
        if verb == "g" and precision is None:
            return before + number(value) + after
        return f"{before}{value:.{precision or 6}{verb}}{after}"

    return written


def _special(value: float) -> str:
    return "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"


def _short(value: float) -> str:
    return _special(value) if isnan(value) or isinf(value) else f"{value:.4g}"


def _scaled(value: float, base: float, prefixes: tuple[str, ...]) -> str:
    prefix = ""
    for prefix_ in prefixes:
        if abs(value) < base:
            break
        prefix, value = prefix_, value / base
    return _short(value) + prefix


def _scaled_up(value: float) -> str:
    prefix = ""
    for prefix_ in _SMALL:
        if abs(value) >= 1:
            break
        prefix, value = prefix_, value * 1000
    return _short(value) + prefix


def _humanize(value: float) -> str:
    if value == 0 or isnan(value) or isinf(value):
        return _short(value)
    return _scaled(value, 1000, _LARGE) if abs(value) >= 1 else _scaled_up(value)


def _humanize_1024(value: float) -> str:
    if abs(value) <= 1 or isnan(value) or isinf(value):
        return _short(value)
    return _scaled(value, 1024, _BINARY)


def _humanize_duration(value: float) -> str:
    if isnan(value) or isinf(value):
        return _short(value)
    if abs(value) < 1:
        return ("0" if value == 0 else _scaled_up(value)) + "s"
    sign, whole = "-" if value < 0 else "", int(abs(value))
    days, hours, minutes, seconds = whole // 86_400, whole // 3600 % 24, whole // 60 % 60, whole % 60
    if days:
        return f"{sign}{days}d {hours}h {minutes}m {seconds}s"
    if hours:
        return f"{sign}{hours}h {minutes}m {seconds}s"
    return f"{sign}{minutes}m {seconds}s" if minutes else f"{sign}{_short(abs(value))}s"


def _humanize_percentage(value: float) -> str:
    return f"{_short(value * 100)}%"


_FUNCTIONS: Final[dict[str, Callable[[float], str]]] = {
    "humanize": _humanize,
    "humanize1024": _humanize_1024,
    "humanizeDuration": _humanize_duration,
    "humanizePercentage": _humanize_percentage,
}
