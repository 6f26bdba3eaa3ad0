"""Debian's Prometheus reads a real server; each rule of `examples/prometheus` fires, and not before its time."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx2
import pytest
import yaml

from tests.endtoend.platform import Platform, on_devices
from tests.reserved import free_port
from tests.testbeds import prometheus

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(prometheus.missing()), reason=prometheus.missing()),
]
ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLE: Final = ROOT / "examples/prometheus"
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
    "CorralNodesNotReady": Case(
        {f'corral_nodes{{{AT},engine="local",state="not-ready"}}': "2x200"},
        {f'corral_nodes{{{AT},engine="local",state="ready"}}': "2x200"},
    ),
    "CorralDevicesUnavailable": Case(
        {f'corral_devices{{{AT},engine="local",state="unavailable"}}': "1x200"},
        {f'corral_devices{{{AT},engine="local",state="unavailable"}}': "0x200"},
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
    made = Platform(folder, cluster=folder / "cluster.yaml")
    made.up()
    yield made
    made.down()


def test_prometheus_reads_a_server_and_answers_the_questions_of_the_page(server: Platform, tmp_path: Path) -> None:
    running = server.submit(on_devices("runs", 3, queue="research"))
    server.until(running, lambda found: bool(found["state"] == "running"))
    waiting = server.submit(on_devices("waits", 4, queue="research"))
    server.until(waiting, lambda found: bool(found["reasons"]))
    with Prometheus(server, tmp_path) as ask:
        used = ask('corral_devices{state="used"}')
        while not used:
            time.sleep(0.2)
            used = ask('corral_devices{state="used"}')
        assert [float(each["value"][1]) for each in used] == [3.0]
        assert ask('up{job="corral"} == 1')
        (waits,) = ask('corral_jobs_waiting{queue="research"}')
        assert waits["metric"]["reason"] == "not-enough-devices" and waits["value"][1] == "1"
        for query in _queries():
            ask(query)
        for rule in RULES:
            ask(rule["expr"])
        for query in _panels():
            assert ask(query) or "rate(" in query or "increase(" in query, query


def _queries() -> list[str]:
    rows = [line.split(" | ") for line in (ROOT / "docs/monitoring.md").read_text().splitlines() if "?" in line]
    found = [row[1].strip(" |`") for row in rows if len(row) == 2 and row[0].startswith("| ")]
    assert len(found) > 5
    return found


def _panels() -> list[str]:
    """The queries of all panels of Grafana's boards, for every server and queue."""
    boards = [json.loads(path.read_text()) for path in sorted((ROOT / "examples/grafana").glob("*.json"))]
    assert len({board["uid"] for board in boards}) == len(boards) == 3
    assert all(panel["title"] and panel["targets"] for board in boards for panel in board["panels"])
    found = [each["expr"] for board in boards for panel in board["panels"] for each in panel["targets"]]
    return [each.replace('"$instance"', '~".*"').replace("$queue", ".*") for each in found]


class Prometheus:
    """Prometheus on loopback that reads a server with the token of an account; `ask` answers a query."""

    def __init__(self, server: Platform, folder: Path) -> None:
        self._folder, self._port = folder, free_port()
        settings = yaml.safe_load((EXAMPLE / "prometheus.yml").read_text())
        settings["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        settings["scrape_configs"][0]["static_configs"] = [{"targets": [server.url.partition("://")[2]]}]
        token = json.loads(server.corral("token", "create", "prometheus", "-o", "json"))["token"]
        (folder / "corral.token").write_text(token)
        (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
        shutil.copy(EXAMPLE / "corral.rules.yml", folder)

    def __enter__(self) -> Any:
        words = [
            str(prometheus.program("prometheus")),
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=data",
            f"--web.listen-address=127.0.0.1:{self._port}",
        ]
        self._log = open(self._folder / "prometheus.log", "w")
        self._process = subprocess.Popen(words, cwd=self._folder, stdout=self._log, stderr=subprocess.STDOUT)
        while True:
            try:
                if httpx2.get(f"http://127.0.0.1:{self._port}/-/ready").status_code == 200:
                    return self.ask
            except httpx2.TransportError:
                pass
            assert self._process.poll() is None, (self._folder / "prometheus.log").read_text()
            time.sleep(0.1)

    def ask(self, query: str) -> list[dict[str, Any]]:
        """The series that a query finds now."""
        answer = httpx2.get(f"http://127.0.0.1:{self._port}/api/v1/query", params={"query": query}).json()
        assert answer["status"] == "success", (query, answer)
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(60)
        self._log.close()
