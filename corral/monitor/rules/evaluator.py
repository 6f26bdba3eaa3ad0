"""Evaluate all rules of a file at one time after another, and hold their alerts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from corral.kernel.errors import InvalidInput
from corral.model.alerts.matchers import Matcher
from corral.monitor.rules.alerting import Alert, step
from corral.monitor.rules.evaluation import LOOKBACK, evaluate
from corral.monitor.rules.memory_series import MOST_POINTS, MemorySeries
from corral.monitor.rules.operators import Vector
from corral.monitor.rules.rules_file import Group, Rule
from corral.monitor.rules.series import NAME, Labels, Series, SeriesSource, labels_of, selected, without
from corral.monitor.rules.syntax import longest_past, selectors

MOST_ALERTS: Final = 2000
"""The most alerts of one rule; one that raises more fails."""


@dataclass(slots=True)
class RuleState:
    """A rule, and what it has found."""

    rule: Rule
    alerts: dict[Labels, Alert] = field(default_factory=dict)
    error: str = ""
    """Why the last evaluation failed."""


@dataclass(slots=True)
class GroupState:
    """A group and its rules."""

    group: Group
    rules: list[RuleState]
    recorded: MemorySeries
    evaluated_at: float | None = None
    """Seconds since 1970."""


class RulesEvaluator:
    """The rules of a file and their states."""

    def __init__(self, groups: Sequence[Group]) -> None:
        """Begin with no alert."""
        rules = [rule for group in groups for rule in group.rules]
        self.past = max((longest_past(rule.expression, LOOKBACK) for rule in rules), default=0.0)
        """Seconds of the past that the rules read."""
        self._restored = False
        self._restored_at: float | None = None
        """When the first evaluation after `restore` was."""
        most = MOST_POINTS // max(1, len(groups))
        self.groups = [
            GroupState(group, [RuleState(rule) for rule in group.rules], MemorySeries(self.past, most))
            for group in groups
        ]

    @property
    def selectors(self) -> tuple[tuple[Matcher, ...], ...]:
        """The conditions of all series that the rules read."""
        rules = (each.rule for group in self.groups for each in group.rules)
        return tuple({each.matchers: None for rule in rules for each in selectors(rule.expression)})

    def evaluate(self, source: SeriesSource, now: float) -> None:
        """Evaluate all groups that are due; a rule that fails keeps its alerts and says why."""
        for group in self.groups:
            # A clock that went back by more than the interval makes the group due as well.
            if group.evaluated_at is not None and abs(now - group.evaluated_at) < group.group.interval:
                continue
            group.evaluated_at = now
            both = _Both(source, [each.recorded for each in self.groups])
            for state in group.rules:
                try:
                    self._evaluate(state, group.group.limit, both, now)
                    state.error = ""
                except InvalidInput as error:
                    state.error = error.message
            group.recorded.add(both.fresh, now)

    def _evaluate(self, state: RuleState, limit: int, source: _Both, now: float) -> None:
        rule = state.rule
        found = evaluate(rule.expression, source, now)
        most = limit or MOST_ALERTS
        if rule.records:
            recorded = _recorded(rule, found)
            if limit and len(recorded) > limit:
                raise InvalidInput("too-many-series", f"The rule {rule.name} records more than {limit} series.")
            source.add(recorded, now)
            return
        alerts = step(rule, state.alerts, found, now, held_before=self._held_before(state, now))
        if len(alerts) > most:
            raise InvalidInput("too-many-alerts", f"The rule {rule.name} raises more than {most} alerts.")
        state.alerts = alerts

    def alerts(self) -> Iterator[tuple[Rule, Alert]]:
        """All alerts with their rules."""
        for group in self.groups:
            for state in group.rules:
                for alert in state.alerts.values():
                    yield state.rule, alert

    def _held_before(self, state: RuleState, now: float) -> float:
        """The time before which a rule's alerts began that do not cease yet; 0 if none."""
        if self._restored and self._restored_at is None:
            self._restored_at = now
        since = self._restored_at
        return since if since is not None and now - since < longest_past(state.rule.expression, 0.0) else 0.0

    def restore(self, alerts: Iterable[tuple[str, Alert]]) -> None:
        """Go on with the alerts of an earlier evaluator, by the names of their rules.

        Until the source is as old as the ranges of a rule, its alerts do not cease.
        """
        self._restored = True
        by_name: dict[str, list[Alert]] = {}
        for name, alert in alerts:
            by_name.setdefault(name, []).append(alert)
        for group in self.groups:
            for state in group.rules:
                state.alerts = {alert.labels: alert for alert in by_name.pop(state.rule.name, ())}


def _recorded(rule: Rule, found: Vector) -> Vector:
    recorded: Vector = {}
    for labels, value in found.items():
        named = dict(labels)
        more = {name: template.text_for(named, value) for name, template in rule.labels}
        key = labels_of(dict(without(labels, NAME)) | more | {NAME: rule.name})
        if key in recorded:
            raise InvalidInput("same-labels", f"Two series of the rule {rule.name} have the same labels.")
        recorded[key] = value
    return recorded


class _Both:
    """A source with what the rules recorded before, and in this evaluation."""

    def __init__(self, source: SeriesSource, recorded: Sequence[MemorySeries]) -> None:
        self._source = source
        self._recorded = recorded
        self.fresh: Vector = {}
        self._now = 0.0

    def add(self, recorded: Vector, now: float) -> None:
        self._now = now
        self.fresh |= recorded

    def select(self, matchers: tuple[Matcher, ...], begin: float, end: float) -> Iterable[Series]:
        found = {each.labels: each for past in self._recorded for each in past.select(matchers, begin, end)}
        if begin <= self._now <= end:
            for labels, value in self.fresh.items():
                if selected(labels, matchers):
                    points = found[labels].points if labels in found else ()
                    found[labels] = Series(labels, (*points, (self._now, value)))
        return chain(self._source.select(matchers, begin, end), found.values())
