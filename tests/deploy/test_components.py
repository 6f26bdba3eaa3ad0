"""What hosts print of a running cluster becomes components and certificates, and odd output is refused."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from corral.deploy.checks.components import GarbledStatus, Status, components_of, parse_status
from corral.deploy.remote import asking
from tests.deploy.facts import hosts

NOW = datetime(2026, 11, 28, tzinfo=UTC)


def text(*rows: str) -> bytes:
    return "\n".join(("Welcome.", "corral-status begin 1", *rows, "corral-status end 1", "")).encode()


def row(*fields: str) -> str:
    return "\t".join(fields)


UNIT = row("unit", "kubelet", "active", "2026-11-28T19:18:55Z", "v1.34.4")
NODE = row("node", "gpu1", "True", "2026-11-28T19:18:43Z", "v1.34.4", "")
POD = row(
    "pod", "kube-system/etcd-head", "head", "Running", "true", "2026-11-28T19:18:25Z", "registry.k8s.io/etcd:3.6.5-0"
)


def certificates(*names: str, **changes: Any) -> str:
    each = [{"name": name, "expirationDate": "2026-12-08T12:00:00Z", **changes} for name in names]
    return row("certificates", json.dumps({"certificates": each, "certificateAuthorities": each[:1]}))


def test_units_nodes_and_pods_are_components_with_their_logs() -> None:
    found = parse_status("head", text(UNIT, NODE, POD))
    assert found.asked
    assert [(part.host, part.name, part.state, part.good, part.version, part.log) for part in found.components] == [
        ("head", "kubelet", "active", True, "v1.34.4", "journalctl -u kubelet"),
        ("gpu1", "node", "Ready", True, "v1.34.4", "journalctl -u kubelet"),
        ("head", "etcd-head", "Running", True, "3.6.5-0", "kubectl -n kube-system logs etcd-head"),
    ]


@pytest.mark.parametrize(
    ("line", "state"),
    [
        (UNIT.replace("active", "failed"), "failed"),
        (UNIT.replace("active", ""), "absent"),
        (NODE.replace("True", "False"), "NotReady"),
        (NODE.replace("True", "Unknown"), "Unknown"),
        (POD.replace("true", "true false"), "Running, not ready"),
        (POD.replace("true", ""), "Running, not ready"),
        (POD.replace("Running", "Pending"), "Pending"),
        (row("silent", "connection refused"), "Kubernetes does not answer: connection refused"),
    ],
)
def test_what_is_not_well_says_so(line: str, state: str) -> None:
    (part,) = parse_status("head", text(line)).components
    assert (part.state, part.good) == (state, False)


def test_a_cordoned_node_and_a_finished_pod_are_well() -> None:
    cordoned = row("node", "gpu1", "True", "", "v1.34.4", "true")
    found = parse_status("head", text(cordoned, POD.replace("Running", "Succeeded"))).components
    assert [(part.state, part.good) for part in found] == [("Ready, cordoned", True), ("Succeeded", True)]


def test_hosts_that_are_no_nodes_or_were_not_reached_are_told_of() -> None:
    head = parse_status("head", text(UNIT, NODE.replace("gpu1", "head"), POD))
    found = list(
        components_of(hosts(), {"head": head, "gpu1": parse_status("gpu1", text(UNIT))}, {"gpu2": "it is off"})
    )
    told = [(part.host, part.name, part.state) for part in found]
    assert told[:3] == [("head", "kubelet", "active"), ("head", "node", "Ready"), ("head", "etcd-head", "Running")]
    assert told[3:] == [
        ("gpu1", "node", "not in the cluster"),
        ("gpu1", "kubelet", "active"),
        ("gpu2", "ssh", "it is off"),
    ]


def test_nodes_of_hosts_that_are_not_in_the_list_come_last() -> None:
    stray = parse_status("head", text(NODE.replace("gpu1", "old7")))
    assert [part.host for part in components_of(hosts(), {"head": stray}, {})][-1] == "old7"


def test_days_are_counted_to_the_end_of_a_certificate() -> None:
    found = parse_status("head", text(certificates("apiserver", "etcd-server"))).certificates
    assert [(each.name, each.authority, each.days_left(NOW)) for each in found] == [
        ("apiserver", False, 10), ("etcd-server", False, 10), ("apiserver", True, 10),
    ]  # fmt: skip
    assert not parse_status("head", text(certificates("ca", missing=True))).certificates
    assert not parse_status("head", text(row("certificates", ""))).certificates


@pytest.mark.parametrize(
    "content",
    [
        b"", b"corral-status begin 1\nunit", text("unit\tkubelet"), text("odd"), text(row("node", "a b", "", "", "", "")),
        text(UNIT.replace("active", "\x1b[31m")), text(row("certificates", "[1]")), text(row("certificates", "{")),
        text(certificates("ca", expirationDate="soon")), text(certificates("apiserver", expirationDate="2026-12-08")),
        text(certificates("api\nserver")),
    ],
)  # fmt: skip
def test_what_is_no_status_is_refused(content: bytes) -> None:
    with pytest.raises(GarbledStatus):
        parse_status("head", content)


def test_an_empty_cluster_is_no_answer() -> None:
    assert parse_status("gpu1", text(UNIT)) == Status(parse_status("gpu1", text(UNIT)).components, (), asked=False)


def test_corral_and_its_monitoring_are_components(tmp_path: Path) -> None:
    """The pods of the chart are told by their label, in any namespace."""
    pods = {"-n kube-system": "kube-system/etcd-head", "name=corral": "corral/corral-monitoring-0"}
    cases = "".join(
        f"*'{words}'*) printf 'pod\\t%s\\thead\\tRunning\\ttrue true\\t2026-11-28T19:18:25Z\\tprometheus:3\\n' {pod} ;;\n"
        for words, pod in pods.items()
    )
    nodes = "*'get nodes'*) printf 'node\\thead\\tTrue\\t2026-11-28T19:18:43Z\\tv1.34.4\\t\\n' ;;\n"
    (tmp_path / "kubectl").write_text(f"#!/bin/sh\ncase $* in\n{nodes}{cases}esac\n")
    (tmp_path / "kubectl").chmod(0o755)
    (tmp_path / "admin.conf").touch()
    script = (Path(asking.__file__).with_name("status.sh")).read_text()
    script = script.replace("/etc/kubernetes/admin.conf", f"{tmp_path}/admin.conf")
    script = script.replace("PATH=$PATH", f"PATH={tmp_path}:$PATH", 1)
    said = subprocess.run(["sh", "-s"], input=script.encode(), capture_output=True, check=True).stdout
    found = parse_status("head", said)
    pods_found = {part.name: part for part in found.components if part.log.startswith("kubectl")}
    assert found.asked and set(pods_found) == {"etcd-head", "corral-monitoring-0"}
    monitoring = pods_found["corral-monitoring-0"]
    assert (monitoring.good, monitoring.log) == (True, "kubectl -n corral logs corral-monitoring-0")
