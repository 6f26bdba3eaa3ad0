"""Last figures beside the median of their SKU and the data sheets of their devices."""

from __future__ import annotations

import pytest

from corral.benchmarks.results.figures import Figure, figures_of, results_of, worst_of_ranks
from corral.benchmarks.results.lines import NodeResult
from corral.benchmarks.rules.document import read_rules
from corral.benchmarks.rules.expected import read_expected
from corral.benchmarks.rules.standing import Standing, standings
from corral.benchmarks.suites.named import expected_text, rules_text
from corral.kernel.errors import InvalidInput

A100 = "2x NVIDIA A100-SXM4-80GB"


def judge(figures: list[Figure]) -> dict[tuple[str, str], Standing]:
    found = standings(figures, read_rules(rules_text("")), read_expected(expected_text("")))
    return {(each.figure.node, each.figure.metric): each for each in found}


def line(node: str, sku: str = "small", at: float = 1.0, **metrics: float) -> list[Figure]:
    named = {name.replace("__", "/") + (":0" if "__" in name else ""): value for name, value in metrics.items()}
    return [each._replace(run=f"run{at:g}", at=at) for each in figures_of(node, sku, named)]


def test_a_node_below_the_median_of_its_sku_is_found_and_others_are_not() -> None:
    found = judge(
        [
            *line("a", cpu__triad_bw=100, launch__spawn_time=10),
            *line("b", cpu__triad_bw=98, launch__spawn_time=11),
            *line("c", cpu__triad_bw=70, launch__spawn_time=20),
            *line("other", sku="large", cpu__triad_bw=10),
        ]
    )
    slow = found["c", "cpu/triad_bw"]
    assert (slow.baseline, slow.alike) == (98, 2) and slow.change == pytest.approx(-28 / 98)
    assert slow.findings == ("cpu/triad_bw:0 is 70, -28.6% of 98",)
    assert found["c", "launch/spawn_time"].findings == ("launch/spawn_time:0 is 20, +81.8% of 11",)
    assert found["a", "cpu/triad_bw"].findings == found["b", "cpu/triad_bw"].findings == ()
    alone = found["other", "cpu/triad_bw"]
    assert (alone.baseline, alone.alike, alone.findings) == (None, 0, ()), "its SKU has no other node"
    assert [each.figure.node for each in list(found.values())[:2]] == ["c", "c"], "findings come first"


def test_the_last_value_of_a_node_counts() -> None:
    early = [*line("a", cpu__triad_bw=50), *line("b", cpu__triad_bw=100), *line("c", cpu__triad_bw=100)]
    found = judge([*line("a", at=2.0, cpu__triad_bw=99), *early])
    assert found["a", "cpu/triad_bw"].figure.value == 99
    assert all(not each.findings for each in found.values())


def test_the_worst_of_a_nodes_devices_counts_and_is_compared_with_its_data_sheet() -> None:
    metrics = {"mem-bw/d2d_bw:0": 1000.0, "mem-bw/d2d_bw:1": 300.0, "mem-bw/return_code": 0.0}
    found = judge(figures_of("a", A100, metrics))
    worst = found["a", "mem-bw/d2d_bw"]
    assert (worst.figure.rank, worst.figure.value, worst.baseline) == (1, 300.0, None)
    assert worst.expected is not None and worst.expected.least > 300
    assert len(worst.findings) == 1 and worst.findings[0].startswith("mem-bw/d2d_bw:1 is 300, 29% of the 1020")
    assert found["a", "mem-bw/return_code"].findings == ()
    assert judge(figures_of("b", A100, {"mem-bw/return_code": 1.0}))["b", "mem-bw/return_code"].findings


def test_the_slowest_time_is_the_worst_and_figures_become_lines_again() -> None:
    metrics = {"launch/spawn_time:0": 2.0, "launch/spawn_time:1": 3.0, "tcp-bw/pair_bw:0": 1.0}
    figures = figures_of("a", "small", metrics)
    assert {each.metric: each.rank for each in worst_of_ranks(figures)} == {"launch/spawn_time": 1, "tcp-bw/pair_bw": 0}
    assert results_of(figures) == [NodeResult("a", metrics, "small")]


@pytest.mark.parametrize("name", ["plain", "a/b c", "a/" + "b" * 400, "", "/x", "a/b:x", "a/b\n"])
def test_a_name_that_is_no_metric_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="does not name a metric"):
        figures_of("a", "", {name: 1.0})


def test_a_value_that_is_not_finite_is_refused() -> None:
    with pytest.raises(InvalidInput, match="is not finite"):
        figures_of("a", "", {"a/b_bw": float("inf")})
