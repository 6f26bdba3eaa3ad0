"""Rules over results: a node below its like is named with the metric, its value and what was expected."""

from __future__ import annotations

import re

import pytest

from corral.benchmarks.results.lines import NodeResult
from corral.benchmarks.rules.diagnosis import baseline_of, diagnose, read_baseline
from corral.benchmarks.rules.document import read_rules
from corral.benchmarks.suites.named import rules_text
from corral.kernel.errors import InvalidInput

RULES = b"""
superbench:
  rules:
    memory: {function: variance, criteria: x < -0.05, categories: Memory, metrics: ['s/.*_bw:\\d+']}
    launch: {function: value, criteria: 'lambda x:x>10', categories: Launch, metrics: ['l/spawn_time:\\d+'], store: true}
    failed: {function: failure_check, criteria: 'x != 0', categories: Failed, metrics: ['s/return_code']}
    both:
      function: multi_rules
      criteria: 'lambda label:True if label["memory"]+label["launch"]>=2 else False'
      categories: Suspect
"""
GOOD = {"s/copy_bw:0": 100.0, "s/copy_bw:1": 100.0, "l/spawn_time:0": 1.0, "s/return_code": 0.0}


def breaches(**changed: float | None) -> dict[str, tuple[str, ...]]:
    metrics = {name: value for name, value in (GOOD | changed).items() if value is not None}
    (found,) = diagnose([NodeResult("n", metrics)], read_rules(RULES), {"": {"s/copy_bw": 100.0}})
    return {breach.rule: breach.details for breach in found.breaches}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, {}),
        ({"s/copy_bw:1": 95.0}, {}),
        ({"s/copy_bw:1": 94.0}, {"memory": ("s/copy_bw:1 is 94, -6.0% of 100",)}),
        ({"l/spawn_time:0": 11.0}, {"launch": ("l/spawn_time:0 is 11 (lambda x:x>10)",)}),
        ({"s/return_code": 1.0}, {"failed": ("s/return_code is 1 (x != 0)",)}),
        ({"s/return_code": None}, {"failed": ("s/return_code was not measured",)}),
    ],
)
def test_a_breach_names_metric_value_and_expectation(changed: dict[str, float], expected: dict[str, object]) -> None:
    assert breaches(**changed) == expected


def test_a_composite_rule_counts_the_breaches_of_others() -> None:
    found = breaches(**{"s/copy_bw:0": 1.0, "l/spawn_time:0": 99.0})
    assert set(found) == {"memory", "launch", "both"}
    assert found["both"][0].endswith("(memory 1, launch 1)")


def test_a_stored_rule_alone_makes_no_node_defective() -> None:
    results = [NodeResult("late", GOOD | {"l/spawn_time:0": 11.0}), NodeResult("slow", GOOD | {"s/copy_bw:0": 1.0})]
    found = diagnose(results, read_rules(RULES), {"": {"s/copy_bw": 100.0}})
    assert [(each.node, each.defective) for each in found] == [("late", False), ("slow", True)]


def test_the_node_below_its_like_is_found_by_the_medians_of_its_own_sku() -> None:
    fast = [NodeResult(f"f{at}", {"m/a_bw:0": 100.0 + at, "m/return_code": 0}, "8x fast") for at in range(4)]
    slow = [NodeResult(f"s{at}", {"m/a_bw:0": 10.0 + at, "m/return_code": 0}, "8x slow") for at in range(4)]
    odd = NodeResult("odd", {"m/a_bw:0": 50.0, "m/return_code": 0}, "8x fast")
    results = [*fast, *slow, odd]
    known = {sku: baseline_of(each for each in results if each.sku == sku) for sku in ("8x fast", "8x slow")}
    assert known["8x slow"] == {"m/a_bw": 11.5}
    found = diagnose(results, read_rules(rules_text("")), known)
    assert [each.node for each in found if each.defective] == ["odd"]


def test_a_baseline_of_another_sku_is_refused() -> None:
    with pytest.raises(InvalidInput, match=re.escape('n has the SKU "8x new", and the baseline is of 8x old.')):
        diagnose([NodeResult("n", GOOD, "8x new")], read_rules(RULES), {"8x old": {"s/copy_bw": 1.0}})


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("superbench: {}", "superbench.rules must be a mapping of 1 to 200 rules"),
        ("superbench: {rules: {a: 1}}", "superbench.rules.a must be a mapping"),
        ("superbench: {rules: {a: {function: eval}}}", "a.function must be variance, value"),
        ("superbench: {rules: {a: {function: value, criteria: 1}}}", "a.criteria must be a text"),
        ("superbench: {rules: {a: {function: value, criteria: x > 1}}}", "a.metrics must be given"),
        ("superbench: {rules: {a: {function: value, criteria: x >, metrics: [b]}}}", "ends too early"),
        ("superbench: {rules: {a: {function: value, criteria: x > 1, metrics: ['(a+)+b']}}}", "is not understood"),
        ("superbench: {rules: {a: {function: value, criteria: x > 1, metrics: ['(a|a)*b']}}}", "is not understood"),
        ("superbench: {rules: {a: {function: value, criteria: x > 1, metrics: ['(?P<a>b)']}}}", "is not understood"),
        ("superbench: {rules: {a: {function: value, criteria: x > 1, metrics: ['[']}}}", "is not understood"),
        ("superbench: {rules: {a: {function: composite, criteria: b > 1, metrics: [b]}}}", "must be left out"),
        ("superbench: {rules: {a: {function: value, criteria: x > 1, metrics: [b], more: 1}}}", "a.more is not known"),
    ],
)
def test_what_is_no_rules_file_is_refused_with_its_path(rules: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(said)):
        read_rules(rules.encode())


@pytest.mark.parametrize(
    ("criteria", "function", "said"),
    [("y > 1", "value", "the rule r knows no 'y'"), ("other > 1", "composite", "the rule r counts 'other'")],
)
def test_a_name_that_means_nothing_is_told(criteria: str, function: str, said: str) -> None:
    metrics = "" if function == "composite" else ", metrics: ['s/copy_bw:0']"
    rules = read_rules(
        f"superbench: {{rules: {{r: {{function: {function}, criteria: {criteria}{metrics}}}}}}}".encode()
    )
    with pytest.raises(InvalidInput, match=re.compile(re.escape(said), re.IGNORECASE)):
        diagnose([NodeResult("n", GOOD)], rules, {"": {}})


@pytest.mark.parametrize("text", [b"", b"[]", b'{"a": 1}', b'{"a": {"b": "c"}}', b'{"a": {"b": NaN}}', b"[" * 99_999])
def test_what_is_no_baseline_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"b\.json"):
        read_baseline(text, "b.json")
