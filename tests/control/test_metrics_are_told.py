"""The metrics of a running control, from its API to the text that Prometheus reads."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from corral.control.control_api import ControlApi
from corral.kernel.errors import Forbidden
from corral.model.metrics.families import FAMILIES
from corral.model.metrics.family import PERSONAL
from corral.model.metrics.samples import Samples
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.control_client import NoControl
from corral.service.metrics.metrics import Metrics
from tests.control.asked import Asked
from tests.control.harness import House, short
from tests.model.metric_mistakes import mistakes

ANN = Actor("ann", token_id="t-ann")
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(page: bytes) -> Series:
    """The series of a page, read by Prometheus' own client library."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    }


def of(found: Series, name: str, **labels: str) -> float | None:
    """One series; None if it is missing."""
    return found.get((name, frozenset(labels.items())))


async def asked(house: House, tmp_path: Path) -> tuple[Asked, Metrics]:
    """Control's API, and the page that front makes of it."""
    api = Asked(ControlApi(house.control, tmp_path / "unused.sock"))
    return api, Metrics(Context(house.store, key=b"k" * 32, clock=house.clock, control=api))


async def told(api: Asked, starts: int) -> Samples:
    """Control's metrics once so many starts are counted, which is a moment after they are stored."""
    while True:
        found = msgspec.convert(await api.request("/metrics"), Samples)
        waits = [each for each in found.distributions if each.family == "corral_job_wait_seconds"]
        if sum(sum(each.counts) for each in waits) >= starts:
            return found
        await asyncio.sleep(0.01)


async def test_a_days_work_is_counted(house: House, tmp_path: Path) -> None:
    await house.begin()
    api, metrics = await asked(house, tmp_path)
    runs = await house.submit(short("runs", devices=3))
    await house.until(runs, "running")
    waits = await house.submit(short("waits", devices=2))
    await house.explained(waits)
    await told(api, starts=1)
    found = read(await metrics.page(ANN))
    assert of(found, "corral_scheduler_up") == 1
    assert of(found, "corral_jobs", queue="default", phase="running") == 1
    assert of(found, "corral_jobs", queue="default", phase="waiting") == 1
    assert of(found, "corral_jobs_waiting", queue="default", reason="not-enough-devices") == 1
    assert of(found, "corral_devices", engine="local", state="used") == 3
    assert of(found, "corral_devices", engine="local", state="free") == 1
    assert of(found, "corral_devices_scattered", engine="local") == 1
    assert of(found, "corral_nodes", engine="local", state="ready") == 1
    assert of(found, "corral_engine_open", engine="local") == 1
    assert of(found, "corral_queue_used", queue="default", resource="devices") == 3
    assert of(found, "corral_queue_wanted", queue="default", resource="devices") == 2
    house.engine.end(next(iter(house.engine.running)), 1)
    await house.until(waits, "running")
    counted = await told(api, starts=2)
    assert list(mistakes(counted)) == []
    values = {(each.family, each.labels): each.value for each in counted.values}
    assert values["corral_placements_total", ("default",)] == 2
    assert values["corral_jobs_ended_total", ("default", "failed")] == 1
    spread = {(each.family, each.labels): each for each in counted.distributions}
    assert sum(spread["corral_job_wait_seconds", ("default",)].counts) == 2
    assert sum(spread["corral_scheduler_step_seconds", ()].counts) >= 3
    assert spread["corral_store_commit_seconds", ()].sum > 0


async def test_counts_outlive_a_recovery(house: House, tmp_path: Path) -> None:
    await house.begin()
    api, _ = await asked(house, tmp_path)
    runs = await house.submit(short("runs", devices=4))
    await house.until(runs, "running")
    waits = await house.submit(short("waits", devices=4))
    await house.explained(waits)
    house.control._opened_late()
    house.engine.end(next(iter(house.engine.running)), 0)
    await house.until(waits, "running")
    counted = await told(api, starts=2)
    values = {(each.family, each.labels): each.value for each in counted.values}
    assert values["corral_placements_total", ("default",)] == 2
    spread = {(each.family, each.labels): each for each in counted.distributions}
    assert sum(spread["corral_job_wait_seconds", ("default",)].counts) == 2


async def test_everybody_is_told_totals_alone(house: House, tmp_path: Path) -> None:
    await house.begin()
    api, metrics = await asked(house, tmp_path)
    runs = await house.submit(short("runs", devices=3))
    await house.until(runs, "running")
    await told(api, starts=1)
    found = read(await metrics.page(None))
    assert of(found, "corral_jobs", phase="running") == 1
    assert of(found, "corral_placements_total") == 1
    assert of(found, "corral_job_wait_seconds_count") == 1
    assert not [name for name, labels in found if "queue" in dict(labels) or name.startswith("corral_queue_")]
    assert not {"default", "ann", "runs"} & {value for _, labels in found for value in dict(labels).values()}


async def test_a_page_is_made_once_in_a_while_and_says_when_the_scheduler_is_away(house: House, tmp_path: Path) -> None:
    await house.begin()
    _, metrics = await asked(house, tmp_path)
    assert await metrics.page(None) is await metrics.page(None)
    away = Metrics(Context(house.store, key=b"k" * 32, clock=house.clock, control=NoControl()))
    found = read(await away.page(ANN))
    assert of(found, "corral_scheduler_up") == 0
    assert not [name for name, _ in found if name.startswith("corral_jobs")]
    with pytest.raises(Forbidden):
        await metrics.page(Actor("ann", role="job", kind="job", token_id="t-job", job="j"))


def test_the_table_keeps_prometheus_conventions() -> None:
    for name, family in FAMILIES.items():
        assert name.startswith("corral_") == (family.named_by == "Corral") and family.help.endswith(".")
        assert (family.kind == "counter") == name.endswith("_total")
        assert family.kind != "untyped" or family.named_by != "Corral"
        assert not (family.in_totals and PERSONAL & set(family.labels) - {"queue"}), name
        assert bool(family.buckets) == (family.kind == "histogram")
        assert list(family.buckets) == sorted(set(family.buckets))
