"""Metrics are bounded in number, and lose nothing by it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from corral.model.metrics import counts as counted
from corral.model.metrics.counts import OTHER, Counts, gauges
from corral.model.metrics.families import Metric
from corral.model.metrics.samples import Samples, totals
from tests.model.metric_mistakes import mistakes

QUEUES = st.lists(st.tuples(st.sampled_from([f"q{at}" for at in range(3 * 7)]), st.floats(0, 1e6)), max_size=60)


@given(QUEUES)
def test_series_beyond_the_bound_are_counted_together(events: list[tuple[str, float]]) -> None:
    made, most = Counts(), counted.MOST_SERIES
    counted.MOST_SERIES = 7  # type: ignore[misc]
    try:
        for queue, seconds in events:
            made.add(Metric.PLACED, queue)
            made.observe(Metric.WAITS, seconds, queue)
        kept = gauges(Metric.JOBS, (((queue, "running"), 1.0) for queue, _ in events))
    finally:
        counted.MOST_SERIES = most  # type: ignore[misc]
    samples = made.samples()
    assert list(mistakes(samples)) == []
    for series in (samples.values, samples.distributions, kept):
        assert len(series) <= 8
        assert len(series) < 8 or any(OTHER in each.labels for each in series)
    assert sum(each.value for each in samples.values) == len(events) == sum(each.value for each in kept)
    assert sum(sum(each.counts) for each in samples.distributions) == len(events)


@given(QUEUES)
def test_totals_are_the_sums_over_all_queues(events: list[tuple[str, float]]) -> None:
    made = Counts()
    for queue, seconds in events:
        made.add(Metric.ENDED, queue, "failed" if seconds > 1 else "succeeded")
        made.observe(Metric.WAITS, seconds, queue)
    told = totals(made.samples() + Samples(tuple(gauges(Metric.QUEUE_USED, [(("q", "devices"), 3.0)]))))
    assert all(each.labels in ((), ("failed",), ("succeeded",)) for each in told.series())
    assert sum(each.value for each in told.values) == len(events)
    assert [sum(each.counts) for each in told.distributions] == ([len(events)] if events else [])
    assert not [each for each in told.series() if each.family == Metric.QUEUE_USED]
