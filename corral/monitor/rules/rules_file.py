"""Parse a rules file in Prometheus' format; each error names its line, its rule and its position in the expression.

The format is that of prometheus.io/docs/prometheus/latest/configuration/recording_rules and alerting_rules.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from corral.kernel.errors import InvalidInput
from corral.monitor.rules.parser import parse_expression
from corral.monitor.rules.series import NAME
from corral.monitor.rules.syntax import Expression
from corral.monitor.rules.templates import Template
from corral.monitor.rules.tokens import ExpressionProblem, seconds_of
from corral.spec.errors import Path, Problem, SpecError, describe, did_you_mean, shorten
from corral.spec.yaml_source import Source, parse_source

MOST_GROUPS: Final = 200
MOST_RULES: Final = 1000
"""The most rules of a file."""
MOST_LABELS: Final = 50
"""The most labels or annotations of a rule."""
LONGEST_HOLD: Final = 366 * 86_400.0
"""The longest `for` and `keep_firing_for`, in seconds."""
_TEXTS: Final = frozenset(
    ("name", "interval", "alert", "record", "expr", "for", "keep_firing_for", "labels", "annotations")
)
_GROUP_KEYS: Final = ("name", "interval", "limit", "labels", "rules")
_RULE_KEYS: Final = ("alert", "record", "expr", "for", "keep_firing_for", "labels", "annotations")
_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}", re.ASCII)
_METRIC: Final = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]{0,199}", re.ASCII)
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: it raises an alert for each series of its expression, or records them under a name."""

    name: str
    expression: Expression
    text: str
    """The expression as it is written."""
    records: bool = False
    labels: tuple[tuple[str, Template], ...] = ()
    annotations: tuple[tuple[str, Template], ...] = ()
    hold: float = 0.0
    """Seconds for which the condition holds before the alert fires (`for`)."""
    keep: float = 0.0
    """Seconds for which the alert goes on firing after the condition ceased (`keep_firing_for`)."""


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that are evaluated in turn."""

    name: str
    rules: tuple[Rule, ...]
    interval: float = 0.0
    """Seconds between evaluations; 0: as often as the evaluator runs."""
    limit: int = 0
    """The most series or alerts of a rule, beyond which it fails; 0: only the general bound."""


def parse_rules(text: str | bytes, filename: str = "rules") -> tuple[Group, ...]:
    """Parse a rules file. Raises SpecError with all problems."""
    return _Reader(parse_source(text, filename, _TEXTS)).groups()


class _Reader:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._problems: list[Problem] = []
        self._rules = 0

    def groups(self) -> tuple[Group, ...]:
        data, found, names = self._source.data, [], set()
        listed = data.get("groups") if isinstance(data, dict) else None
        if not isinstance(listed, list):
            self._add((), "a rules file is a mapping with a list `groups`")
            listed = []
        elif isinstance(data, dict):
            self._check_keys((), data, ("groups",))
        if len(listed) > MOST_GROUPS:
            self._add(("groups",), f"a rules file has at most {MOST_GROUPS} groups")
            listed = []
        for place, each in enumerate(listed):
            path: Path = ("groups", place)
            group = self._group(path, each)
            if group is not None and group.name in names:
                self._add((*path, "name"), f"the group {shorten(group.name)} is there twice")
            elif group is not None:
                names.add(group.name)
                found.append(group)
        if self._rules > MOST_RULES:
            self._add(("groups",), f"a rules file has at most {MOST_RULES} rules, and this one has {self._rules}")
        if self._problems:
            raise SpecError(self._problems)
        return tuple(found)

    def _add(self, path: Path, message: str) -> None:
        self._problems.append(self._source.problem(path, message))

    def _check_keys(self, path: Path, data: dict[str, Any], known: tuple[str, ...]) -> None:
        for key in data:
            if key not in known:
                self._add((*path, key), f"there is no field {shorten(key)}{did_you_mean(key, known)}")

    def _group(self, path: Path, data: Any) -> Group | None:
        if not isinstance(data, dict):
            self._add(path, f"a group is a mapping with name and rules, and not {describe(data)}")
            return None
        self._check_keys(path, data, _GROUP_KEYS)
        name = self._name(path, data.get("name"), "a group")
        limit, listed = data.get("limit", 0), data.get("rules", [])
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
            self._add((*path, "limit"), f"limit is a whole number, and not {describe(limit)}")
            limit = 0
        if not isinstance(listed, list):
            self._add((*path, "rules"), f"rules is a list, and not {describe(listed)}")
            listed = []
        self._rules += len(listed)
        if self._rules > MOST_RULES:
            return None
        shared = self._texts((*path, "labels"), data.get("labels"), "the group")
        rules = [self._rule((*path, "rules", place), each, shared) for place, each in enumerate(listed)]
        interval = self._seconds((*path, "interval"), data.get("interval"), "the group")
        return Group(name, tuple(rule for rule in rules if rule is not None), interval, limit)

    def _name(self, path: Path, name: Any, of: str) -> str:
        if isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME:
            return name
        self._add((*path, "name"), f"{of} has a name of 1 to {_LONGEST_NAME} characters, and not {describe(name)}")
        return ""

    def _rule(self, path: Path, data: Any, shared: tuple[tuple[str, Template], ...]) -> Rule | None:
        if not isinstance(data, dict) or ("alert" in data) is ("record" in data):
            self._add(path, "a rule is a mapping with expr and either alert or record")
            return None
        self._check_keys(path, data, _RULE_KEYS)
        records = "record" in data
        name = data["record" if records else "alert"]
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME:
            self._add(path, f"a rule has a name of 1 to {_LONGEST_NAME} characters, and not {describe(name)}")
            return None
        of = f"the rule {shorten(name)}"
        if records and not _METRIC.fullmatch(name):
            self._add((*path, "record"), f"{of} records under the name of a metric: letters, digits, _ and :")
        if records and (more := sorted({"for", "keep_firing_for", "annotations"} & data.keys())):
            self._add(path, f"{of} records, and takes no {' or '.join(more)}")
        own = self._texts((*path, "labels"), data.get("labels"), of)
        labels = tuple((dict(shared) | dict(own)).items())
        annotations = self._texts((*path, "annotations"), data.get("annotations"), of)
        hold = self._seconds((*path, "for"), data.get("for"), of)
        keep = self._seconds((*path, "keep_firing_for"), data.get("keep_firing_for"), of)
        text = data.get("expr")
        expression = self._expression((*path, "expr"), text, of)
        if expression is None:
            return None
        return Rule(name, expression, str(text).strip(), records, labels, annotations, hold, keep)

    def _expression(self, path: Path, text: Any, of: str) -> Expression | None:
        if not isinstance(text, str) or not text.strip():
            self._add(path, f"{of} needs an expression `expr`")
            return None
        try:
            return parse_expression(text)
        except ExpressionProblem as error:
            line = f"line {error.line}, " if "\n" in text.strip() else ""
            self._add(path, f"{of}: at {line}column {error.column} of its expression, {error.reason}")
            return None

    def _texts(self, path: Path, data: Any, of: str) -> tuple[tuple[str, Template], ...]:
        if data is None:
            return ()
        if not isinstance(data, dict) or len(data) > MOST_LABELS:
            self._add(path, f"{of}: {path[-1]} is a mapping of at most {MOST_LABELS} texts")
            return ()
        found = []
        for name, text in data.items():
            if not _LABEL.fullmatch(name) or name == NAME:
                self._add((*path, name), f"{of}: {shorten(name)} is no name of a label")
            elif not isinstance(text, str):
                self._add((*path, name), f"{of}: {name} is a text, and not {describe(text)}")
            else:
                try:
                    found.append((name, Template(text)))
                except InvalidInput as error:
                    self._add((*path, name), f"{of}: {error.message.rstrip('.')}")
        return tuple(found)

    def _seconds(self, path: Path, text: Any, of: str) -> float:
        if text is None:
            return 0.0
        try:
            seconds = 0.0 if text == "0" else seconds_of(text if isinstance(text, str) else "")
        except ValueError as error:
            self._add(path, f"{of}: {path[-1]} is a duration, and not {describe(text)}: {error}")
            return 0.0
        if seconds > LONGEST_HOLD:
            self._add(path, f"{of}: {path[-1]} is at most a year")
        return seconds
