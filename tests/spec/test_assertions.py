"""Assertions of policy tests and goals: parsed within bounds, refused with a column, evaluated as arithmetic says."""

from __future__ import annotations

from math import inf, isnan, nan
from statistics import quantiles

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from corral.spec.assertions.evaluation import check_known, evaluate, shown, statistic_of
from corral.spec.assertions.parser import DEEPEST, LONGEST, AssertionProblem, parse_assertion
from corral.spec.assertions.syntax import METRICS, Metric, Number, Operation, Size, Unit
from tests.examples import examples

NAMES = st.from_regex(r"[a-z][a-z0-9._/-]{0,20}[a-z0-9]", fullmatch=True)


@st.composite
def metrics(draw: st.DrawFn, unit: Unit) -> str:
    name = draw(st.sampled_from([name for name, kind in METRICS.items() if kind.unit is unit]))
    statistic = draw(st.sampled_from((".p50", ".p99.9", ".mean", ".max", ".sum")))
    filters = draw(st.lists(st.sampled_from(("queue", "user", "size")), unique=True))
    value = {"queue": draw(NAMES), "user": f'"{draw(NAMES)} x"', "size": draw(st.sampled_from(("8", "2..8", "8..")))}
    inside = ", ".join(f"{each}={value[each]}" for each in filters)
    return name + (statistic if METRICS[name].by_job else "") + (f"({inside})" if inside else "")


def terms(unit: Unit, side: str) -> st.SearchStrategy[str]:
    number = st.integers(0, 10**6).map(str) | st.sampled_from(("0.25", "110%"))
    leaf = st.integers(0, 10**6).map("{}s".format) if unit is Unit.DURATION else number
    leaf |= metrics(unit) | (st.just("base") if side == "right" else st.nothing())
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from("+-"), inner).map(lambda each: f"({each[0]} {each[1]} {each[2]})"),
            st.tuples(inner, st.sampled_from("*/"), number).map(lambda each: f"{each[0]} {each[1]} {each[2]}"),
        ),
        max_leaves=4,
    )


ASSERTIONS = st.sampled_from(Unit).flatmap(
    lambda unit: st.tuples(terms(unit, "left"), st.sampled_from(("<=", "<", ">=", ">", "==")), terms(unit, "right"))
)


@given(ASSERTIONS)
@hypothesis_settings(max_examples=examples(200))
def test_what_is_written_out_is_read_as_the_same(sides: tuple[str, str, str]) -> None:
    text = " ".join(sides)
    if len(text) > LONGEST:
        return
    parsed = parse_assertion(text)
    assert parse_assertion(str(parsed)) == parsed
    outcome = evaluate(parsed, lambda _: 2.0, lambda _: 1.0)
    assert outcome == evaluate(parsed, lambda _: 2.0, lambda _: 1.0) or isnan(outcome.left) or isnan(outcome.right)


@given(st.text(max_size=60) | st.text('waitp95.()=<>,*+-/1h base"queue', max_size=60))
@hypothesis_settings(max_examples=examples(500))
def test_any_text_is_parsed_or_refused_with_a_column_in_it(text: str) -> None:
    try:
        parse_assertion(text)
    except AssertionProblem as problem:
        assert 1 <= problem.column <= len(text) + 1
        assert f"Column {problem.column} of the assertion" in problem.message


@given(st.lists(st.floats(0, 1e9), min_size=1), st.integers(1, 100))
@hypothesis_settings(max_examples=examples(200))
def test_percentiles_are_of_the_nearest_rank(values: list[float], percent: int) -> None:
    values.sort()
    found = statistic_of(f"p{percent}", values)
    assert sum(each <= found for each in values) * 100 >= percent * len(values)
    assert sum(each < found for each in values) * 100 < percent * len(values)
    assert values[0] <= statistic_of("mean", values) * 1.000001 and statistic_of("max", values) == values[-1]


def test_an_assertion_has_its_parts() -> None:
    parsed = parse_assertion("wait.p95(queue=research, size=2..8) <= 1.1 * base")
    assert parsed.left == Metric("wait", "p95", "research", "", Size(2, 8))
    assert isinstance(parsed.right, Operation) and parsed.right.left == Number(1.1)
    assert parsed.needs_base and parsed.unit is Unit.DURATION
    assert parse_assertion("preemptions == 0").left == Metric("preemptions", "sum")


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("", 1, "the end is no metric"),
        ("waits.p95 <= 1h", 1, 'no metric waits; did you mean "wait"?'),
        ("wait.p9x <= 1h", 6, 'no statistic p9x; did you mean "p9'),
        ("wait.p195 <= 1h", 6, "no statistic p195; did you mean"),
        ("wait <= 1h", 1, "write wait.p95, wait.mean or wait.max"),
        ("wait.p95(queu=a) <= 1h", 10, 'no filter queu; did you mean "queue"?'),
        ("wait.p95(queue=) <= 1h", 16, "queue needs a value, such as queue=research"),
        ("wait.p95(queue=a, queue=b) <= 1h", 19, "queue is named twice"),
        ("wait.p95(size=8..2) <= 1h", 15, "no job has from 8 to 2 devices"),
        ("wait.p95(size=big) <= 1h", 15, "a size is a number of devices"),
        ("wait.p95(queue=a <= 1h", 18, "expected ) instead of <= 1h"),
        ("wait.p95 =< 1h", 10, 'no comparison =<; did you mean "<="?'),
        ("wait.p95 = 1h", 10, 'did you mean "=="?'),
        ("wait.p95", 9, "a comparison is missing; expected one of <=, <, >=, >, =="),
        ("wait.p95 <= 1h <= 2h", 16, "<= 2h is too much"),
        ("wait.p95 <= 5", 13, "a duration and a number cannot be compared"),
        ("utilisation >= 1h", 16, "give a number such as 0.8 or 80%"),
        ("utilisation.mean >= 0.8", 13, "takes no statistic"),
        ("wait.p95 <= 1hour", 13, "1hour is no number or duration"),
        ("base <= 1h", 1, "on the right side only"),
        ("wait.p95 <= 1h + wait.p95 * run.p95", 27, "two durations cannot be multiplied"),
        ("(" * (DEEPEST + 1), DEEPEST + 1, f"at most {DEEPEST} parentheses"),
        ("1" + " + 1" * 60 + " <= 2", 203, "at most 50 operations"),
        ("x" * 501, 501, "at most 500 characters"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_column_and_what_was_meant(text: str, column: int, reason: str) -> None:
    with pytest.raises(AssertionProblem) as refused:
        parse_assertion(text)
    assert refused.value.column == column and reason in refused.value.message
    assert refused.value.message.endswith((".", "?")) and "\n" not in refused.value.message


def test_unknown_queues_and_users_are_refused_where_they_stand() -> None:
    asked = parse_assertion("wait.p95(queue=reserch) <= wait.p95(user=ann)")
    with pytest.raises(AssertionProblem, match=r'Column 16 .* the trace has no queue reserch; did you mean "research"'):
        check_known(asked, queues=("research", "vision"), users=("ann",), where="the trace")
    with pytest.raises(AssertionProblem, match=r"Column 42 .* has no user ann"):
        check_known(asked, queues=("reserch",), users=("bob",), where="the trace")
    with pytest.raises(AssertionProblem, match="cannot tell wait, only utilisation"):
        check_known(asked, queues=(), metrics=("utilisation",), where="a question")
    with pytest.raises(AssertionProblem, match="cannot tell wait by user, only by queue"):
        check_known(asked, queues=("reserch",), filters=("queue",), where="a question")


def test_sides_are_compared_and_base_is_the_left_side_under_the_base() -> None:
    held = evaluate(parse_assertion("wait.p95 + 10s <= 110% * base"), lambda _: 100.0, lambda _: 90.0)
    assert (held.left, held.base, held.held) == (110.0, 100.0, True) and held.right == pytest.approx(110.0)
    assert not evaluate(parse_assertion("wait.p95 <= 1h"), lambda _: inf).held
    assert not evaluate(parse_assertion("wait.p95 <= 1h"), lambda _: nan).held
    assert evaluate(parse_assertion("wait.p95 / run.p95 > 10"), lambda each: float(each.name == "wait")).left == inf
    with pytest.raises(AssertionProblem, match=r"Column 13 .* there is no base to compare with"):
        evaluate(parse_assertion("wait.p95 <= base"), lambda _: 1.0)


def test_values_are_shown_in_their_unit() -> None:
    assert [shown(each, Unit.DURATION) for each in (5400.0, inf, nan, -60.0)] == ["1h30m", "never", "undefined", "-1m"]
    assert [shown(each, Unit.NUMBER) for each in (0.81234, 123456.0)] == ["0.8123", "123456"]


def test_percentiles_agree_with_another_implementation() -> None:
    values = [float(each) for each in range(1, 101)]
    assert statistic_of("p7", values) == 7 and statistic_of("p99.5", values) == 100
    assert statistic_of("median", values) == pytest.approx(quantiles(values, n=2)[0], abs=1)
    assert statistic_of("sum", ()) == 0 and isnan(statistic_of("p50", ()))
