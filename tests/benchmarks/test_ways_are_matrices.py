"""Single ways between nodes and devices: kept as metrics of a node, read back as matrices, and compared."""

from __future__ import annotations

import pytest

from corral.benchmarks.results.compare import compare
from corral.benchmarks.results.figures import figures_of
from corral.benchmarks.results.lines import NodeResult
from corral.benchmarks.results.matrices import MOST_NODES, Matrix, is_way, matrices, paired, to_nodes
from corral.benchmarks.rules.diagnosis import baseline_of, diagnose
from corral.benchmarks.rules.document import read_rules
from corral.benchmarks.suites.named import rules_text
from corral.cli.benchmark_ways import show_compared_ways, show_ways

NODES = {0: "local/n0", 1: "k8s/a+b.c", 2: "local/n2"}
NAMED = {0: "local/n0", 1: "local/n_1", 2: "local/n2"}
PAIRS = {"tcp-bw:all/pair_0_1_bw:0": 5.0, "tcp-bw:all/pair_0_2_bw:0": 1.0, "tcp-bw:all/pair_1_2_lat:0": 9.0}


def results(pairs: dict[str, float], nodes: dict[int, str]) -> list[NodeResult]:
    return [NodeResult(node, metrics) for node, metrics in to_nodes(pairs, nodes, "tcp-bw:all").items()]


def test_a_way_between_two_nodes_belongs_to_both() -> None:
    assert to_nodes(PAIRS, NAMED, "tcp-bw:all") == {
        "local/n0": {"tcp-bw:all/to_local+n_1_bw:0": 5.0, "tcp-bw:all/to_local+n2_bw:0": 1.0},
        "local/n_1": {"tcp-bw:all/to_local+n0_bw:0": 5.0, "tcp-bw:all/to_local+n2_lat:0": 9.0},
        "local/n2": {"tcp-bw:all/to_local+n0_bw:0": 1.0, "tcp-bw:all/to_local+n_1_lat:0": 9.0},
    }


def test_ways_to_a_node_without_a_place_or_with_a_name_that_no_metric_holds_are_left_out() -> None:
    assert set(to_nodes(PAIRS, {0: "local/n0", 2: "local/n2"}, "tcp-bw:all")) == {"local/n0", "local/n2"}
    assert to_nodes(PAIRS, NODES, "tcp-bw:all")["local/n0"] == {"tcp-bw:all/to_local+n2_bw:0": 1.0}
    long = {0: "local/n0", 1: "local/" + "n" * 200}
    assert to_nodes(PAIRS, long, "tcp-bw:all") == {"local/" + "n" * 200: {"tcp-bw:all/to_local+n0_bw:0": 5.0}}


def test_of_many_nodes_no_single_ways_are_kept() -> None:
    most = {at: f"local/n{at}" for at in range(MOST_NODES)}
    assert len(to_nodes(PAIRS, most, "tcp-bw:all")) == 3
    assert to_nodes(PAIRS, most | {MOST_NODES: "local/more"}, "tcp-bw:all") == {}


def test_ways_are_kept_as_figures_and_come_back_as_matrices() -> None:
    made = results(PAIRS, NAMED)
    for each in made:
        assert {figure.name for figure in figures_of(each.node, "", each.metrics)} == set(each.metrics)
        assert all(is_way(metric) for metric in each.metrics)
    rate, latency = matrices(made)
    assert (rate.title, rate.names) == ("tcp-bw:all between nodes, GB/s", ("local/n0", "local/n2", "local/n_1"))
    assert rate.values == ((None, 1.0, 5.0), (1.0, None, None), (5.0, None, None))
    assert latency.names == ("local/n2", "local/n_1") and latency.values == ((None, 9.0), (9.0, None))


def test_ways_between_devices_keep_their_direction_and_the_order_of_their_numbers() -> None:
    metrics = {f"peer-bw/peer_{of}_{to}_bw:0": 10.0 * of + to for of in (2, 10) for to in (2, 10) if of != to}
    (found,) = matrices([NodeResult("local/n0", metrics | {"peer-bw/min_peer_bw:0": 1.0})])
    assert (found.title, found.names) == ("peer-bw between the devices of local/n0, GB/s", ("2", "10"))
    assert found.values == ((None, 30.0), (102.0, None))


def in_gangs(size: int, nodes: int, first: int = 0) -> list[NodeResult]:
    """Results of gangs of so many nodes; each way has the number of its gang's first node, and one, as its value."""
    found = []
    for begin in range(first, nodes, size):
        gang = {at - begin: f"local/n{at:05}" for at in range(begin, min(begin + size, nodes))}
        pairs = {f"tcp-bw/pair_{one}_{two}_bw:0": begin + 1.0 for two in gang for one in range(two)}
        found += [NodeResult(node, metrics) for node, metrics in to_nodes(pairs, gang, "tcp-bw").items()]
    return found


def cells(made: list[Matrix]) -> int:
    return sum(len(row) for each in made for row in each.values)


def test_each_gang_of_a_run_has_a_matrix_of_its_own() -> None:
    made = matrices(in_gangs(2, 4000))
    assert (len(made), cells(made)) == (2000, 8000)
    assert made[1].names == ("local/n00002", "local/n00003") and made[1].values == ((None, 3.0), (3.0, None))


def test_devices_without_a_way_between_them_are_in_different_matrices_in_the_order_of_their_numbers() -> None:
    metrics = {f"peer-bw/peer_{of}_{of + 1}_bw:0": 1.0 for of in range(0, 9000, 2)}
    made = matrices([NodeResult("local/n0", metrics)])
    assert (len(made), cells(made)) == (4500, 18000)
    assert [each.names for each in made[:6]] == [(f"{of}", f"{of + 1}") for of in range(0, 12, 2)]


def test_ways_that_connect_too_many_nodes_have_no_matrix() -> None:
    def chain(nodes: int) -> list[NodeResult]:
        return [NodeResult(f"local/n{at}", {f"tcp-bw/to_local+n{at + 1}_bw:0": 1.0}) for at in range(nodes - 1)]

    assert [len(each.names) for each in matrices(chain(64))] == [64]
    assert (matrices(chain(65)), paired(chain(65), chain(65))) == ([], [])


def test_gangs_of_two_results_are_in_one_matrix_where_they_are_small_and_else_those_of_the_later_one_are() -> None:
    (pair,) = paired(in_gangs(4, 4), in_gangs(4, 6, first=2))
    assert pair.before.names == pair.after.names == tuple(f"local/n{at:05}" for at in range(6))
    assert (pair.before.values[0][1], pair.after.values[0][1]) == (1.0, None)
    assert (pair.before.values[2][3], pair.after.values[2][3], pair.gain(2, 3)) == (1.0, 3.0, 2.0)
    pairs = paired(in_gangs(20, 400), in_gangs(20, 400, first=1))
    assert [len(each.after.names) for each in pairs] == [20] * 19 + [19]
    assert pairs[0].after.names[0] == "local/n00001"
    assert (pairs[0].before.values[0][1], pairs[0].after.values[0][1]) == (1.0, 2.0)
    assert (pairs[0].before.values[0][19], pairs[0].gain(0, 19)) == (None, None), "then of two gangs"


def test_two_results_are_compared_way_by_way_and_not_in_the_list() -> None:
    before, after = (
        results(PAIRS, NAMED),
        results(PAIRS | {"tcp-bw:all/pair_0_1_bw:0": 2.5}, {0: "local/n0", 1: "local/n_1"}),
    )
    assert compare(before, after) == []
    rate, latency = paired(before, after)
    assert rate.after.names == rate.before.names == ("local/n0", "local/n2", "local/n_1")
    assert rate.gain(0, 2) == rate.gain(2, 0) == -0.5
    assert rate.after.values[0] == (None, None, 2.5) and rate.gain(0, 1) is None
    assert latency.after.values == ((None, None), (None, None))


def test_a_longer_latency_is_a_loss() -> None:
    before, after = ([NodeResult("local/n0", {"peer-bw/peer_0_1_lat:0": value})] for value in (10.0, 15.0))
    (found,) = paired(before, after)
    assert found.gain(0, 1) == pytest.approx(-0.5)


def test_the_node_with_a_slow_link_is_named_and_not_those_at_its_other_end() -> None:
    rates = {(0, 1): 10.0, (0, 2): 10.0, (1, 2): 10.0, (0, 3): 2.0, (1, 3): 2.0, (2, 3): 2.0}
    pairs = {f"tcp-bw:all/pair_{one}_{two}_bw:0": rate for (one, two), rate in rates.items()}
    made = [each._replace(sku="s") for each in results(pairs, {at: f"local/n{at}" for at in range(4)})]
    found = diagnose(made, read_rules(rules_text("")), {"s": baseline_of(made)})
    slow = [each.node for each in found if any(breach.category == "Slow" for breach in each.breaches)]
    assert slow == ["local/n3"]


def test_matrices_are_printed_with_what_changed(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = results(PAIRS, NAMED), results(PAIRS | {"tcp-bw:all/pair_0_1_bw:0": 2.5}, NAMED)
    show_ways(before)
    text = capsys.readouterr().out
    assert "tcp-bw:all between nodes, GB/s\nFROM / TO    0  1  2\n0 local/n0   -  1  5\n" in text
    show_compared_ways(paired(before, after))
    assert "0 local/n0          -  1  2.5 -50%\n" in capsys.readouterr().out
