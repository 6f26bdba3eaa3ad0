"""A rules file is read with all its parts; each error names the line, the rule and the position."""

from __future__ import annotations

import pytest

from corral.monitor.rules.alerting import TRANSITIONS, AlertState
from corral.monitor.rules.evaluator import MOST_ALERTS, RulesEvaluator
from corral.monitor.rules.memory_series import MemorySeries
from corral.monitor.rules.rules_file import MOST_RULES, parse_rules
from corral.monitor.rules.series import labels_of
from corral.spec.errors import SpecError

RULE = "{alert: Down, expr: up == 0}"
REFUSED = [
    ("", "a rules file is a mapping with a list `groups`"),
    ("groups: 1", "a rules file is a mapping with a list `groups`"),
    ("groups: [{name: a, rule: []}]", 'there is no field rule; did you mean "rules"?'),
    ("groups: [{rules: []}]", "a group has a name of 1 to 200 characters, and not nothing"),
    ("groups: [{name: a}, {name: a}]", "groups[1].name: the group a is there twice"),
    ("groups: [{name: a, rules: [{expr: up}]}]", "a rule is a mapping with expr and either alert or record"),
    ("groups: [{name: a, rules: [{alert: A}]}]", "the rule A needs an expression `expr`"),
    (
        "groups:\n- name: a\n  rules:\n  - alert: A\n    expr: sum(up\n",
        'rules.yml:5:11: groups[0].rules[0].expr: the rule A: at column 7 of its expression, sum needs ")"',
    ),
    (
        "groups:\n- name: a\n  rules:\n  - alert: A\n    expr: |\n      up\n        == topk(1, up)\n",
        "the rule A: at line 2, column 6 of its expression, topk is not supported",
    ),
    ("groups: [{name: a, rules: [{alert: A, expr: up, for: soon}]}]", "the rule A: for is a duration, and not \"soon\""),
    ("groups: [{name: a, rules: [{alert: A, expr: up, for: 3y}]}]", "the rule A: for is at most a year"),
    ("groups: [{name: a, rules: [{record: a b, expr: up}]}]", "the rule a b records under the name of a metric"),
    ("groups: [{name: a, rules: [{record: a, expr: up, for: 1m}]}]", "the rule a records, and takes no for"),
    (
        "groups: [{name: a, rules: [{alert: A, expr: up, labels: {a-b: c}}]}]",
        "the rule A: a-b is no name of a label",
    ),
    (
        "groups: [{name: a, rules: [{alert: A, expr: up, annotations: {b: '{{ $labels.x | toUpper }}'}}]}]",
        "the rule A: A label takes no function, and $labels.x | toUpper has one",
    ),
    (
        "groups: [{name: a, rules: [{alert: A, expr: up, annotations: {b: '{{ $value | humanise }}'}}]}]",
        'A text of an alert has no function humanise; did you mean "humanize"?',
    ),
    (
        "groups: [{name: a, rules: [{alert: A, expr: up, annotations: {b: '{{ query `up` }}'}}]}]",
        "A text of an alert has $labels.NAME and $value in {{ }}, and not query `up`",
    ),
    (
        "groups: [{name: a, rules: [{alert: A, expr: up, annotations: {b: 'x {{ $value'}}]}]",
        'A text of an alert has "{{" without "}}"',
    ),
    (f"groups: [{{name: a, rules: [{', '.join([RULE] * (MOST_RULES + 1))}]}}]", "at most 1000 rules, and this one has"),
    ("groups: [{name: a, rules: [", "rules.yml:2:1: not well-formed YAML"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_a_broken_file_is_refused_where_it_is_broken(text: str, message: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_rules(text, "rules.yml")
    assert message in str(refused.value)


def test_every_state_of_an_alert_names_its_exits() -> None:
    for state in AlertState:
        exits = {str(after) if after else "gone" for (before, _), after in TRANSITIONS.items() if before is state}
        assert exits <= set(AlertState) | {"gone"} and exits


def test_groups_have_intervals_limits_and_labels() -> None:
    text = """
    groups:
      - {name: slow, interval: 5m, labels: {team: ops}, rules: [{alert: A, expr: x > 0}, {record: "x:s", expr: sum(x)}]}
      - {name: few, limit: 1, rules: [{alert: B, expr: x}, {alert: C, expr: "x:s > 1"}]}
    """
    evaluator, source = RulesEvaluator(parse_rules(text)), MemorySeries(3600.0)
    seen = []
    for at in (0.0, 60.0, 240.0, 300.0, 660.0):
        source.add({labels_of({"__name__": "x", "n": str(n)}): float(n) for n in range(1 + int(at > 0) * 2)}, at)
        evaluator.evaluate(source, at)
        seen.append(sorted(alert.labels for _, alert in evaluator.alerts()))
    assert [[dict(each)["alertname"] for each in at] for at in seen] == [
        ["B"], ["B"], ["B"], ["A", "A", "B", "C"], ["A", "A", "B", "C"],
    ]  # fmt: skip
    assert dict(seen[3][0]) == {"alertname": "A", "n": "1", "team": "ops"}
    assert [rule.error for rule in evaluator.groups[1].rules] == ["The rule B raises more than 1 alerts.", ""]


def test_a_rule_that_fails_says_why_and_the_others_go_on() -> None:
    text = "groups: [{name: g, rules: [{alert: A, expr: a > on () b}, {alert: B, expr: b}, {alert: M, expr: b}]}]"
    evaluator, source = RulesEvaluator(parse_rules(text)), MemorySeries(600.0)
    many = {labels_of({"__name__": name, "n": str(n)}): 1.0 for name in "ab" for n in range(MOST_ALERTS)}
    source.add(many, 0.0)
    evaluator.evaluate(source, 0.0)
    assert [rule.error for rule in evaluator.groups[0].rules] == [
        "Several series on the right of > have the same labels {}.", "", "",
    ]  # fmt: skip
    assert sum(1 for _ in evaluator.alerts()) == 2 * MOST_ALERTS


def test_memory_of_series_is_bounded_and_ends_what_is_not_read_again() -> None:
    kept = MemorySeries(300.0, most=100)
    one, other = (labels_of({"__name__": name}) for name in ("one", "other"))
    for step in range(200):
        kept.add({one: float(step)} | ({other: 1.0} if step < 190 else {}), step * 15.0)
        assert len(kept) <= 100
    found = next(iter(kept.select((), 0.0, 199 * 15.0)))
    assert found.labels == one and len(found.points) == 21
    kept.add({one: 7.0}, 0.0)
    (again,) = [each for each in kept.select((), 0.0, 1e9) if each.labels == one]
    assert again == found, "a clock that goes back adds nothing"
    (ended,) = [each for each in kept.select((), 0.0, 1e9) if each.labels == other]
    assert ended.points[-1] == (190 * 15.0, None)
