"""Diagnose nodes: which metrics of a node break which rule, against the baseline of its SKU."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from corral.benchmarks.results.lines import NodeResult, without_rank
from corral.benchmarks.rules.document import Rule
from corral.kernel.errors import InvalidInput

Baseline = Mapping[str, float]
"""The expected value of each metric, its name without the rank."""


class Breach(NamedTuple):
    """A rule that a node breaks."""

    rule: str
    category: str
    details: tuple[str, ...]
    """Each metric with its value and what was expected."""
    stored: bool = False


class Diagnosis(NamedTuple):
    """The breaches of one node; none for a node without defects."""

    node: str
    breaches: tuple[Breach, ...]

    @property
    def defective(self) -> bool:
        """Whether a rule is broken that counts by itself."""
        return any(not breach.stored for breach in self.breaches)


def baseline_of(results: Iterable[NodeResult]) -> dict[str, float]:
    """Return the median of each metric over nodes and ranks, as a baseline for their like."""
    values: dict[str, list[float]] = {}
    for each in results:
        for metric, value in each.metrics.items():
            if not metric.endswith("/return_code"):
                values.setdefault(without_rank(metric), []).append(value)
    return {metric: median(found) for metric, found in sorted(values.items())}


def diagnose(
    results: Sequence[NodeResult], rules: Sequence[Rule], baselines: Mapping[str, Baseline]
) -> list[Diagnosis]:
    """Judge every node by the baseline of its SKU; `""` names the one of nodes without a SKU, or of all others.

    Raises InvalidInput when a rule of variance is applied to a node whose SKU has no baseline, or names an unknown
    rule.
    """
    return [_of_node(result, rules, _baseline(result, rules, baselines)) for result in results]


def _baseline(result: NodeResult, rules: Sequence[Rule], baselines: Mapping[str, Baseline]) -> Baseline:
    found = baselines.get(result.sku, baselines.get("") if not result.sku or len(baselines) == 1 else None)
    if found is None and any(rule.function == "variance" for rule in rules):
        known = ", ".join(filter(None, baselines)) or "no SKU"
        message = f'{result.node} has the SKU "{result.sku}", and the baseline is of {known}.'
        raise InvalidInput("other-sku", message)
    return found or {}


def _of_node(result: NodeResult, rules: Sequence[Rule], baseline: Baseline) -> Diagnosis:
    found: dict[str, Breach] = {}
    counts: dict[str, float] = {}
    for rule in sorted(rules, key=lambda rule: rule.function == "composite"):
        if rule.function == "composite":
            details = _composite(rule, counts)
        else:
            details = _judged(rule, result, baseline)
        counts[rule.name] = len(details)
        if details:
            found[rule.name] = Breach(rule.name, rule.category, tuple(details), rule.stored)
    return Diagnosis(result.node, tuple(found.values()))


def _composite(rule: Rule, counts: Mapping[str, float]) -> list[str]:
    try:
        broken = rule.criterion(counts)
    except KeyError as error:
        message = f"The rule {rule.name} counts {error}, which no rule before it is called."
        raise InvalidInput("unknown-rule", message) from None
    told = ", ".join(f"{name} {count:g}" for name, count in counts.items() if count)
    return [f"{rule.text} ({told})"] if broken else []


def _judged(rule: Rule, result: NodeResult, baseline: Baseline) -> list[str]:
    names = [name for name in result.metrics if any(pattern.fullmatch(name) for pattern in rule.metrics)]
    details = [told for name in sorted(names) if (told := _breach(rule, name, result.metrics[name], baseline))]
    if rule.function == "failure":
        matched = (pattern for pattern in rule.metrics if not any(pattern.fullmatch(name) for name in names))
        details += [f"{pattern.pattern} was not measured" for pattern in matched]
    return details


def _breach(rule: Rule, metric: str, value: float, baseline: Baseline) -> str:
    """What is said of a metric that breaks the rule; "" of one that does not, or that has no baseline."""
    if rule.function != "variance":
        return f"{metric} is {value:.4g} ({rule.text})" if _holds(rule, value) else ""
    expected = baseline.get(metric, baseline.get(without_rank(metric)))
    if not expected:
        return ""
    change = (value - expected) / abs(expected)
    return f"{metric} is {value:.4g}, {change:+.1%} of {expected:.4g}" if _holds(rule, change) else ""


def breaches(rules: Iterable[Rule], metric: str, value: float, baseline: float | None) -> list[str]:
    """Return what is said of each rule of single metrics that a value breaks, beside the baseline of its metric."""
    known = {} if baseline is None else {metric: baseline}
    judging = [rule for rule in rules if rule.function != "composite" and not rule.stored]
    matching = [rule for rule in judging if any(pattern.fullmatch(metric) for pattern in rule.metrics)]
    return [told for rule in matching if (told := _breach(rule, metric, value, known))]


def _holds(rule: Rule, value: float) -> bool:
    try:
        return rule.criterion({"x": value})
    except KeyError as error:
        message = f"The rule {rule.name} knows no {error}; x is the value."
        raise InvalidInput("unknown-name", message) from None


def read_baseline(text: bytes, shown: str) -> dict[str, dict[str, float]]:
    """Read a file of baselines, `{SKU: {METRIC: VALUE}}`. Raises InvalidInput."""
    try:
        given = json.loads(text)
        read = {str(sku): {str(name): float(value) for name, value in known.items()} for sku, known in given.items()}
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        message = f"{shown} has not the form of a baseline; `corral benchmark baseline` writes one."
        raise InvalidInput("bad-baseline", message) from None
    if not all(math.isfinite(value) for known in read.values() for value in known.values()):
        raise InvalidInput("bad-baseline", f"{shown} has a value that is not finite.")
    return read
