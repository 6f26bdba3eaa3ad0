"""Results of benchmark suites that the server keeps: what is stored, and the JSON shapes of the API."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import msgspec

from corral.model.records import Record

KEPT_SECONDS: Final = 400 * 86_400.0
"""Seconds for which results are kept."""
MOST_FIGURES: Final = 500_000
"""Figures that are kept; beyond them the oldest runs are removed, but never the newest."""
MOST_AT_ONCE: Final = 20_000
"""Figures of one call."""
MOST_PROBLEMS: Final = 1000
"""Problems of a run."""
LONGEST_NAME: Final = 253
"""Characters of a node."""
LONGEST_METRIC: Final = 260
"""Characters."""
_Short = Annotated[str, msgspec.Meta(max_length=200)]
_Problem = Annotated[str, msgspec.Meta(max_length=500)]
_Node = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]


class BenchmarkRun(NamedTuple):
    """A run of a suite as it is stored."""

    id: str
    at: float
    """Seconds since 1970."""
    user: str
    suite: str
    nodes: int = 0
    figures: int = 0
    problems: tuple[str, ...] = ()


class BenchmarkNodeResult(Record, frozen=True):
    """What was measured on one node: the value of each metric, such as `cpu-stream/triad_bw:0`."""

    node: _Node
    metrics: dict[str, float]
    sku: _Short = ""


class BenchmarkResults(Record, frozen=True):
    """Results of a suite to keep."""

    results: Annotated[tuple[BenchmarkNodeResult, ...], msgspec.Meta(min_length=1, max_length=MOST_AT_ONCE)]
    suite: _Short = ""
    problems: Annotated[tuple[_Problem, ...], msgspec.Meta(max_length=MOST_PROBLEMS)] = ()
    run: _Short = ""
    """The run to which they are added; "" begins a new one."""


class BenchmarkRunView(Record, frozen=True):
    """A run of a benchmark suite."""

    id: str
    at: str
    user: str
    suite: str
    nodes: int
    figures: int
    problems: tuple[str, ...] = ()
    """What failed, in one sentence each."""


class BenchmarkRunResults(Record, frozen=True):
    """What a kept run measured, by node: of a large run a part."""

    run: BenchmarkRunView
    results: tuple[BenchmarkNodeResult, ...] = ()
    next_offset: int | None = None
    """The figure at which the next part begins; null after the last one."""


class BenchmarkStanding(Record, frozen=True):
    """The last value of a measurement on a node, beside its baseline and its data sheet."""

    node: str
    sku: str
    metric: str
    rank: int
    """The process or device with the worst value, or -1."""
    value: float
    unit: str
    larger_is_better: bool
    at: str
    run: str
    baseline: float | None = None
    """The median of the last values of all nodes of its SKU; null where no other node has it."""
    alike: int = 0
    """Other nodes of its SKU that have the measurement."""
    change: float | None = None
    """The difference from the baseline as a part of it."""
    expected: float | None = None
    """What the data sheet of its device promises."""
    least: float | None = None
    """The least value of a healthy device of the model."""
    source: str = ""
    """The data sheet."""
    findings: tuple[str, ...] = ()
    """Which rules it breaks; empty for a good value."""


class BenchmarkStandings(Record, frozen=True):
    """Last values, those with findings first."""

    items: tuple[BenchmarkStanding, ...] = ()


class BenchmarkedNode(Record, frozen=True):
    """A node with results."""

    node: str
    sku: str
    at: str
    """When it was measured last."""
    measurements: int
    slow: int
    """Measurements with findings."""
    findings: tuple[str, ...] = ()
    """The first of the findings."""


class BenchmarkMetric(Record, frozen=True):
    """A measurement over all nodes."""

    metric: str
    unit: str
    larger_is_better: bool
    nodes: int
    least: float
    median: float
    most: float
    slow: int
    """Nodes with findings."""


class BenchmarkOverview(Record, frozen=True):
    """The last results of all nodes; nodes with findings come first."""

    nodes: tuple[BenchmarkedNode, ...] = ()
    metrics: tuple[BenchmarkMetric, ...] = ()
    runs: tuple[BenchmarkRunView, ...] = ()
    """The newest runs, newest first."""
    days: int = 0
    """For how long results are kept."""


class BenchmarkPoint(Record, frozen=True):
    """A value of a measurement on a node, in one run."""

    node: str
    sku: str
    run: str
    at: str
    value: float
    rank: int
    slow: bool
    """Whether it breaks a rule beside the baseline of its SKU of now."""


class BenchmarkHistory(Record, frozen=True):
    """What runs measured of one metric, oldest first."""

    metric: str
    unit: str
    larger_is_better: bool
    points: tuple[BenchmarkPoint, ...] = ()
    cut: bool = False
    """Whether there are older values that are not told."""


class BenchmarkChange(Record, frozen=True):
    """The medians of a metric in two runs."""

    metric: str
    unit: str
    before: float | None
    after: float | None
    gain: float | None
    """The change for the better as a part of the value before; negative is worse."""


class BenchmarkWays(Record, frozen=True):
    """Every way between some nodes, or between the devices of one, in two runs: a row for each end from which it leads."""

    benchmark: str
    node: str
    """The node whose devices they are; "" for ways between nodes."""
    unit: str
    larger_is_better: bool
    names: tuple[str, ...]
    """The nodes or devices, for rows and for columns."""
    before: tuple[tuple[float | None, ...], ...]
    after: tuple[tuple[float | None, ...], ...]
    gain: tuple[tuple[float | None, ...], ...]
    """The change for the better as a part of the value before; negative is worse."""


class BenchmarkComparison(Record, frozen=True):
    """Two runs beside each other, the largest loss first."""

    before: BenchmarkRunView
    after: BenchmarkRunView
    changes: tuple[BenchmarkChange, ...] = ()
    ways: tuple[BenchmarkWays, ...] = ()
