"""A keeper that begins reads the past of its series from the store of series."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.control.alerts.keeper import AlertKeeper
from corral.kernel.clock import VirtualClock
from corral.model.metrics.families import Metric
from corral.model.metrics.samples import Samples, Value
from corral.model.series import SeriesQuestion, SeriesView
from corral.monitor.rules.rules_file import parse_rules
from corral.monitor.series.store import SeriesStore
from tests.control.alerts.test_alerts_of_control import Told

NOW = 1_700_000_100.0
RULES = """
groups:
  - name: own
    rules:
      - alert: ClosedForLong
        expr: max_over_time(corral_engine_open[{past}]) == 0 and count_over_time(corral_engine_open[{past}]) > {points}
      - alert: ManyPreemptions
        expr: increase(corral_preemptions_total[{past}]) > 90
"""


class Restarted:
    """A server's store of series, and what it measures after its restart."""

    def __init__(self, path: Path) -> None:
        self.store = SeriesStore(path, steady=lambda: 0.0)
        self.engines = {"local": 0.0}
        self.machines: dict[str, Samples] = {}
        self.told = Told()
        self.clock = VirtualClock(NOW)

    def measured(self, preempted: float = 0.0) -> Samples:
        values = [Value(Metric.ENGINE_OPEN, (name,), value) for name, value in self.engines.items()]
        return Samples((*values, Value("corral_preemptions_total", ("lab", "priority"), preempted)))

    def ran(self, seconds: int, growth: float = 0.0, every: int = 15, **engines: float) -> None:
        """It ran for some seconds until now, and wrote down what it measured."""
        self.engines |= engines
        for step in range(seconds // every):
            at = NOW - seconds + step * every
            self.store.add(self.measured(step * growth), at)
            for node, told in self.machines.items():
                self.store.add(told, at, node, others=True)
        self.store.flush()
        while self.store.maintain():
            pass

    def keeper(self, past: str = "1h", points: int = 60) -> AlertKeeper:
        rules = RULES.replace("{past}", past).replace("{points}", str(points))
        return AlertKeeper(
            parse_rules(rules), self.told, self.measured, self.clock,
            instance="here:8470", machines=lambda _: self.machines, kept=self.store.read,
        )  # fmt: skip

    def firing(self) -> set[tuple[str, str]]:
        return {(each.rule, each.labels.get("engine", "")) for each in self.told.kept.values()}


@pytest.fixture
def restarted(tmp_path: Path) -> Iterator[Restarted]:
    made = Restarted(tmp_path / "series.db")
    yield made
    made.store.close()


async def test_a_rule_over_an_hour_sees_it_whole_at_the_first_evaluation(restarted: Restarted) -> None:
    restarted.ran(3600)
    await restarted.keeper().evaluate()
    assert restarted.firing() == {("ClosedForLong", "local")}


async def test_without_a_store_the_hour_begins_with_the_start(restarted: Restarted) -> None:
    restarted.ran(3600)
    restarted.store.close()
    restarted.store = SeriesStore(restarted.store.path.with_name("other.db"))
    await restarted.keeper().evaluate()
    assert restarted.firing() == set()


async def test_a_counter_that_begins_anew_is_one_reset(restarted: Restarted) -> None:
    """It grew to 119 within the hour, and is 0 since the restart: it did not grow by 119 again."""
    restarted.ran(3600, growth=0.5, local=1.0)
    await restarted.keeper().evaluate()
    assert restarted.firing() == {("ManyPreemptions", "")}
    value = next(iter(restarted.told.kept.values())).value
    assert value is not None and 110 < value < 130


async def test_rules_look_back_over_many_hours(restarted: Restarted) -> None:
    restarted.ran(10 * 3600, every=120)
    await restarted.keeper("10h", 100).evaluate()
    assert restarted.firing() == {("ClosedForLong", "local")}


async def test_a_series_that_is_over_is_not_brought_back(restarted: Restarted) -> None:
    restarted.ran(3600, local=0.0, yarn=0.0)
    del restarted.engines["yarn"]
    await restarted.keeper().evaluate()
    assert restarted.firing() == {("ClosedForLong", "local")}


async def test_an_agent_that_answers_late_has_its_past_too(restarted: Restarted) -> None:
    told = Samples((Value(Metric.ENGINE_OPEN, ("far",), 0.0),))
    restarted.machines = {"node-7": told}
    restarted.ran(3600, local=1.0)
    restarted.machines = {}
    keeper = restarted.keeper()
    await keeper.evaluate()
    assert restarted.firing() == set()
    restarted.clock.advance(30.0)
    restarted.machines = {"node-7": told}
    await keeper.evaluate()
    assert restarted.firing() == {("ClosedForLong", "far")}
    (alert,) = restarted.told.kept.values()
    assert alert.labels["instance"] == "node-7" and alert.labels["job"] == "corral-node-agent"


async def test_what_appears_later_costs_no_reading(restarted: Restarted) -> None:
    restarted.ran(3600)
    asked: list[SeriesQuestion] = []
    usual = restarted.store.read

    def read(question: SeriesQuestion, most: int) -> tuple[list[SeriesView], int]:
        asked.append(question)
        return usual(question, most)

    restarted.store.read = read  # type: ignore[method-assign]
    keeper = restarted.keeper()
    await keeper.evaluate()
    before = len(asked)
    assert before == 2
    restarted.clock.advance(600.0)
    restarted.engines["late"] = 0.0
    await keeper.evaluate()
    assert len(asked) == before
