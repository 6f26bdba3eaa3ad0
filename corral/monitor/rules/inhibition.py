"""Alerts that keep others from acting, such as a lost node those of what ran on it (Alertmanager's `inhibit_rules`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from corral.model.alerts.matchers import Matcher, match_all


@dataclass(frozen=True, slots=True)
class Inhibition:
    """While an alert of `source` fires, those of `target` with the same values of the labels `equal` do nothing."""

    source: tuple[Matcher, ...]
    target: tuple[Matcher, ...]
    equal: tuple[str, ...] = ()

    def values(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        """The values that must be the same; a label that is not there is empty."""
        return tuple(labels.get(name, "") for name in self.equal)


class Inhibited:
    """Which alerts are inhibited while some fire."""

    def __init__(self, rules: Sequence[Inhibition], firing: Iterable[Mapping[str, str]]) -> None:
        """`firing` are the labels of the alerts that fire. Takes one look at each alert for each rule."""
        self._rules = rules
        self._sources: list[set[tuple[str, ...]]] = [set() for _ in rules]
        self._one_sided: list[set[tuple[str, ...]]] = [set() for _ in rules]
        """Of the sources, those that are no target of their rule."""
        for labels in firing:
            for place, rule in enumerate(rules):
                if match_all(rule.source, labels):
                    self._sources[place].add(rule.values(labels))
                    if not match_all(rule.target, labels):
                        self._one_sided[place].add(rule.values(labels))

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether an alert with these labels is inhibited; one that is source and target is so by sources alone."""
        for place, rule in enumerate(self._rules):
            if match_all(rule.target, labels):
                sources = self._one_sided if match_all(rule.source, labels) else self._sources
                if rule.values(labels) in sources[place]:
                    return True
        return False
