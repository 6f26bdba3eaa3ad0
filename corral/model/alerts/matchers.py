"""Matchers of labels, as Prometheus and Alertmanager write them: `node_name="n1"`, `alertname=~"Node.*"`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from corral.kernel.errors import InvalidInput
from corral.model.alerts.patterns import Pattern

LONGEST_MATCHER: Final = 500
"""The most characters of a matcher."""
_MATCHER: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*(=~|!~|!=|=)\s*(.*?)\s*", re.ASCII | re.DOTALL)
_SHOWN: Final = 60


class Matcher(NamedTuple):
    """A condition on one label; a series or alert without the label has the value ""."""

    label: str
    operator: str
    """One of `=`, `!=`, `=~` and `!~`."""
    value: str
    pattern: Pattern | None = None
    """The compiled value of `=~` and `!~`."""

    def matches(self, value: str) -> bool:
        """Whether a label's value meets the condition."""
        same = self.pattern.matches(value) if self.pattern is not None else value == self.value
        return same is (self.operator in ("=", "=~"))


def parse_matcher(text: str) -> Matcher:
    """Parse a matcher whose value may stand in double quotes; raises InvalidInput."""
    match = _MATCHER.fullmatch(text) if len(text) <= LONGEST_MATCHER else None
    if match is None:
        raise InvalidInput(
            "bad-matcher", f'A matcher is written as node_name="n1" or alertname=~"Node.*", not {text[:_SHOWN]!r}.'
        )
    label, operator, value = match.groups()
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = value[1:-1]
    if operator in ("=", "!="):
        return Matcher(label, operator, value)
    try:
        return Matcher(label, operator, value, Pattern(value))
    except ValueError as error:
        raise InvalidInput("bad-pattern", f"The pattern {value[:_SHOWN]!r} of {label[:_SHOWN]} {error}.") from None


def match_all(matchers: tuple[Matcher, ...], labels: Mapping[str, str]) -> bool:
    """Whether labels meet all conditions."""
    return all(each.matches(labels.get(each.label, "")) for each in matchers)
