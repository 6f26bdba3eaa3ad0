"""Facts become findings: what is missing fails with a remedy, and what is good says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.deploy.checks.between_hosts import PortTrial
from corral.deploy.checks.connection import Refusal, refusal_of
from corral.deploy.checks.facts import Facts
from corral.deploy.checks.findings import Finding
from corral.deploy.checks.on_a_host import findings_on
from corral.deploy.checks.port_rules import Call, calls_among, ports_of
from corral.deploy.checks.report import Seen, Survey, document, findings_of
from tests.deploy.facts import LIST, facts, hosts, of_host

PLANE = [("cpus=96", "cpus=1"), ("memory=1055000000", "memory=1000000")]


def alone(name: str, found: Facts, *, clock_offset: float = 0.0, document: str = LIST) -> list[Finding]:
    host = hosts(document).named(name)
    assert host is not None
    return list(findings_on(host, found, clock_offset=clock_offset))


def bad(findings: list[Finding]) -> set[tuple[str, str]]:
    return {(each.check, each.level) for each in findings if each.level != "ok"}


def beside(*found: Facts, trial: PortTrial | None = None, document: str = LIST) -> list[Finding]:
    names = [host.name for host in hosts(document).hosts]
    seen = {name: Seen(each, each.time, each.time) for name, each in zip(names, found, strict=False)}
    return findings_of(hosts(document), Survey(seen, {}, trial or PortTrial()))


def test_nothing_is_wrong_with_a_good_host() -> None:
    found = alone("gpu1", facts())
    assert not bad(found)
    assert {"ssh", "sudo", "os", "kernel", "cgroups", "swap", "clock", "ntp", "cpu", "memory", "disk", "devices", "driver",
            "runtime", "tools", "dns", "rdma"} <= {each.check for each in found}  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "check", "level", "says"),
    [
        ("sudo=free", "sudo=refused", "sudo", "failure", "sudo asks admin for a password"),
        ("sudo=free", "sudo=missing", "sudo", "failure", "sudo is not installed"),
        ("tool=systemctl\n", "", "os", "failure", "has no systemd"),
        ("arch=x86_64", "arch=riscv64", "os", "failure", "riscv64"),
        ("os=debian 12", "os=debian 11", "os", "warning", "was not tried"),
        ("os=debian 12", "os=arch ", "os", "warning", "was not tried"),
        ("kernel=6.1.0-26-amd64", "kernel=4.18.0-553.el8", "kernel", "failure", "too old"),
        ("cgroup=v2 cpuset cpu io memory", "cgroup=v2 cpuset cpu io", "cgroups", "failure", "memory are off"),
        ("cgroup=v2", "cgroup=v1", "cgroups", "warning", "version 1"),
        ("ntp=yes", "ntp=yes\nswap=2097152 /dev/sda2", "swap", "failure", "/dev/sda2 (2Gi)"),
        ("ntp=yes", "ntp=no", "ntp", "warning", "not synchronized"),
        ("cpus=96", "cpus=64", "cpu", "failure", "64 processors instead of the 96 of gpu"),
        ("memory=1055000000", "memory=528000000", "memory", "failure", "instead of the 1000Gi of gpu"),
        ("94371840 /\n", "4194304 /\n", "disk", "failure", "4Gi of 100Gi are free for /var/lib"),
        ("94371840 /\n", "10485760 /\n", "disk", "warning", "10Gi of 100Gi"),
        ("card=nvidia\ncard=nvidia", "card=nvidia", "driver", "ok", "550.54.15"),
        ("card=nvidia\ncard=nvidia\ndriver=nvidia 550.54.15\nusable=nvidia 2\n", "", "devices", "failure", "0 nvidia"),
        ("card=nvidia\n", "card=nvidia\ncard=nvidia\n", "devices", "warning", "its kind gpu has 2"),
        ("driver=nvidia 550.54.15\nusable=nvidia 2\n", "", "driver", "failure", "the driver of nvidia is not loaded"),
        ("usable=nvidia 2", "usable=nvidia 1", "driver", "failure", "has 1 of 2 devices"),
        ("tool=containerd\n", "", "runtime", "warning", "no container runtime"),
        ("tool=containerd\n", "tool=dockerd\n", "runtime", "warning", "dockerd is there, containerd is not"),
        ("tool=socat\n", "", "tools", "warning", "socat are missing"),
        ("module=br_netfilter available", "module=br_netfilter missing", "modules", "failure", "br_netfilter"),
        ("nameserver=10.0.0.53\n", "", "dns", "failure", "names no server"),
        ("resolves=yes", "resolves=no", "dns", "warning", "its own name gpu1"),
        ("rdma=4:ACTIVE", "rdma=1:DOWN", "rdma", "warning", "not active: mlx5_0"),
        ("manager=apt-get", "service=ufw active enabled", "firewall", "warning", "ufw is active"),
        ("manager=apt-get", "leftover=/etc/kubernetes/admin.conf", "remains", "failure", "/etc/kubernetes/admin.conf"),
    ],
)  # fmt: skip
def test_a_fault_is_found_with_its_remedy(old: str, new: str, check: str, level: str, says: str) -> None:
    found = [each for each in alone("gpu1", facts((old, new))) if each.check == check and each.level == level]
    assert any(says in each.message for each in found), found
    assert all(each.remedy for each in found if each.level != "ok")


@pytest.mark.parametrize(
    ("offset", "level"), [(0.0, "ok"), (0.4, "ok"), (-0.6, "warning"), (3600.0, "failure"), (-2.5, "failure")]
)
def test_a_clock_that_is_off_is_found(offset: float, level: str) -> None:
    (clock,) = [each for each in alone("gpu1", facts(), clock_offset=offset) if each.check == "clock"]
    assert clock.level == level
    assert ("ahead" in clock.message) == (offset > 0.5)


@pytest.mark.parametrize(("told", "offset"), [(100.0, 0.0), (90.0, -5.0), (97.0, 0.0), (110.0, 7.0)])
def test_a_clock_is_right_if_it_was_so_at_some_moment_of_the_look(told: float, offset: float) -> None:
    assert Seen(replace(facts(), time=told), 95.0, 103.0).clock_offset == offset


def test_a_control_plane_needs_what_kubeadm_asks_for_and_a_storage_host_does_not() -> None:
    assert {("cpu", "failure"), ("memory", "failure")} <= bad(alone("head", facts(*PLANE)))
    store = "hosts: {head: {address: 10.0.0.1, roles: [storage], dataFolder: /data/deep}}"
    small = facts(*PLANE, ("cgroup=v2", "cgroup=v1"), ("94371840 /\n", "1 /\n"))
    assert bad(alone("head", small, document=store)) == {("devices", "warning")}


def test_hosts_that_are_unlike_each_other_are_fine_together() -> None:
    assert not [each for each in beside(of_host(1), of_host(2), of_host(3)) if each.level == "failure"]


def test_a_machine_that_is_listed_twice_is_found() -> None:
    found = [each for each in beside(of_host(1), of_host(2), of_host(2)) if each.level == "failure"]
    assert [(each.host, each.check, each.message) for each in found] == [
        ("gpu2", "names", "it is the same machine as gpu1")
    ]


def test_names_ids_addresses_and_mtus_that_clash_are_found() -> None:
    copied = replace(of_host(3), machine=of_host(2).machine)
    assert any("as a copy of the same disk has" in each.message for each in beside(of_host(1), of_host(2), copied))
    namesake = replace(of_host(3), hostname="host2")
    assert any(
        "it calls itself host2, as gpu1 does" in each.message for each in beside(of_host(1), of_host(2), namesake)
    )
    taken = replace(of_host(3), addresses=of_host(2).addresses)
    assert any(
        "it has the address 10.0.0.2, as gpu1 does" in each.message for each in beside(of_host(1), of_host(2), taken)
    )
    small = of_host(3, ("interface=9000 up", "interface=1500 up"))
    (mtu,) = [each for each in beside(of_host(1), of_host(2), small) if each.check == "mtu" and each.level == "failure"]
    assert (mtu.host, mtu.message) == ("gpu2", "packets of 1500 bytes, and of 9000 on most hosts")
    inside = of_host(3, ("address=docker0 172.17.0.1/16", "address=eth1 10.244.7.1/16"))
    assert any("10.244.7.1 lies in 10.244.0.0/16" in each.message for each in beside(of_host(1), of_host(2), inside))
    other = of_host(3, ("arch=x86_64", "arch=aarch64"))
    assert any("runs on aarch64" in each.message for each in beside(of_host(1), of_host(2), other))


def test_all_pairs_that_need_a_port_are_called() -> None:
    found = hosts()
    calls = set(calls_among(found.hosts))
    assert {Call("gpu1", "head", 6443), Call("head", "gpu1", 10250), Call("gpu1", "gpu2", 10250)} <= calls
    assert not any(call.port in (2379, 2380, 8020) or call.caller == call.listener for call in calls)
    assert [ports_of(host) for host in found.hosts] == [(6443, 2379, 2380, 10250), (10250,), (10250,)]


def test_ports_that_are_closed_taken_or_untried_are_found() -> None:
    trial = PortTrial(
        bound={("head", 6443): "taken", ("gpu1", 10250): "free"},
        calls={
            Call("gpu1", "head", 6443): "open",
            Call("head", "gpu1", 10250): "silent",
            Call("gpu2", "gpu1", 10250): "silent",
            Call("gpu1", "gpu2", 10250): "open",
        },
        untried={"gpu2": "python3 is not installed"},
    )
    found = {
        each.host: each for each in beside(of_host(1), of_host(2), of_host(3), trial=trial) if each.check == "ports"
    }
    assert found["head"].message == "another program listens at port 6443, which Kubernetes' API needs"
    assert found["gpu1"].message == "port 10250 (the kubelet) is not answered from head, gpu2"
    assert (found["gpu2"].level, found["gpu2"].message) == (
        "warning",
        "its ports were not tried: python3 is not installed",
    )


def test_a_port_of_a_cluster_that_is_there_already_is_told_once() -> None:
    trial = PortTrial(bound={("head", 6443): "taken"})
    there = of_host(1, ("manager=apt-get", "leftover=/etc/kubernetes/admin.conf"))
    found = [each.check for each in beside(there, trial=trial) if each.host == "head" and each.level == "failure"]
    assert found == ["remains"]


@pytest.mark.parametrize(
    ("complaint", "says"),
    [
        (
            "@@@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @@@\nHost key verification failed.\n",
            "is not the one that was",
        ),
        ("admin@10.0.0.2: Permission denied (publickey).\n", "does not let root in"),
        ("ssh: connect to host 10.0.0.2 port 22: Connection refused\n", "nothing listens at 10.0.0.2 port 22"),
        ("ssh: connect to host 10.0.0.2 port 22: No route to host\n", "does not answer"),
        ("Connection timed out during banner exchange\nConnection to 10.0.0.2 port 22 timed out\n", "does not answer"),
        ("ssh: Could not resolve hostname x: Name or service not known\n", "has no address"),
        ("kex_exchange_identification: read: Connection reset by peer\n", "closed the connection"),
        ("Bad owner or permissions on /root/.ssh/config\n", "said: Bad owner or permissions"),
        ("Warning: Permanently added 'x' to the list\n\x1b[2Jodd\x00\n", "said: \\x1b[2Jodd\\x00"),
        ("", "said: nothing"),
    ],
)
def test_why_ssh_did_not_arrive_is_one_sentence(complaint: str, says: str) -> None:
    host = hosts("ssh: {user: root}\nhosts: {gpu1: {address: 10.0.0.2, roles: [storage]}}").hosts[0]
    found = refusal_of(host, complaint, "/lists/hosts.known_hosts")
    assert says in found.message
    assert "\n" not in found.message and found.remedy


def test_the_report_has_every_host_in_order_with_counts() -> None:
    survey = Survey(
        {"gpu1": Seen(facts(("sudo=free", "sudo=missing")), 0.0, 2e9)}, {"head": Refusal("it is off", "Turn it on.")}
    )
    told = document(hosts(), findings_of(hosts(), survey))
    assert [each["name"] for each in told["hosts"]] == ["head", "gpu1", "gpu2"]
    assert told["hosts"][0]["findings"] == [
        {"check": "ssh", "level": "failure", "message": "it is off", "remedy": "Turn it on."}
    ]
    assert told["failures"] == 2 and told["hosts"][2]["findings"] == []
