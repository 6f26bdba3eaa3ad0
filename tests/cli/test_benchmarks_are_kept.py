"""Results of benchmarks are sent to the server in bounded calls, and not every figure of very many nodes."""

from __future__ import annotations

from typing import Any

import pytest

from corral.benchmarks.results.lines import NodeResult
from corral.cli.benchmark_history import keep_results

WAYS = {"peer-bw/peer_0_1_bw:0": 20.0, "tcp-bw/to_local+n1_lat:0": 9.0}
WORST = {"peer-bw/min_peer_bw:0": 20.0, "tcp-bw/pair_lat:0": 9.0}


class Server:
    """Notes what is kept, as the client of a server does."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.metrics: dict[str, dict[str, float]] = {}

    def keep_benchmark(
        self, part: list[dict[str, Any]], *, suite: str, problems: list[str], run: str
    ) -> dict[str, str]:
        """Keep lines of a run."""
        self.calls.append((run, sum(len(line["metrics"]) for line in part)))
        for line in part:
            self.metrics.setdefault(line["node"], {}).update(line["metrics"])
        return {"id": "one"}


def kept(nodes: int, metrics: dict[str, float]) -> Server:
    server = Server()
    results = [NodeResult(f"local/n{at}", metrics) for at in range(nodes)]
    assert keep_results(server, results, "full", ()) == "one"  # type: ignore[arg-type]
    return server


def test_calls_are_bounded_and_of_one_run() -> None:
    calls = kept(3, {f"disk/part_{at}_bw": 1.0 for at in range(5000)}).calls
    assert calls == [("", 5000), ("one", 5000), ("one", 5000)]


def test_of_very_many_nodes_single_ways_are_left_out_and_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert kept(256, WAYS | WORST).metrics["local/n255"] == WAYS | WORST
    assert kept(257, WORST).metrics["local/n256"] == WORST
    assert capsys.readouterr().err == ""
    found = kept(257, WAYS | WORST).metrics
    assert len(found) == 257 and all(metrics == WORST for metrics in found.values())
    assert "no single ways of more than 256 nodes" in capsys.readouterr().err
