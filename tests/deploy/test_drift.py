"""What `corral deploy diff` calls a difference between the list and the hosts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from corral.deploy.checks.components import Certificate
from corral.deploy.checks.connection import Refusal
from corral.deploy.checks.facts import Facts, Service
from corral.deploy.checks.report import Seen, Survey
from corral.deploy.steps.drift import differences
from corral.deploy.steps.files import CONTAINERD_FILE, SYSCTLS_FILE, sysctls_text
from corral.deploy.steps.kubeadm import CLOSED
from corral.deploy.steps.membership import Node
from tests.deploy.facts import hosts, installed, of_host

NOW = datetime(2026, 11, 28, tzinfo=UTC)
KUBELET_FILE, STATIC = "/var/lib/kubelet/config.yaml", "/etc/kubernetes/manifests/kube-apiserver.yaml"
NODES = {name: Node(name, False, frozenset(), True) for name in ("head", "gpu1", "gpu2")}


def drift(
    change: Mapping[str, Any] | None = None, nodes: Mapping[str, Node] | None = NODES, *certificates: Certificate,
) -> list[tuple[str, str, str, str, str]]:  # fmt: skip
    """The differences of three installed hosts, of which the second is changed."""
    chosen = hosts()
    found: dict[str, Facts] = {
        host.name: installed(of_host(number), chosen, number == 1) for number, host in enumerate(chosen.hosts, 1)
    }
    found["gpu1"] = replace(found["gpu1"], **(change or {}))
    survey = Survey({name: Seen(own, own.time, own.time) for name, own in found.items()})
    each = differences(chosen, survey, nodes, certificates, NOW)
    return [(one.host, one.kind, one.what, one.wanted, one.found) for one in each]


def short(text: bytes) -> str:
    return f"sha256:{hashlib.sha256(text).hexdigest()[:12]}"


def test_hosts_that_are_as_the_list_describes_them_do_not_differ() -> None:
    assert drift() == []


@pytest.mark.parametrize(
    ("change", "kind", "what", "wanted", "found"),
    [
        ({"sysctls": {"net/ipv4/ip_forward": "0", "net/bridge/bridge-nf-call-iptables": "1"}},
         "sysctl", "net.ipv4.ip_forward", "1", "0"),
        ({"services": {"containerd": Service("active", "enabled"), "kubelet": Service("inactive", "disabled")}},
         "service", "kubelet", "enabled, active", "disabled, inactive"),
        ({"services": {"containerd": Service("active", "enabled")}}, "service", "kubelet", "enabled, active", "absent"),
        ({"unfinished": frozenset({"containerd"})},
         "service", "containerd", "enabled, active", "enabled, active, not restarted since its files changed"),
        ({"packages": {"conntrack": "1", "ethtool": "1", "iptables": "1", "kmod": "1"}},
         "package", "socat", "installed", "absent"),
        ({"modules": {"overlay": "loaded", "br_netfilter": "available"}},
         "module", "br_netfilter", "loaded", "available"),
        ({"dropins": (("kubelet", "/etc/systemd/system/kubelet.service.d/20-swap.conf"),)},
         "drop-in", "/etc/systemd/system/kubelet.service.d/20-swap.conf", "absent", "changes kubelet"),
        ({"unread": frozenset({"containerd"})},
         "service", "containerd", "enabled, active", "its files changed since systemd read them"),
        ({"later": {"net/ipv4/ip_forward": "0", "net/bridge/bridge-nf-call-iptables": "1"}},
         "sysctl", "net.ipv4.ip_forward", "1 at the next start", "0 at the next start"),
        ({"barred": {"br_netfilter": "install"}},
         "module", "br_netfilter", "loaded at the next start", "install in modprobe.d"),
        ({"written": {KUBELET_FILE: "a" * 64, STATIC: "b" * 64}, "node_files": {KUBELET_FILE: "c" * 64, STATIC: "b" * 64}},
         "file", KUBELET_FILE, "sha256:aaaaaaaaaaaa", "sha256:cccccccccccc"),
        ({"written": {KUBELET_FILE: "a" * 64}, "node_files": {KUBELET_FILE: "a" * 64, STATIC: "b" * 64}},
         "file", STATIC, "absent", "sha256:bbbbbbbbbbbb"),
        ({"written": {STATIC: "b" * 64}}, "file", STATIC, "sha256:bbbbbbbbbbbb", "absent"),
        ({"cni": frozenset({"05-other.conf", "10-flannel.conflist", "99-last.conf"})},
         "file", "/etc/cni/net.d/05-other.conf", "absent", "comes before 10-flannel.conflist"),
    ],
)  # fmt: skip
def test_what_is_otherwise_is_named_alone(
    change: dict[str, Any], kind: str, what: str, wanted: str, found: str
) -> None:
    assert drift(change) == [("gpu1", kind, what, wanted, found)]


@pytest.mark.parametrize("mark", ["kubeadm", "upgrade"])
def test_files_that_kubeadm_is_about_to_write_are_not_compared(mark: str) -> None:
    changed = {"written": {STATIC: "b" * 64}, "node_files": {STATIC: "c" * 64}}
    found = drift({**changed, "unfinished": frozenset({mark})})
    assert STATIC not in {what for _, _, what, *_ in found} and ("gpu1", "step", mark, "ended", "begun") in found
    assert not drift({"node_files": {STATIC: "c" * 64}}), "what kubeadm wrote is not known"


def test_what_stands_beside_files_of_another_origin_is_no_difference() -> None:
    there = installed(of_host(2), hosts(), False)
    bare = {path: text for path, text in there.files.items() if not path.endswith(".service")}
    changed = {"dropins": (("containerd", "/etc/systemd/system/containerd.service.d/a.conf"),)}
    assert "drop-in" in {kind for _, kind, *_ in drift(changed)}
    assert "drop-in" not in {kind for _, kind, *_ in drift({**changed, "files": bare})}


def test_a_file_that_someone_changed_is_named_by_both_digests_and_never_shown() -> None:
    there = installed(of_host(2), hosts(), False).files
    odd = {**there, SYSCTLS_FILE: b"password = hunter2\n"}
    assert drift({"files": odd}) == [
        ("gpu1", "file", SYSCTLS_FILE, short(sysctls_text().encode()), short(b"password = hunter2\n"))
    ]
    gone = {path: text for path, text in there.items() if path != SYSCTLS_FILE}
    assert drift({"files": gone})[0][4] == "absent"


def test_a_service_that_runs_with_an_old_file_is_named_with_the_file() -> None:
    there = installed(of_host(2), hosts(), False).files
    found = drift({"files": {**there, CONTAINERD_FILE: b"version = 2\n"}})
    assert [(kind, what) for _, kind, what, _, _ in found] == [("file", CONTAINERD_FILE), ("service", "containerd")]


def test_an_older_kubelet_is_a_difference_of_versions() -> None:
    versions = {"containerd": "v2.1.9", "kubeadm": "v1.34.4", "kubelet": "v1.33.0"}
    assert ("gpu1", "version", "kubelet", "v1.34.4", "v1.33.0") in drift({"versions": versions})


@pytest.mark.parametrize(
    ("node", "found"),
    [
        (None, "absent"),
        (Node("gpu1", True, frozenset(), True), "Ready, cordoned"),
        (Node("gpu1", False, frozenset(), False), "NotReady"),
        (Node("gpu1", False, frozenset({CLOSED}), True), "Ready, not validated"),
    ],
)
def test_nodes_are_compared_with_the_list(node: Node | None, found: str) -> None:
    nodes = {name: each for name, each in (NODES | {"gpu1": node}).items() if each is not None}
    assert drift(None, nodes) == [("gpu1", "node", "gpu1", "Ready" if node else "joined", found)]


def test_a_node_that_no_list_has_is_a_difference_and_silence_is_none() -> None:
    more = {**NODES, "old9": Node("old9", False, frozenset(), False)}
    assert drift(None, more) == [("old9", "node", "old9", "absent", "NotReady")]
    assert drift(None, None) == []


def test_a_certificate_that_ends_soon_is_a_difference() -> None:
    ends = [("late", 29), ("good", 40), ("over", -3)]
    certificates = [Certificate("head", name, NOW + timedelta(days=days, hours=1), False) for name, days in ends]
    assert drift(None, NODES, *certificates) == [
        ("head", "certificate", "late", "30 days or more", "ends in 29 days"),
        ("head", "certificate", "over", "30 days or more", "ended 3 days ago"),
    ]


def test_a_host_that_was_not_reached_is_not_compared() -> None:
    chosen = hosts()
    survey = Survey({}, {host.name: Refusal("it is off", "") for host in chosen.hosts})
    assert differences(chosen, survey, None, (), NOW) == []
