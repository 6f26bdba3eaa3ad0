"""Calls for the kept results of benchmark suites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from corral.client.calls import Call, call

if TYPE_CHECKING:
    from corral.client.schema import (
        BenchmarkComparison,
        BenchmarkHistory,
        BenchmarkOverview,
        BenchmarkRunResults,
        BenchmarkRunView,
        BenchmarkStandings,
    )


def benchmark_overview() -> Call[BenchmarkOverview]:
    """Return how all nodes stand by what was measured last, with measurements and runs."""
    return call("GET", "/benchmarks")


def keep_benchmark(
    results: Sequence[Mapping[str, Any]], *, suite: str = "", problems: Sequence[str] = (), run: str = ""
) -> Call[BenchmarkRunView]:
    """Keep results of a suite, each with `node`, `sku` and `metrics`, as a new run or with the run of that id."""
    data = {"results": list(results), "suite": suite, "problems": list(problems), "run": run}
    return call("POST", "/benchmarks", data=data)


def benchmark_standing(*, node: str = "", metric: str = "") -> Call[BenchmarkStandings]:
    """Return the last values of a node or a metric beside the median of their SKU and the data sheet."""
    return call("GET", "/benchmarks/standing", {"node": node, "metric": metric})


def benchmark_history(metric: str, *, node: str = "") -> Call[BenchmarkHistory]:
    """Return what runs measured of a metric, oldest first."""
    return call("GET", "/benchmarks/history", {"metric": metric, "node": node})


def compare_benchmarks(before: str, after: str) -> Call[BenchmarkComparison]:
    """Return the medians of two runs beside each other, the largest loss first."""
    return call("GET", "/benchmarks/comparison", {"before": before, "after": after})


def benchmark_results(run: str, *, offset: int = 0) -> Call[BenchmarkRunResults]:
    """Return what a run measured on each node, 20,000 figures from `offset` on; `nextOffset` is that of the next ones."""
    return call("GET", f"/benchmarks/{quote(run, safe='')}/results", {"offset": offset})


def remove_benchmark(run: str) -> Call[None]:
    """Remove a run with its figures."""
    return call("DELETE", f"/benchmarks/{quote(run, safe='')}")
