"""The plan of a cluster follows from the list and the facts: each step, with the differences of files."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.deploy.checks import ours
from corral.deploy.checks.connection import Refusal
from corral.deploy.checks.facts import Facts, Service
from corral.deploy.checks.report import Seen, Survey
from corral.deploy.hosts.reader import Hosts
from corral.deploy.steps import files, kubeadm
from corral.deploy.steps.plan import plan_of
from corral.deploy.steps.step import HostPlan
from tests.deploy.facts import facts, hosts, installed, of_host

THREE_PLANES = """\
hosts:
  a: {address: 10.0.0.1, roles: [control-plane]}
  b: {address: 10.0.0.2, roles: [control-plane]}
  c: {address: 10.0.0.3, roles: [control-plane, worker]}
"""


def plans(chosen: Hosts, **known: Facts) -> dict[str, HostPlan]:
    survey = Survey({name: Seen(each, 0.0, 0.0) for name, each in known.items()}, {"gpu2": Refusal("it is off", "")})
    return {each.name: each for each in plan_of(chosen, survey)}


def titles(plan: HostPlan) -> list[str]:
    return [step.title for step in plan.steps if step.needed]


def test_a_bare_host_gets_every_step_in_order() -> None:
    found = plans(hosts(), head=of_host(1), gpu1=of_host(2, ("ntp=yes", "ntp=yes\nswap=100 /dev/sda2")))
    head, worker = found["head"], found["gpu1"]
    assert titles(worker) == [
        "install ethtool, iptables, kmod, socat",
        "turn off /dev/sda2",
        "write /etc/modules-load.d/corral.conf",
        "load br_netfilter",
        "write /etc/sysctl.d/90-corral.conf",
        "set net.bridge.bridge-nf-call-iptables = 1",
        "install containerd 2.1, runc and CNI plugins",
        "install kubeadm v1.34.4",
        "install kubelet v1.34.4",
        "write /etc/containerd/config.toml",
        "write /etc/systemd/system/containerd.service",
        "restart containerd",
        "write /etc/systemd/system/kubelet.service",
        "enable kubelet",
        "write /etc/cni/net.d/10-flannel.conflist",
        "join head as a worker",
    ]
    assert titles(head)[-4:] == [
        "write /etc/kubernetes/corral.yaml",
        "init --config /etc/kubernetes/corral.yaml",
        "write /etc/kubernetes/corral-network.yaml",
        "apply the pods' network (flannel)",
    ]
    assert next(step for step in head.steps if step.kind == "kubeadm").detail[:2] == ("preflight", "certs")
    assert found["gpu2"].obstacles == ("it is off",) and not found["gpu2"].steps
    assert not head.obstacles


def test_a_host_on_which_all_was_done_needs_nothing() -> None:
    chosen = hosts()
    found = plans(chosen, head=installed(of_host(1), chosen, True), gpu1=installed(of_host(2), chosen, False))
    assert titles(found["head"]) == []
    assert titles(found["gpu1"]) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"versions": {"containerd": "1.6.20~ds1", "kubeadm": "v1.34.4", "kubelet": "v1.34.4"}},
            "in place of 1.6.20~ds1",
        ),
        (
            {"versions": {"containerd": "2.2.0", "kubeadm": "v1.33.1", "kubelet": "v1.34.4"}},
            "kubeadm v1.34.4 in place of v1.33.1",
        ),
        ({"sysctls": {}}, "set net.bridge.bridge-nf-call-iptables = 1, net.ipv4.ip_forward = 1"),
        ({"services": {"kubelet": Service("active", "enabled")}}, "enable and start containerd"),
        ({"leftovers": ()}, "join head as a worker"),
    ],
)
def test_one_thing_that_is_otherwise_is_one_step(change: dict[str, object], says: str) -> None:
    chosen = hosts()
    other = replace(installed(of_host(2), chosen, False), **change)  # type: ignore[arg-type]
    needed = titles(plans(chosen, head=installed(of_host(1), chosen, True), gpu1=other)["gpu1"])
    assert any(says in each for each in needed)
    assert len(needed) <= 2  # a new program restarts its service


def test_a_changed_file_is_shown_by_its_difference_and_restarts_its_service() -> None:
    chosen = hosts()
    good = installed(of_host(2), chosen, False)
    text = files.CONTAINERD.replace(
        "SystemdCgroup = true", 'SystemdCgroup = false\npassword = "hunter2"\nx = "https://me:hunter2@r"'
    )
    changed = replace(good, files={**good.files, files.CONTAINERD_FILE: text.encode()})
    plan = plans(chosen, head=installed(of_host(1), chosen, True), gpu1=changed)["gpu1"]
    assert titles(plan) == ["change /etc/containerd/config.toml", "restart containerd"]
    (step,) = [each for each in plan.steps if each.kind == "file" and each.needed]
    assert {"-SystemdCgroup = false", "+SystemdCgroup = true", "-password = ******"} <= set(step.detail)
    assert "hunter2" not in str(plan.to_document())


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("- routing_key: hunter2", "- routing_key: ******"),
        ("- service_key: hunter2", "- service_key: ******"),
        ('  "api_key": "hunter2", "x": 1', '  "api_key": ******'),
        ("  apiKey: hunter2", "  apiKey: ******"),
        ("slack_api_url: https://hooks.example/hunter2", "slack_api_url: ******"),
        ("- webhook_url: https://hooks.example/hunter2", "- webhook_url: ******"),
        ("- url: https://hooks.example/services/hunter2", "- url: https://hooks.example/******"),
        ("  - {url: 'https://hooks.example?k=hunter2', a: b}", "  - {url: 'https://hooks.example?******', a: b}"),
        ("url: https://10.0.0.1:30443", "url: https://10.0.0.1:30443"),
        ("- send_resolved: true", "- send_resolved: true"),
    ],
)
def test_credentials_of_receivers_are_not_shown(line: str, shown: str) -> None:
    assert files.file_step(facts(), files.VALUES_FILE, f"{line}\n").detail == (f"+{shown}",)


def test_a_file_that_is_too_long_is_replaced_without_a_difference() -> None:
    found = files.file_step(replace(facts(), files={"/etc/x": b"x" * 16384}), "/etc/x", "y\n")
    assert (found.title, found.detail) == ("replace /etc/x", ("it is too long to be compared",))


@pytest.mark.parametrize(
    "line",
    ["//srv/a /mnt cifs username=u,password=hunter2 0 0", "identitytoken: hunter2", 'Authorization = ["Basic hunter2"]',
     "SECRET_KEY=hunter2", "mirror = https://u:hunter2@host/"],
)  # fmt: skip
def test_secrets_of_a_file_are_in_no_difference(line: str) -> None:
    there = f"{line}\n/dev/sda2 none swap sw 0 0\n"
    own = replace(facts(), files={"/etc/fstab": there.encode()})
    assert "hunter2" not in str(files.file_step(own, "/etc/fstab", files.without_swap(there)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("UUID=1 none swap sw 0 0\n", "# UUID=1 none swap sw 0 0\n"),
        ("  /swap\tnone\tswap\tsw\n/dev/a / ext4 x 0 1", "#   /swap\tnone\tswap\tsw\n/dev/a / ext4 x 0 1"),
        ("# /dev/b none swap sw\n/dev/swap /data ext4 x\n", "# /dev/b none swap sw\n/dev/swap /data ext4 x\n"),
    ],
)
def test_swap_areas_become_comments(before: str, after: str) -> None:
    assert files.without_swap(before) == after


@given(st.text(alphabet="# \t\nab/swap", max_size=80))
def test_swap_is_taken_out_once(text: str) -> None:
    assert files.without_swap(files.without_swap(text)) == files.without_swap(text)


def test_several_control_planes_join_the_one_that_is_there() -> None:
    bare = {"a": of_host(1), "b": of_host(2), "c": of_host(3)}
    chosen = hosts(THREE_PLANES + "kubernetes: {endpoint: 10.0.0.9}\n")
    begun = plans(chosen, **{**bare, "b": replace(bare["b"], leftovers=("/etc/kubernetes/admin.conf",))})
    assert titles(begun["a"])[-1] == "join b as a control plane"
    assert not any(each.obstacles for each in begun.values())
    text = kubeadm.init_text(ours.MARK, chosen, chosen.hosts[0], "10.0.0.1", "10.0.0.9:6443")
    assert "controlPlaneEndpoint: 10.0.0.9:6443" in text


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("sudo=free", "sudo=refused", "sudo asks admin for a password, or is not there"),
        ("manager=apt-get", "manager=dnf", "packages are planned for apt-get, and it has dnf"),
        ("manager=apt-get\n", "", "it has no package manager"),
        ("tool=systemctl\n", "", "it has no systemd"),
    ],
)
def test_what_stands_in_the_way_is_told(old: str, new: str, says: str) -> None:
    (obstacle,) = plans(hosts(), head=of_host(1), gpu1=of_host(2, (old, new)))["gpu1"].obstacles
    assert says in obstacle


def test_roles_without_steps_say_so() -> None:
    chosen = hosts("hosts: {s: {address: 10.0.0.2, roles: [storage, hadoop]}}")
    plan = plans(chosen, s=facts(("manager=apt-get\n", "")))["s"]
    assert not plan.steps and not plan.obstacles
    assert plan.notes == (
        "Steps for the role storage are not planned yet.",
        "The list has no section hadoop, so nothing is installed for the role hadoop.",
    )
