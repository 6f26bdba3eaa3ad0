"""Debian's Prometheus, Alertmanager and node exporter around a real server, with the rules and boards of the examples."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from corral.kernel.errors import Unavailable
from corral.model.series import SeriesQuestion
from corral.monitor.series.prometheus import PrometheusSeries
from tests.endtoend.monitoring_programs import EXAMPLE, SECONDS, Monitoring
from tests.endtoend.platform import Platform, on_devices
from tests.testbeds import prometheus

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(prometheus.missing()), reason=prometheus.missing()),
]
ROOT: Final = Path(__file__).resolve().parents[2]
BOARDS: Final = ROOT / "examples/grafana"
RULES: Final[list[dict[str, Any]]] = yaml.safe_load((EXAMPLE / "corral.rules.yml").read_text())["groups"][0]["rules"]
DOCUMENTS: Final = """\
kind: Cluster
engine: local
nodes: {node1: {devices: 4, cpu: 8}}
queues:
  research: {deserved: {devices: 2}}
  idle: {deserved: {devices: 2}}
"""
AT: Final = 'instance="corral.example:443",job="corral"'
SLOW: Final = {
    f'NAME_bucket{{{AT},le="{bound}"}}': values
    for bound, values in (("0.5", "0+0x200"), ("2.5", "0+5x200"), ("+Inf", "0+5x200"))
}
WELL: Final = {f'NAME_bucket{{{AT},le="{bound}"}}': "0+5x200" for bound in ("0.05", "0.5", "2.5", "+Inf")}


class Case(NamedTuple):
    """Series of one value a minute under which an alert fires from the first minute on, and others under which not."""

    bad: dict[str, str]
    good: dict[str, str]
    begins: int = 0
    """The minute in which the condition holds first."""


def _of(series: dict[str, str], name: str) -> dict[str, str]:
    return {key.replace("NAME", name): values for key, values in series.items()}


CASES: Final = {
    "CorralDown": Case({f"up{{{AT}}}": "0x200"}, {f"up{{{AT}}}": "1x200"}),
    "CorralSchedulerDown": Case({f"corral_scheduler_up{{{AT}}}": "0x200"}, {f"corral_scheduler_up{{{AT}}}": "1x200"}),
    "CorralLeadMoves": Case(
        {f"corral_lease_epoch{{{AT}}}": "1 2 3 4 5x200"}, {f"corral_lease_epoch{{{AT}}}": "1 2 3 4x200"}, begins=4
    ),
    "CorralEngineClosed": Case(
        {f'corral_engine_open{{{AT},engine="yarn"}}': "0x200"}, {f'corral_engine_open{{{AT},engine="yarn"}}': "1x200"}
    ),
    "CorralCertificatesEnd": Case(
        {f'corral_engine_certificate_end_seconds{{{AT},engine="kubernetes",of="registry"}}': "1209599x200"},
        {f'corral_engine_certificate_end_seconds{{{AT},engine="kubernetes",of="registry"}}': "1300000x200"},
    ),
    "CorralNodesNotReady": Case(
        {f'corral_nodes{{{AT},engine="local",state="not-ready"}}': "2x200"},
        {f'corral_nodes{{{AT},engine="local",state="ready"}}': "2x200"},
    ),
    "CorralDevicesUnavailable": Case(
        {f'corral_devices{{{AT},engine="local",state="unavailable"}}': "1x200"},
        {f'corral_devices{{{AT},engine="local",state="unavailable"}}': "0x200"},
    ),
    "CorralMountHangs": Case(
        {f'node_filesystem_device_error{{{AT},device="nas:/x",fstype="nfs4",mountpoint="/x"}}': "1x200"},
        {
            f'node_filesystem_device_error{{{AT},device="nas:/x",fstype="nfs4",mountpoint="/x"}}': "0x200",
            f'node_filesystem_device_error{{{AT},device="/dev/sdb",fstype="ext4",mountpoint="/y"}}': "1x200",
        },
    ),
    "CorralSchedulerSlow": Case(
        _of(SLOW, "corral_scheduler_step_seconds"), _of(WELL, "corral_scheduler_step_seconds"), begins=1
    ),
    "CorralStoreSlow": Case(
        _of(SLOW, "corral_store_commit_seconds"), _of(WELL, "corral_store_commit_seconds"), begins=1
    ),
    "CorralDevicesIdleWhileJobsWait": Case(
        {
            f'corral_devices{{{AT},engine="local",state="free"}}': "6x200",
            f'corral_devices{{{AT},engine="local",state="used"}}': "2x200",
            f'corral_jobs_waiting{{{AT},queue="default",reason="queue-limit"}}': "1x200",
        },
        {
            f'corral_devices{{{AT},engine="local",state="free"}}': "6x200",
            f'corral_devices{{{AT},engine="local",state="used"}}': "2x200",
        },
    ),
    "CorralManyPreemptions": Case(
        {f'corral_preemptions_total{{{AT},queue="default",rule="priority"}}': "0+200x200"},
        {f'corral_preemptions_total{{{AT},queue="default",rule="priority"}}': "0+1x200"},
        begins=1,
    ),
}


def test_every_rule_has_a_case() -> None:
    assert [rule["alert"] for rule in RULES] == list(CASES)


def test_each_rule_fires_and_not_before_its_time(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE / "corral.rules.yml", tmp_path)
    tests = [test for rule in RULES for test in _promtool_tests(rule, CASES[rule["alert"]])]
    (tmp_path / "tests.yml").write_text(
        yaml.safe_dump({"rule_files": ["corral.rules.yml"], "evaluation_interval": "1m", "tests": tests})
    )
    for words in (("check", "rules", "corral.rules.yml"), ("test", "rules", "tests.yml")):
        done = subprocess.run(
            [prometheus.program("promtool"), *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def _promtool_tests(rule: dict[str, Any], case: Case) -> Iterator[dict[str, Any]]:
    patience = {"m": 1, "h": 60}[rule["for"][-1]] * int(rule["for"][:-1]) if "for" in rule else 0
    fires = case.begins + patience
    for series, minutes in ((case.bad, {fires: True, fires - 1: False}), (case.good, {fires: False})):
        yield {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "promql_expr_test": [
                {
                    "expr": f'count(ALERTS{{alertname="{rule["alert"]}",alertstate="firing"}}) or vector(0)',
                    "eval_time": f"{minute}m",
                    "exp_samples": [{"labels": "{}", "value": int(firing)}],
                }
                for minute, firing in minutes.items()
                if minute >= 0
            ],
        }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A server of one node with four described devices, of which two queues own two each."""
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "cluster.yaml").write_text(DOCUMENTS)
    made = Platform(folder, cluster=folder / "cluster.yaml", env={"CORRAL_METRICS_SECONDS": "1"})
    made.up()
    yield made
    made.down()


@pytest.fixture(scope="module")
def monitoring(server: Platform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitoring]:
    """The programs around the server, while one of its jobs runs and one waits."""
    running = server.submit(on_devices("runs", 3, queue="research"))
    server.until(running, lambda found: bool(found["state"] == "running"))
    waiting = server.submit(on_devices("waits", 4, queue="research"))
    server.until(waiting, lambda found: found["reasons"]["binding"]["code"] == "not-enough-devices")
    with Monitoring(server, tmp_path_factory.mktemp("monitoring")) as made:
        yield made


def _until(what: str, found: Callable[[], Any]) -> Any:
    end = time.monotonic() + SECONDS
    while not (answer := found()):
        assert time.monotonic() < end, what
        time.sleep(0.2)
    return answer


def test_prometheus_reads_a_server_and_answers_the_questions_of_the_page(monitoring: Monitoring) -> None:
    ask = monitoring.ask
    used = _until("devices in use", lambda: ask('corral_devices{state="used"}'))
    assert [float(each["value"][1]) for each in used] == [3.0]
    assert _until("the server is read", lambda: ask('up{job="corral"} == 1'))
    (waits,) = _until("waiting jobs", lambda: ask('corral_jobs_waiting{queue="research"}'))
    assert waits["metric"]["reason"] == "not-enough-devices" and waits["value"][1] == "1"
    for query in _queries():
        ask(query)
    for rule in RULES:
        ask(rule["expr"])


def test_every_panel_of_the_boards_shows_something(monitoring: Monitoring) -> None:
    empty = set(_panels())

    def nothing_is_empty() -> bool:
        for query in sorted(empty):
            if monitoring.ask(query):
                empty.remove(query)
        return all("rate(" in query or "increase(" in query or "changes(" in query for query in empty)

    try:
        _until("panels", nothing_is_empty)
    except AssertionError:
        pytest.fail(f"nothing is found by {sorted(empty)}")


def test_series_of_longer_ago_are_read_from_it(monitoring: Monitoring) -> None:
    reader = PrometheusSeries(f"http://{monitoring.prometheus}")

    def read(*families: str, **labels: str) -> dict[str, set[float | None]]:
        now = time.time()
        found, _ = asyncio.run(reader.read(SeriesQuestion(now - 60, now + 15, 15, families, labels=labels)))
        assert all(len(each.low) == len(each.high) == len(each.mean) for each in found)
        return {each.family: {*each.mean, *each.low, *each.high} - {None} for each in found}

    held = _until("series", lambda: read("corral_queue_used", queue="research", resource="devices"))
    assert held == {"corral_queue_used": {3.0}}
    steps = "corral_scheduler_step_seconds_count"
    assert _until("steps", lambda: max(filter(None, read(steps).get(steps, ())), default=0) > 1)
    with pytest.raises(Unavailable, match="Prometheus answers 400: "):
        asyncio.run(reader.read(SeriesQuestion(0.0, 12_000 * 15.0, 15, ("corral_jobs",))))


def test_variables_of_the_boards_have_values(monitoring: Monitoring) -> None:
    for board in _boards():
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                selector, _, label = variable["query"].removeprefix("label_values(").removesuffix(")").rpartition(", ")
                what = f"values of {variable['name']} in {board['title']}"
                _until(what, partial(_has_label, monitoring, _for_all(selector), label))


def _has_label(monitoring: Monitoring, query: str, label: str) -> bool:
    return any(label in each["metric"] for each in monitoring.ask(query))


def test_corral_tells_of_its_machine_what_the_node_exporter_tells(monitoring: Monitoring) -> None:
    def told(job: str) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for each in monitoring.ask(f'{{__name__=~"node_.*",job="{job}",instance!="{monitoring.machine.address}"}}'):
            found.setdefault(each["metric"].pop("__name__"), []).append(each)
        return found

    theirs = _until("node exporter", lambda: told("node"))
    ours = _until("machine", lambda: told("corral"))
    assert len(ours) > 8 and ours.keys() <= theirs.keys()
    for name, series in ours.items():
        labels = set(series[0]["metric"])
        assert labels <= set(theirs[name][0]["metric"]), name

    def are_alike(name: str) -> bool:
        return _sizes(told("corral"), name) <= _sizes(told("node"), name)

    # Other tests mount and unmount file systems between the two reads.
    for name in ours.keys() & {"node_memory_MemTotal_bytes", "node_filesystem_size_bytes"}:
        _until(f"equal {name}", partial(are_alike, name))


def _sizes(told: dict[str, list[dict[str, Any]]], name: str) -> set[tuple[tuple[str, ...], str]]:
    """The values of a figure with what each is of."""
    return {(_place(each), each["value"][1]) for each in told.get(name, [])}


def _place(series: dict[str, Any]) -> tuple[str, ...]:
    labels = series["metric"]
    return tuple(labels.get(name, "") for name in ("device", "fstype", "mountpoint"))


def test_an_alert_reaches_alertmanager_and_its_webhook_tells_corral(server: Platform, monitoring: Monitoring) -> None:
    def told(state: str) -> list[dict[str, Any]]:
        found = json.loads(server.corral("alerts", "-o", "json"))
        items = found["items"] if isinstance(found, dict) else found
        named = [each for each in items if each["name"] == "CorralDown" and each["labels"]["instance"] == where]
        return [each for each in named if each["state"] == state]

    where = monitoring.machine.address
    _until("the machine is read", lambda: monitoring.ask(f'up{{instance="{where}"}} == 1'))
    monitoring.machine.down = True
    try:
        _until(
            "Alertmanager",
            lambda: [each for each in monitoring.alerts() if each["labels"]["alertname"] == "CorralDown"],
        )
        (fires,) = _until("the webhook", lambda: told("firing"))
    finally:
        monitoring.machine.down = False
    assert fires["source"] == "alertmanager" and fires["severity"] == "fatal" and fires["labels"]["instance"] == where
    assert where in fires["annotations"]["summary"]
    _until("the webhook of the end", lambda: told("resolved"))


def _queries() -> list[str]:
    rows = [line.split(" | ") for line in (ROOT / "docs/monitoring.md").read_text().splitlines() if "?" in line]
    found = [row[1].strip(" |`") for row in rows if len(row) == 2 and row[0].startswith("| ")]
    assert len(found) > 5
    return found


def _boards() -> list[dict[str, Any]]:
    boards: list[dict[str, Any]] = [json.loads(path.read_text()) for path in sorted(BOARDS.glob("*.json"))]
    assert [board["uid"] for board in boards] == [f"corral-{path.stem}" for path in sorted(BOARDS.glob("*.json"))]
    assert [board["title"].removeprefix("Corral: ") for board in boards] == [
        "cluster", "device", "job", "nodes", "queues", "services", "user"
    ]  # fmt: skip
    return boards


def _panels() -> list[str]:
    """The queries of all panels of Grafana's boards, for every server, queue, machine, device, job and user."""
    panels = [panel for board in _boards() for panel in board["panels"]]
    assert all(panel["title"] and panel["targets"] for panel in panels)
    return [_for_all(each["expr"]) for panel in panels for each in panel["targets"]]


def _for_all(query: str) -> str:
    found = re.sub(r"\$(queue|node|device|job|role|user)\b", ".*", query.replace('"$instance"', '~".*"'))
    assert "$" not in found, found
    return found.replace('="$', '=~"')
