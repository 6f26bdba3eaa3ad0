"""Expressions are parsed with Prometheus' precedences; what is not supported is refused by name and position."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.model.alerts.patterns import Pattern
from corral.monitor.rules.parser import DEEPEST, parse_expression
from corral.monitor.rules.syntax import longest_past
from corral.monitor.rules.tokens import LONGEST, ExpressionProblem

SAME = [
    ("a + b * c", "a + (b * c)"),
    ("a - b - c", "(a - b) - c"),
    ("2 ^ 3 ^ 2", "2 ^ (3 ^ 2)"),
    ("-a ^ 2", "-(a ^ 2)"),
    ("-a * b", "(-a) * b"),
    ("a or b and c unless d", "a or ((b and c) unless d)"),
    ("a > b + 1 == c", "(a > (b + 1)) == c"),
    ("sum(a) by (x)", "SUM BY (x,) (a)"),
    ("a{x='1',}", 'a {x = "1"}'),
    ("a # a remark\n + b", "a+b"),
    ("rate(a[90s] offset 1h)", "rate(a[1m30s] offset 60m)"),
    (r'a{x=~"b\\.c"}', r"a{x=~`b\.c`}"),
]
REFUSED = [
    ("", "column 1 of the expression: an expression is missing before the end."),
    ("a +", "column 4 of the expression: an expression is missing before the end."),
    ("(a", 'column 3 of the expression: a parenthesis needs ")" here, and has the end.'),
    ("a b", 'column 3 of the expression: "b" is too much.'),
    ("up == 1 1", 'column 9 of the expression: "1" is too much.'),
    ("topk(3, a)", "column 1 of the expression: topk is not supported."),
    ("quantile by (x) (0.5, a)", "column 1 of the expression: quantile is not supported."),
    ("label_replace(a)", "column 1 of the expression: label_replace is not supported."),
    ("rates(a[5m])", 'column 1 of the expression: there is no function rates; did you mean "rate"?'),
    ("rate(a)", "column 1 of the expression: rate takes a range vector, and has an instant vector."),
    ("rate()", "column 1 of the expression: rate takes 1 argument, and has 0."),
    ("sum(1)", "column 1 of the expression: sum takes an instant vector, and has a number."),
    ("a[5m]", "column 1 of the expression: a range needs a function, such as rate(…[5m])."),
    ("a + b[5m]", "column 3 of the expression: + joins no ranges."),
    ("a and 1", "column 3 of the expression: and joins series only, no numbers."),
    ("1 > 2", "column 3 of the expression: a comparison of two numbers is written > bool."),
    ("a + bool b", "column 3 of the expression: bool stands after a comparison only, and not after +."),
    ("a * on (x) group_left (y) b", "column 12 of the expression: group_left is not supported."),
    ("a @ 100", "column 3 of the expression: @ is not supported."),
    ("rate(a[1h:])", "column 11 of the expression: a subquery needs a step, such as [1h:1m]."),
    ("rate(a[300d:1s])", "subqueries evaluate at most 2000 times; choose a longer step."),
    ("rate(a[5])", "column 8 of the expression: a range needs a duration: a duration is written as 90s,"),
    ("rate(a[5m1h])", "a duration is written as 90s, 5m or 1h30m, the longest unit first."),
    ("rate(a[2y])", "column 8 of the expression: a range is longer than nothing and at most a year."),
    ("5m + a", "a duration stands only in a range or after offset; write seconds as a number."),
    ('"a"', "column 1 of the expression: a text is no value; only matchers of labels have one."),
    ("{}", "column 1 of the expression: a selector needs a matcher that does not match the empty text."),
    ('{x=~".*"}', "column 1 of the expression: a selector needs a matcher that does not match the empty text."),
    ('a{__name__="b"}', "column 3 of the expression: the name of the metric is given twice."),
    ("a{x=1}", "column 5 of the expression: the matcher of x needs a text in quotes."),
    ('a{x=~"(b+)+"}', "column 6 of the expression: the pattern (b+)+ repeats a group, which is not supported."),
    ('a{x=~"b{9}"}', "the pattern b{9} has '{' where it is not supported."),
    ('a{x=~".*.*.*.*"}', "has more than 3 of * and +."),
    (r'a{x="\q"}', r"column 5 of the expression: the escape \q is not supported; write \\q for a backslash."),
    ("a ? b", "column 3 of the expression: '?' cannot be read here."),
    ("a\n+ $", "line 2, column 3 of the expression: '$' cannot be read here."),
    ("(" * 40 + "a" + ")" * 40, f"at most {DEEPEST} expressions may stand in each other."),
    ("a" * (LONGEST + 1), f"an expression has at most {LONGEST} characters."),
    ("a" + "+a" * 600, "an expression has at most 1000 words and signs."),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_ways_to_write_the_same(one: str, other: str) -> None:
    assert parse_expression(one) == parse_expression(other)


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_a_refusal_is_one_sentence_with_its_position(text: str, message: str) -> None:
    with pytest.raises(ExpressionProblem) as refused:
        parse_expression(text)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


PARTS = st.sampled_from(
    [
        *("a", "up", "rate", "sum", "by", "without", "on", "ignoring", "bool", "and", "or", "unless", "offset"),
        *("(", ")", "{", "}", "[", "]", ",", ":", "+", "-", "*", "/", "%", "^", "==", "!=", "<", ">=", "=~", "!", "@"),
        *("#", "5m", "1h", "1", "0x2", ".5", "1e3", '"x"', "`y`", "inf", "nan", "[5m]", "[1h:5m]", "(x)", "\n"),
    ]
)


@given(st.one_of(st.text(max_size=80), st.lists(PARTS, max_size=40).map(" ".join)))
def test_any_text_is_parsed_or_refused_in_one_sentence(text: str) -> None:
    try:
        found = parse_expression(text)
    except ExpressionProblem as problem:
        assert 1 <= problem.column <= len(text) + 1 and "\n" not in problem.message
    else:
        assert longest_past(found, 300.0) >= 0


@given(st.text(alphabet="ab.*+?()[]^$|\\d-{}", max_size=30), st.text(alphabet="ab", max_size=500))
def test_any_pattern_matches_in_bounded_time(pattern: str, value: str) -> None:
    try:
        compiled = Pattern(pattern)
    except ValueError:
        return
    compiled.matches(value)


def test_the_past_that_an_expression_reads() -> None:
    text = "rate(a[5m] offset 1h) + max_over_time((b > 0)[1h:5m] offset 10m) > c"
    assert longest_past(parse_expression(text), 300.0) == 3600 + 600 + 300
