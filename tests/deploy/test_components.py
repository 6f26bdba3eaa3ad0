"""What hosts print of a running cluster becomes components and certificates, and odd output is refused."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from corral.cli.deploy_status import certificates as shown_certificates
from corral.deploy.checks.components import GarbledStatus, Status, components_of, parse_status
from corral.deploy.hosts.reader import Host
from corral.deploy.remote import asking
from corral.deploy.steps.installation import own_line
from tests.deploy.facts import LIST, hosts

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


def test_the_registry_tells_the_end_of_its_certificates() -> None:
    end = int((NOW + timedelta(days=12, hours=1)).timestamp())
    (found,) = parse_status("head", text(UNIT, row("registry", str(end)))).certificates
    assert (found.name, found.days_left(NOW), found.by_up, found.authority) == ("corral-registry", 12, True, False)
    assert not parse_status("head", text(row("registry", ""))).certificates
    with pytest.raises(GarbledStatus, match="no time"):
        parse_status("head", text(row("registry", "12 days")))


@pytest.mark.parametrize(("days", "code"), [(40, 0), (12, 0), (-1, 4)])
def test_the_host_of_the_registry_is_asked_for_its_certificates_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], days: int, code: int
) -> None:
    now = datetime.now(UTC)
    ends = (now + timedelta(days=400)).isoformat()
    told = {
        "head": text(certificates("apiserver", expirationDate=ends)),
        "gpu1": text(row("registry", f"{(now + timedelta(days=days, hours=1)).timestamp():.0f}")),
    }

    async def statuses(asked: list[Host], *_: object, **__: object) -> tuple[dict[str, Status], dict[str, str]]:
        return {host.name: parse_status(host.name, told[host.name]) for host in asked}, {}

    monkeypatch.setattr(asking, "statuses", statuses)
    listed = hosts(f"{LIST}registry: {{host: gpu1}}\n")
    assert shown_certificates(listed, tmp_path / "hosts.yaml", timeout=1.0, output="table") == code
    shown = capsys.readouterr()
    assert "corral-registry" in shown.out and ("certs renew" not in shown.err)
    assert ("the next corral deploy up makes new ones" in shown.err) == (days < 30)
    del told["head"], told["gpu1"]
    told |= {"head": text(), "gpu1": text(row("registry", f"{now.timestamp() + 90 * 86400:.0f}"))}
    assert shown_certificates(listed, tmp_path / "hosts.yaml", timeout=1.0, output="table") == 4, (
        "no control plane tells"
    )


def test_the_script_reads_the_end_from_the_registry_s_file(tmp_path: Path) -> None:
    (tmp_path / "units").mkdir()
    (tmp_path / "units/corral-registry.service").touch()
    (tmp_path / "tls.crt").write_text(f"{own_line('10.0.0.2', 1893456000.0)}-----BEGIN CERTIFICATE-----\n")
    script = (Path(asking.__file__).with_name("status.sh")).read_text()
    for there, here in (("/etc/systemd/system", "units"), ("/etc/corral-registry", "."), ("/etc/kubernetes", "none")):
        script = script.replace(there, f"{tmp_path}/{here}")
    said = subprocess.run(["sh", "-s"], input=script.encode(), capture_output=True, check=True).stdout
    (found,) = parse_status("gpu1", said).certificates
    assert found.ends == datetime(2030, 1, 1, tzinfo=UTC)


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
