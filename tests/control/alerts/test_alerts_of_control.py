"""Control's own metrics raise the alerts of a rules file; alerts live on over a restart, and failures stop nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from corral.control.alerts.keeper import AlertKeeper, changes
from corral.control.alerts.of_files import keeper_of_files
from corral.control.alerts.reported_figures import FRESH_SECONDS, reported_figures
from corral.control.control_api import ControlApi
from corral.kernel.clock import VirtualClock
from corral.kernel.errors import Unavailable
from corral.kernel.ids import JobId, attempt_id
from corral.model.alerts.stored import AlertSource, Silence, StoredAlert
from corral.model.metrics.families import FAMILIES, Metric
from corral.model.metrics.samples import Distribution, Samples, Value
from corral.model.runs import WorkReport
from corral.monitor.rules.rules_file import parse_rules
from corral.monitor.series.store import SeriesStore
from corral.store.alert_records import Merge
from tests.control.harness import House, short

EXAMPLES = Path(__file__).resolve().parents[3] / "examples/prometheus"
RULES = """
groups:
  - name: own
    rules:
      - alert: EngineClosed
        expr: corral_engine_open == 0
        for: 5m
        labels: {severity: error}
        annotations: {summary: "{{ $labels.engine }} is closed at {{ $labels.instance }}."}
      - alert: Slow
        expr: histogram_quantile(0.99, sum by (instance, le) (rate(corral_store_commit_seconds_bucket[5m]))) > 0.5
      - alert: NotThere
        expr: corral_of_another_version > 0
"""


class Told:
    """A stand-in for the store."""

    def __init__(self) -> None:
        self.kept: dict[str, StoredAlert] = {}
        self.events: list[str] = []
        self.away = False

    async def alerts(self, source: str = "") -> list[StoredAlert]:
        return list(self.kept.values())

    async def replace_alerts(self, source: AlertSource, merge: Merge) -> None:
        if self.away:
            raise Unavailable("store-away", "The disk is full.")
        self.kept = {each.fingerprint: each for each in merge(self.kept)}

    async def silences(self, now: float) -> list[Silence]:
        return []

    async def tell_of_server(self, told: object) -> None:
        self.events += [each.message for each in told]  # type: ignore[attr-defined]


class Measured:
    """Samples that a test sets."""

    def __init__(self, clock: VirtualClock, store: Told) -> None:
        self.clock, self.store = clock, store
        self.open = 0.0
        self.commits = 0
        self.keeper = self.again()

    def again(self) -> AlertKeeper:
        """A keeper as after a restart."""
        self.keeper = AlertKeeper(parse_rules(RULES), self.store, self.samples, self.clock, instance="here:8470")
        return self.keeper

    def samples(self) -> Samples:
        self.commits += 30
        bounds = [0] * 9 + [self.commits] + [0] * 4  # all between half a second and one
        slow = Distribution(Metric.COMMITS, (), tuple(bounds), 0.9 * self.commits)
        return Samples((Value(Metric.ENGINE_OPEN, ("local",), self.open),), (slow,))

    async def passes(self, seconds: float) -> dict[str, str]:
        """Evaluate every 30 s; the states of the alerts by name."""
        for _ in range(round(seconds / 30)):
            await self.keeper.evaluate()
            self.clock.advance(30.0)
        return {each.rule: each.state for each in self.store.kept.values()}


@pytest.fixture
def measured() -> Measured:
    return Measured(VirtualClock(1_700_000_000.0), Told())


async def test_alerts_fire_after_their_time_end_and_are_forgotten(measured: Measured) -> None:
    assert await measured.passes(300) == {"EngineClosed": "pending", "Slow": "firing"}
    assert await measured.passes(30) == {"EngineClosed": "firing", "Slow": "firing"}
    measured.open = 1.0
    assert (await measured.passes(30))["EngineClosed"] == "resolved"
    assert await measured.passes(930) == {"Slow": "firing"}
    assert measured.store.events[1:] == [
        "EngineClosed: local is closed at here:8470.", "Over: EngineClosed: local is closed at here:8470."
    ]  # fmt: skip


async def test_a_restart_and_a_store_that_is_away_keep_the_state(measured: Measured) -> None:
    assert await measured.passes(240) == {"EngineClosed": "pending", "Slow": "firing"}
    measured.again()
    assert await measured.passes(60) == {"EngineClosed": "pending", "Slow": "firing"}
    measured.store.away = True
    with pytest.raises(Unavailable):
        await measured.passes(90)
    measured.store.away = False
    assert await measured.passes(30) == {"EngineClosed": "firing", "Slow": "firing"}
    assert len(measured.store.events) == 2


async def test_an_evaluation_that_fails_is_logged_once_and_the_next_one_goes_on(measured: Measured) -> None:
    measured.store.away = True
    ready = asyncio.Event()
    ready.set()
    running = asyncio.create_task(measured.keeper.run(ready))
    while measured.commits == 0:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not running.done()
    running.cancel()


def test_many_changes_are_told_in_few_events() -> None:
    fires = {str(n): StoredAlert(AlertSource.RULES, f"A{n}", {"n": str(n)}, {}, "firing", 1.0) for n in range(100)}
    told = changes({}, fires, 1.0)
    assert len(told) == 20 and told[-1].message == "81 more alerts changed; `corral alerts` lists them."
    assert told[0].message == 'A0: n="0"' and changes(fires, fires, 2.0) == []


async def test_the_example_rules_are_evaluated_over_a_running_control(house: House, tmp_path: Path) -> None:
    await house.begin()
    rules = tmp_path / "rules.yml"
    rules.write_text(
        (EXAMPLES / "corral.rules.yml").read_text()
        + "      - alert: Waits\n        expr: sum by (instance, queue) (corral_jobs_waiting) > 0\n"
    )
    await house.submit(short("big", devices=4))
    await house.submit(short("waits", devices=4))
    metrics = ControlApi(house.control, tmp_path / "unused.sock").metrics
    keeper = keeper_of_files(rules, None, house.control, metrics, url="https://here:8470")
    while not (found := [each for each in await house.store.alerts() if each.labels["alertname"] == "Waits"]):
        await keeper.evaluate()  # a slow machine may have alerts of its own
        await asyncio.sleep(0.01)
    (waits,) = found
    assert waits.labels == {"alertname": "Waits", "instance": "here:8470", "queue": "default"}
    assert (waits.state, waits.value) == ("firing", 1.0)


async def test_rules_read_what_is_measured_of_tasks(house: House, tmp_path: Path) -> None:
    await house.begin()
    rules = tmp_path / "rules.yml"
    rules.write_text("groups: [{name: use, rules: [{alert: Idle, expr: avg by (job_name) (task_gpu_percent) < 30}]}]\n")
    metrics = ControlApi(house.control, tmp_path / "unused.sock").metrics
    of_task = dict.fromkeys(FAMILIES["task_gpu_percent"].labels, "") | {"job_name": "ada~idle"}
    metrics.sources.append(lambda: Samples((Value("task_gpu_percent", tuple(of_task.values()), 4.0),)))
    keeper = keeper_of_files(rules, None, house.control, metrics, url="https://here:8470")
    await keeper.evaluate()
    (idle,) = await house.store.alerts()
    assert (idle.labels, idle.state, idle.value) == ({"alertname": "Idle", "job_name": "ada~idle"}, "firing", 4.0)


async def test_rules_read_what_jobs_report(house: House, tmp_path: Path) -> None:
    """With the labels by which its owner sees the alert, and actions find the job; a silent job has no series."""
    await house.begin()
    rules = tmp_path / "rules.yml"
    rules.write_text("""
groups:
  - name: work
    rules:
      - {alert: Diverges, expr: "max_over_time(corral_job_loss[1h]) > 10"}
""")
    metrics = ControlApi(house.control, tmp_path / "unused.sock").metrics
    job = await house.submit(short("train"))
    await house.until(job, "running")
    await reported(house, job, loss=2.5)
    now = house.clock.now()
    series = SeriesStore(tmp_path / "series.db")
    for step in range(40):
        series.add(Samples((Value("corral_job_loss", (job,), 12.5),)), now - 1800 + 15 * step)
    series.flush()
    for kept in (None, series.read):
        keeper = keeper_of_files(rules, None, house.control, metrics, url="https://here:8470", kept=kept)
        await keeper.evaluate()
        assert bool(await house.store.alerts()) is (kept is not None), "the greatest loss is in the series store alone"
    (alert,) = await house.store.alerts()
    told = {name: alert.labels.get(name) for name in ("username", "job_name", "job_instance_id", "virtual_cluster")}
    assert told == {"username": "ada", "job_name": "ada~train", "job_instance_id": job, "virtual_cluster": "default"}
    assert (alert.state, alert.value) == ("firing", 12.5)
    jobs = house.control.world.jobs.values()
    assert [name for name, _, _ in reported_figures(jobs, now + 100.0)] == ["corral_job_loss"]
    assert not list(reported_figures(jobs, now + FRESH_SECONDS + 100.0))
    series.close()


async def reported(house: House, job: JobId, **said: float) -> None:
    """The job's first task reports, and control knows."""
    at = house.clock.now()
    assert await house.store.work_reported(attempt_id(job, 0, "worker", 0, 0), WorkReport(at, **said))
    async with house.patience():
        while house.control.world.jobs[job].run.report is None:
            await asyncio.sleep(0)
