"""Series in promtool's notation, and what rules do with them minute by minute."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from corral.model.alerts.matchers import Matcher
from corral.monitor.rules.alerting import Alert, AlertState
from corral.monitor.rules.evaluator import RulesEvaluator
from corral.monitor.rules.parser import parse_expression
from corral.monitor.rules.rules_file import Group
from corral.monitor.rules.series import Point, Series, labels_of, selected
from corral.monitor.rules.syntax import Selector

MINUTE: Final = 60.0
_RUN: Final = re.compile(r"(-?[0-9.]+|_)(?:([+-][0-9.]+))?x([0-9]+)")


class Case(NamedTuple):
    """Series of one value a minute under which an alert fires after its `for`, and others under which not."""

    bad: Mapping[str, str]
    good: Mapping[str, str]
    begins: int = 0
    """The minute in which the condition holds first."""


def expanded(values: str) -> list[float | str | None]:
    """The values of a series in promtool's notation; None is a gap."""
    found: list[float | str | None] = []
    for word in values.split():
        if (run := _RUN.fullmatch(word)) is not None:
            for place in range(int(run[3]) + (run[1] != "_")):
                found.append(None if run[1] == "_" else float(run[1]) + place * float(run[2] or 0))
        else:
            found.append("stale" if word == "stale" else None if word == "_" else float(word))
    return found


class Minutes:
    """Series of one value a minute from time 0 on, as a source."""

    def __init__(self, series: Mapping[str, str]) -> None:
        self._series = []
        for name, values in series.items():
            selector = parse_expression(name)
            assert isinstance(selector, Selector)
            labels = labels_of({each.label: each.value for each in selector.matchers})
            points: list[Point] = []
            for minute, value in enumerate(expanded(values)):
                if value is not None:
                    points.append((minute * MINUTE, None if isinstance(value, str) else value))
            self._series.append(Series(labels, tuple(points)))

    def select(self, matchers: tuple[Matcher, ...], begin: float, end: float) -> Iterator[Series]:
        for labels, points in self._series:
            if selected(labels, matchers):
                yield Series(labels, tuple(each for each in points if begin <= each[0] <= end))


def firing(groups: Iterable[Group], alert: str, series: Mapping[str, str], minutes: int) -> list[list[Alert]]:
    """The firing alerts of a name in each minute; only its rule and those that record are evaluated."""
    kept = []
    for group in groups:
        rules = tuple(rule for rule in group.rules if rule.records or rule.name == alert)
        kept.append(Group(group.name, rules))
    evaluator, source, found = RulesEvaluator(kept), Minutes(series), []
    for minute in range(minutes + 1):
        evaluator.evaluate(source, minute * MINUTE)
        assert not [state.error for group in evaluator.groups for state in group.rules if state.error]
        found.append([each for _, each in evaluator.alerts() if each.state is AlertState.FIRING])
    return found


def promtool_test(
    alert: str, series: Mapping[str, str], by_minute: list[list[Alert]], minutes: Iterable[int]
) -> dict[str, Any]:
    """A test for promtool that expects these alerts in these minutes."""
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [
            {
                "eval_time": f"{minute}m",
                "alertname": alert,
                "exp_alerts": [
                    {
                        "exp_labels": {name: value for name, value in each.labels if name != "alertname"},
                        "exp_annotations": dict(each.annotations),
                    }
                    for each in by_minute[minute]
                ],
            }
            for minute in sorted({each for each in minutes if 0 <= each < len(by_minute)})
        ],
    }
