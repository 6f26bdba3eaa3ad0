"""Alert rules read the scalars that tasks write for TensorBoard, with the labels of their jobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from corral.control.alerts import latest_scalars
from corral.control.alerts.latest_scalars import LatestScalars
from corral.control.alerts.of_files import keeper_of_files
from corral.control.alerts.reported_figures import FRESH_SECONDS
from corral.control.control_api import ControlApi
from corral.kernel.ids import JobId
from corral.model.metrics.job_figures import SCALAR
from corral.model.metrics.samples import Samples, Value
from corral.monitor.series.store import SeriesStore
from tests.control.harness import House, short

NOW = 1_764_028_800.0
RULES = """
groups:
  - name: work
    rules:
      - alert: LossIsHigh
        expr: corral_job_scalar{tag="val/loss"} > 2
      - alert: WasHigher
        expr: corral_job_scalar{tag="acc"} < max_over_time(corral_job_scalar{tag="acc"}[1h])
"""


def scalar(job: str, tag: str, value: float, at: float = NOW, run: str = "runs") -> tuple[float, Value]:
    return at, Value(SCALAR, (job, "worker-0", run, tag), value)


async def alerts(house: House) -> dict[str, Any]:
    return {each.rule: each for each in await house.store.alerts()}


async def test_a_rule_over_a_scalar_fires_with_the_names_of_its_job_and_ends_with_the_curve(
    house: House, tmp_path: Path
) -> None:
    await house.begin()
    (tmp_path / "rules.yml").write_text(RULES)
    metrics = ControlApi(house.control, tmp_path / "unused.sock").metrics
    kept: list[tuple[float, Value]] = []
    metrics.take_scalars = kept.extend
    keeper = keeper_of_files(tmp_path / "rules.yml", None, house.control, metrics, url="https://here:8470")
    job = await house.submit(short("train"))
    await house.until(job, "running")
    now = house.clock.now()
    metrics.told_scalars(iter([scalar(job, "val/loss", 2.5, now), scalar("0000000000000", "val/loss", 9.0, now)]))
    assert len(kept) == 2
    await keeper.evaluate()
    alert = (await alerts(house))["LossIsHigh"]
    assert (alert.state, alert.value) == ("firing", 2.5)
    named = {"job_name": "ada~train", "job_instance_id": job, "task": "worker-0", "run": "runs", "tag": "val/loss"}
    assert {name: alert.labels.get(name) for name in named} == named
    metrics.told_scalars([scalar(job, "val/loss", 1.5, now + 1)])
    await keeper.evaluate()
    assert (await alerts(house))["LossIsHigh"].state != "firing"


async def test_a_scalars_past_is_read_from_the_store_of_series(house: House, tmp_path: Path) -> None:
    await house.begin()
    (tmp_path / "rules.yml").write_text(RULES)
    metrics = ControlApi(house.control, tmp_path / "unused.sock").metrics
    job = await house.submit(short("train"))
    await house.until(job, "running")
    now = house.clock.now()
    series = SeriesStore(tmp_path / "series.db")
    for step in range(40):
        series.add(Samples((scalar(job, "acc", 0.9)[1],)), now - 1800 + 15 * step)
    series.flush()
    for kept in (None, series.read):
        keeper = keeper_of_files(tmp_path / "rules.yml", None, house.control, metrics, url="https://x", kept=kept)
        metrics.told_scalars([scalar(job, "acc", 0.5, now)])
        await keeper.evaluate()
        assert ("WasHigher" in await alerts(house)) is (kept is not None)
    series.close()


async def test_rules_that_read_no_scalar_keep_none(house: House, tmp_path: Path) -> None:
    await house.begin()
    (tmp_path / "rules.yml").write_text(RULES.replace("corral_job_scalar", "corral_job_loss"))
    metrics = ControlApi(house.control, tmp_path / "unused.sock").metrics
    keeper_of_files(tmp_path / "rules.yml", None, house.control, metrics, url="https://here:8470")
    assert metrics.scalars_for_rules is None
    metrics.told_scalars([scalar("j", "acc", 1.0)])


def told(latest: LatestScalars, jobs: Sequence[str], now: float = NOW) -> dict[str, float]:
    known = SimpleNamespace(user="ada", summary=SimpleNamespace(name="x"), id="j", terms=SimpleNamespace(queue="q"))
    found = latest.named({JobId(each): cast(Any, known) for each in jobs}, now)
    return {labels["tag"]: value for _, labels, value in found}


def test_only_fresh_values_of_known_jobs_are_told_and_an_older_one_replaces_none() -> None:
    latest = LatestScalars()
    latest.take([scalar("j", "a", 1.0), scalar("j", "a", 2.0, NOW - 5), scalar("j", "b", 3.0, NOW - FRESH_SECONDS)])
    latest.take([scalar("gone", "c", 4.0)])
    assert told(latest, ["j"]) == {"a": 1.0, "b": 3.0}
    assert told(latest, ["j", "gone"]) == {"a": 1.0, "b": 3.0}, "what was of no job is forgotten"
    assert told(latest, ["j"], NOW + 1) == {"a": 1.0}


def test_of_too_many_curves_those_without_a_value_for_longest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latest_scalars, "MOST_CURVES", 2)
    latest = LatestScalars()
    latest.take([scalar("j", "a", 1.0), scalar("j", "b", 2.0), scalar("j", "a", 3.0), scalar("j", "c", 4.0)])
    assert told(latest, ["j"]) == {"a": 3.0, "c": 4.0}
