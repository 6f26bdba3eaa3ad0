"""Corral's evaluator and a real Prometheus answer the same expressions over the same made-up series."""

from __future__ import annotations

import random
from collections.abc import Iterator
from math import isclose, isnan
from typing import Final

import pytest

from corral.kernel.errors import InvalidInput
from corral.model.alerts.matchers import Matcher
from corral.monitor.rules.evaluation import evaluate
from corral.monitor.rules.parser import parse_expression
from corral.monitor.rules.series import Labels, Series, labels_of, selected
from tests.monitor.rules.prometheus_queries import Points, Prometheus
from tests.testbeds import prometheus

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(prometheus.missing()), reason=prometheus.missing()),
]
BEGIN: Final = 1_700_000_000.0
TIMES: Final = (BEGIN + 3600.0, BEGIN + 4217.5, BEGIN + 7215.0)
"""In the middle of the series, between two points, and after some have ended."""

EXPRESSIONS: Final = """
up
up{job="b"}
up{job!="b",node=~"n[12]"}
up{node!~"n.*"}
{__name__=~"gauge|up",node="n1"}
missing
up offset 5m
up offset -1m
-gauge
gauge + 1
2 - gauge
gauge ^ 2 - -gauge ^ 2
gauge % 7
gauge / 0
0 / (gauge * 0)
1 + 2 * 3 ^ 2 ^ 0.5 - 4 % 3
7 > bool 3
0x1F + 1e2 + .5 + 5.
Inf - Inf
gauge > 40
40 < gauge
gauge > bool 40
gauge == gauge
gauge * on (node, job) up
gauge * on (node) up
gauge / ignoring (job) up
gauge > other
gauge > bool other
other != on (node, job) gauge
sum(gauge)
sum by (node) (gauge)
sum(gauge) by (job, missing)
avg without (node) (gauge)
min by (job) (gauge)
max by (job) (gauge)
count by (job) (gauge > 30)
count(missing)
sum by (job) (rate(counter_total[5m]))
rate(counter_total[5m])
rate(counter_total[5m] offset 7m)
irate(counter_total[5m])
increase(counter_total[10m])
increase(counter_total[1h])
rate(counter_total[20s])
delta(gauge[10m])
idelta(gauge[10m])
changes(steps[1h])
resets(counter_total[1h])
avg_over_time(gauge[10m])
max_over_time(gauge[10m])
min_over_time(gauge[10m])
sum_over_time(gauge[10m])
count_over_time(gauge[10m])
last_over_time(gauge[10m])
count_over_time((steps == 0)[30m:1m])
count_over_time((count_over_time((steps == 0)[10m:1m]) > 2)[1h:10m])
max_over_time(rate(counter_total[2m])[20m:3m])
rate(counter_total[10m:2m])
avg_over_time(gauge[10m:1m] offset 3m)
histogram_quantile(0.95, latency_bucket)
histogram_quantile(0.95, rate(latency_bucket[5m]))
histogram_quantile(0.5, sum by (le) (rate(latency_bucket[5m])))
histogram_quantile(0, sum by (le, node) (latency_bucket))
histogram_quantile(1, sum by (le, node) (latency_bucket))
histogram_quantile(1.5, sum by (le) (latency_bucket))
histogram_quantile(-1, sum by (le) (latency_bucket))
histogram_quantile(0.5, sum by (node) (latency_bucket))
up and gauge
up and on (node) gauge > 30
up unless on (node, job) gauge > 30
gauge > 60 or other > 60
gauge or on (node) other
up == 0 or gauge > 90 and on (node, job) other
absent(missing)
absent(missing{job="a",node=~"n.*"})
absent(up)
absent(sum(missing))
vector(3)
scalar(sum(gauge))
scalar(gauge)
vector(time() - 1700000000)
abs(-gauge)
ceil(gauge / 7)
floor(gauge / 7)
sum(gauge) / count(gauge) > bool 10
100 - 100 * avg by (node) (irate(counter_total[5m]))
100 * gauge / on (node, job) other <= 50
sum(gauge) + sum(missing)
ended
count_over_time(ended[2h])
gauge * on (job) other
-(gauge)
+up
{job="a"} > 3
rate({node="n1"}[5m])
sum(rate(gauge))
1 > 2
gauge and 1
""".strip().splitlines()


class Made:
    """Made-up series as a source."""

    def __init__(self, points: Points) -> None:
        self._points = points

    def select(self, matchers: tuple[Matcher, ...], begin: float, end: float) -> list[Series]:
        return [
            Series(labels, tuple((at, value) for at, value in points if begin <= at <= end))
            for labels, points in self._points.items()
            if selected(labels, matchers)
        ]


def _made_up() -> Points:
    draw, found = random.Random(19), dict[Labels, list[tuple[float, float]]]()
    times = [BEGIN + 15.0 * step for step in range(500)]
    for node, job in (("n1", "a"), ("n2", "a"), ("n1", "b"), ("n3", "b"), ("x", "c")):
        labels = {"node": node, "job": job}
        found[labels_of({"__name__": "up", **labels})] = [(at, float(draw.random() < 0.8)) for at in times]
        found[labels_of({"__name__": "gauge", **labels})] = [
            (at, round(100 * draw.random(), 3)) for at in times if draw.random() < 0.7
        ]
        found[labels_of({"__name__": "other", **labels})] = [(at, round(100 * draw.random(), 3)) for at in times]
        found[labels_of({"__name__": "steps", **labels})] = [(at, float(int(at / 60) * 7 % 5 // 2)) for at in times]
        count, points = 0.0, []
        for at in times:
            count = 0.0 if draw.random() < 0.02 else count + draw.randrange(9)
            points.append((at + draw.random(), count))
        found[labels_of({"__name__": "counter_total", **labels})] = [(round(at, 3), value) for at, value in points]
        counts = {"0.1": 0.0, "0.5": 0.0, "2.5": 0.0, "+Inf": 0.0}
        for at in times:
            seen = draw.random() * 4
            for bound in counts:
                counts[bound] += seen <= float(bound)
                found.setdefault(labels_of({"__name__": "latency_bucket", "le": bound, **labels}), []).append(
                    (at, counts[bound])
                )
    found[labels_of({"__name__": "ended", "node": "n9"})] = [(at, 1.0) for at in times[:220]]
    return found


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Prometheus, Made]]:
    """A Prometheus and a source of the same series."""
    points = _made_up()
    started = Prometheus(tmp_path_factory.mktemp("prometheus"), points)
    yield started, Made(points)
    started.end()


def _ours(expression: str, source: Made, at: float) -> dict[Labels, float] | str:
    try:
        return evaluate(parse_expression(expression), source, at)
    except InvalidInput as error:
        return error.message


def _compare(expression: str, both: tuple[Prometheus, Made], at: float) -> bool:
    """Check that both give the same, or both refuse; whether they gave anything."""
    theirs, ours = both[0].ask(expression, at), _ours(expression, both[1], at)
    if isinstance(theirs, str) or isinstance(ours, str):
        assert isinstance(theirs, str) and isinstance(ours, str), (expression, at, theirs, ours)
        return False
    assert theirs.keys() == ours.keys(), (expression, at)
    for labels, value in theirs.items():
        same = isclose(value, ours[labels], rel_tol=1e-9, abs_tol=1e-9) or (isnan(value) and isnan(ours[labels]))
        assert same, (expression, at, labels, value, ours[labels])
    return bool(theirs)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_gives_the_same(expression: str, both: tuple[Prometheus, Made]) -> None:
    for at in TIMES:
        _compare(expression, both, at)


def test_drawn_expressions_give_the_same(both: tuple[Prometheus, Made]) -> None:
    draw = random.Random(1910)
    found = sum(_compare(_vector(draw, 3), both, draw.choice(TIMES)) for _ in range(400))
    assert found > 150


def _vector(draw: random.Random, depth: int) -> str:
    if depth == 0:
        return draw.choice(("up", "gauge", "other", 'gauge{job="a"}', 'other{node=~"n[12]"}', "steps offset 2m"))
    kind = draw.randrange(8)
    if kind == 0:
        grouping = draw.choice(("", "by (node)", "by (job)", "without (node)", "by (node, job)"))
        return f"{draw.choice(('sum', 'avg', 'min', 'max', 'count'))} {grouping} ({_vector(draw, depth - 1)})"
    if kind == 1:
        function = draw.choice(("rate", "irate", "increase", "resets", "changes", "count_over_time"))
        return f"{function}(counter_total[{draw.choice(('1m', '5m', '17m'))}])"
    if kind == 2:
        function = draw.choice(("avg_over_time", "max_over_time", "min_over_time", "last_over_time", "delta"))
        return f"{function}(({_vector(draw, depth - 1)})[{draw.choice(('5m:1m', '13m:4m', '10m:90s'))}])"
    if kind == 3:
        sign = draw.choice(("+", "-", "*", "/", "%", ">", "<=", "== bool", "!= bool", ">= bool"))
        return f"({_vector(draw, depth - 1)}) {sign} {draw.choice((0, 1, 2.5, 30))}"
    if kind == 4:
        return f"-({_vector(draw, depth - 1)})"
    matching = draw.choice(("", "on (node, job)", "ignoring (le)", "on (node)"))
    sign = draw.choice(("+", "-", "/", ">", "<", "and", "or", "unless"))
    return f"({_vector(draw, depth - 1)}) {sign} {matching} ({_vector(draw, depth - 1)})"
