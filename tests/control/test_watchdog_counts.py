"""Machines, parts of the server and tasks under the watchdog's names, within bounds."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from corral.control.core.machines import Machines
from corral.control.metrics.watchdog import node_counts, service_counts
from corral.model.cordons import Cordon
from corral.model.inventory import Node, Taint
from corral.model.metrics.counts import MOST_SERIES
from corral.model.metrics.families import FAMILIES
from corral.model.metrics.samples import Samples, Value
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.control_client import NoControl
from corral.service.metrics.metrics import Metrics
from corral.service.metrics.process import ProcessFigures
from tests.control.harness import House, short
from tests.control.test_metrics_are_told import ANN, asked, read, told
from tests.model.metric_mistakes import mistakes

TASKS = "pai_job_pod_count"


def machines(*nodes: Node) -> Machines:
    found = Machines()
    found.nodes = {node.name: node for node in nodes}
    return found


def said(value: Value) -> dict[str, str]:
    return dict(zip(FAMILIES[value.family].labels, value.labels, strict=True))


def test_a_machines_conditions_are_told() -> None:
    pressed = Node("k8s/full", taints=(Taint("node.kubernetes.io/disk-pressure"),), ready=False)
    found = machines(Node("local/well"), pressed, Node("local/closed"))
    found.cordons = {"local/closed": Cordon("local/closed", "ada", "new fans", 0.0)}
    by_name = {said(each)["node_name"]: said(each) for each in node_counts(found)}
    assert by_name["well"] | {"node_name": ""} == {
        "node_name": "", "ready": "true", "unschedulable": "false", "disk_pressure": "false", "memory_pressure": "false"
    }  # fmt: skip
    assert by_name["full"]["ready"] == "false" and by_name["full"]["disk_pressure"] == "true"
    assert by_name["closed"]["ready"] == "true" and by_name["closed"]["unschedulable"] == "true"


def test_machines_of_the_same_name_are_one_series_and_those_that_are_well_are_left_out_first() -> None:
    many = [Node(f"yarn/n{number}") for number in range(MOST_SERIES)]
    found = node_counts(machines(*many, Node("local/n1", ready=False), Node("k8s/n1", ready=False)))
    assert len(found) == MOST_SERIES and not list(mistakes(Samples(tuple(found))))
    assert [each.value for each in found if said(each)["ready"] == "false"] == [2.0]


def test_an_engine_that_cannot_be_reached_is_not_ready() -> None:
    found = {said(each)["name"]: said(each)["ready"] for each in service_counts(["local", "yarn"], frozenset({"yarn"}))}
    assert found == {"control": "true", "engine-local": "true", "engine-yarn": "false"}


async def test_tasks_and_services_are_told_to_those_with_a_token(house: House, tmp_path: Path) -> None:
    await house.begin()
    api, metrics = await asked(house, tmp_path)
    runs = await house.submit(short("runs", replicas=3, devices=1))
    await house.until(runs, "running")
    waits = await house.submit(short("waits", devices=2))
    await house.explained(waits)
    counted = await told(api, starts=1)
    assert list(mistakes(counted)) == []
    found = read(await metrics.page(ANN))
    running = {"phase": "running", "pod_bound": "true", "pod_scheduled": "true", "initialized": "true", "ready": "true"}
    waiting = {"phase": "pending"} | dict.fromkeys(("pod_bound", "pod_scheduled", "initialized", "ready"), "false")
    tasks = {
        (dict(labels)["job_name"], value): dict(labels) for (name, labels), value in found.items() if name == TASKS
    }
    assert tasks == {
        ("ada~runs", 3.0): {"job_name": "ada~runs", "name": "worker", **running},
        ("ada~waits", 1.0): {"job_name": "ada~waits", "name": "worker", **waiting},
    }
    services = [dict(labels) for name, labels in found if name == "pai_pod_count"]
    assert {each["service_name"] for each in services} == {"front", "control", "engine-local"}
    assert {(each["phase"], each["ready"]) for each in services} == {("running", "true")}
    assert {name for name, _ in read(await metrics.page(None)) if name.startswith("pai_")} == set()


async def test_a_control_that_does_not_answer_is_a_service_that_does_not_run(house: House) -> None:
    away = Metrics(Context(house.store, key=b"k" * 32, clock=house.clock, control=NoControl()))
    found = read(await away.page(Actor("ann", token_id="t-ann")))
    states = {
        dict(labels)["name"]: (dict(labels)["phase"], dict(labels)["ready"])
        for name, labels in found
        if name == "pai_pod_count"
    }
    assert states == {"front": ("running", "true"), "control": ("unknown", "false")}


def test_a_process_tells_its_use(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("corral.service.metrics.process.time.monotonic", lambda: now[0])
    spent = iter([10.0, 10.5, 13.0])
    monkeypatch.setattr("corral.service.metrics.process._seconds", lambda: next(spent))
    figures = ProcessFigures("front")
    first = {each.family: each.value for each in figures.samples().values}
    assert "service_cpu_percent" not in first
    assert first["service_mem_usage_byte"] == first["corral_process_resident_memory_bytes"] > 2**20
    assert first["service_mem_limit_byte"] > first["service_mem_usage_byte"]
    assert 0 < first["service_mem_usage_percent"] < 100 and first["service_block_out_byte"] >= 0
    now[0] += 2.0
    found = figures.samples()
    assert {each.family: each.value for each in found.values}["service_cpu_percent"] == 150.0
    assert list(mistakes(found)) == [] and msgspec.convert(msgspec.to_builtins(found), Samples) == found
