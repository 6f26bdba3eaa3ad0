"""Which hosts `up` leaves out for what the check found, and which it does not."""

from __future__ import annotations

import pytest

from corral.deploy.checks.before_up import needs_ports, passed_over, refusals_before_up
from corral.deploy.checks.between_hosts import PortTrial
from corral.deploy.checks.connection import Refusal
from corral.deploy.checks.facts import Facts, parse_facts
from corral.deploy.checks.ours import HADOOP_FILE
from corral.deploy.checks.port_rules import Call
from corral.deploy.checks.report import Seen, Survey, findings_of
from tests.deploy.facts import hosts, of_host, text

UNIT = "file=/etc/systemd/system/kubelet.service IyBXcml0dGVuIGJ5IGNvcnJhbCBkZXBsb3kuCltVbml0XQo="
"""A unit that begins with the mark of `up`."""
NODE = ("manager=apt-get", f"{UNIT}\nleftover=/etc/kubernetes/kubelet.conf\njoined=https://10.0.0.1:6443")


def seen(*found: Facts, trial: PortTrial | None = None, late: float = 0.0) -> Survey:
    """A survey of the hosts head, gpu1 and gpu2, of which the second has a clock that is late."""
    at = {name: Seen(each, each.time, each.time) for name, each in zip(("head", "gpu1", "gpu2"), found, strict=False)}
    if late:
        facts = at["gpu1"].facts
        at["gpu1"] = Seen(facts, facts.time + late, facts.time + late)
    return Survey(at, {}, trial or PortTrial())


def left_out(
    *found: Facts, trial: PortTrial | None = None, late: float = 0.0, skipped: tuple[str, ...] = ()
) -> dict[str, Refusal]:
    return refusals_before_up(hosts(), seen(*found, trial=trial, late=late), skipped)


def test_no_good_host_is_left_out() -> None:
    assert left_out(of_host(1), of_host(2), of_host(3)) == {}


@pytest.mark.parametrize(
    ("old", "new", "check"),
    [
        ("sudo=free", "sudo=refused", "sudo"),
        ("tool=systemctl\n", "", "os"),
        ("kernel=6.1.0-26-amd64", "kernel=4.18.0", "kernel"),
        ("cgroup=v2 cpuset cpu io memory", "cgroup=v2 cpuset cpu io", "cgroups"),
        ("94371840 /\n", "4194304 /\n", "disk"),
        ("nameserver=10.0.0.53\n", "", "dns"),
        ("module=br_netfilter available", "module=br_netfilter missing", "modules"),
        ("manager=apt-get", "leftover=/etc/kubernetes/admin.conf", "remains"),
        ("machine=02", "machine=01", "names"),
        ("hostname=host2", "hostname=host1", "names"),
        ("address=eth0 10.0.0.2", "address=eth0 10.0.0.1", "addresses"),
    ],
)
def test_a_host_that_would_not_become_a_node_is_left_out_alone(old: str, new: str, check: str) -> None:
    refused = left_out(of_host(1), _changed(old, new), of_host(3))
    assert list(refused) == ["gpu1"]
    assert refused["gpu1"].message.startswith(f"{check}: ") and "\n" not in refused["gpu1"].message
    assert refused["gpu1"].remedy.endswith(f"--skip-check {check}.")
    assert left_out(of_host(1), _changed(old, new), of_host(3), skipped=(check,)) == {}
    assert left_out(of_host(1), _changed(old, new), of_host(3), skipped=("all",)) == {}


def _changed(old: str, new: str) -> Facts:
    """The facts of the second host with a part of their text replaced."""
    return parse_facts(text(("hostname=gpu1", "hostname=host2"), ("machine=3d", "machine=02"), (old, new)).encode())


def test_a_clock_that_is_off_by_an_hour_keeps_a_host_out_also_one_that_is_a_node() -> None:
    for own in (of_host(2), of_host(2, NODE)):
        refused = left_out(of_host(1), own, of_host(3), late=3600)
        assert refused["gpu1"].message == "clock: the clock is 3600.0 s behind of this machine's"


def test_swap_and_a_missing_device_keep_no_host_out_and_the_latter_is_told_of() -> None:
    own = of_host(
        2,
        ("ntp=yes", "ntp=yes\nswap=2097152 /dev/sda2"),
        ("card=nvidia\ncard=nvidia", "card=nvidia"),
        ("usable=nvidia 2", "usable=nvidia 1"),
    )
    assert left_out(of_host(1), own, of_host(3)) == {}
    told = passed_over(hosts(), seen(of_host(1), own, of_host(3)), {"gpu1"})
    assert [each.check for each in told] == ["devices"]
    assert passed_over(hosts(), seen(of_host(1), own, of_host(3)), {"gpu2"}) == []


def test_a_node_of_this_cluster_is_not_refused_for_what_it_has_itself() -> None:
    node = of_host(2, NODE, ("94371840 /\n", "4194304 /\n"))
    trial = PortTrial(bound={("gpu1", 10250): "taken"}, calls={Call("head", "gpu1", 10250): "refused"})
    assert left_out(of_host(1), node, of_host(3), trial=trial) == {}
    found = [each for each in findings_of(hosts(), seen(of_host(1), node)) if each.check == "remains"]
    assert [(each.level, each.message) for each in found] == [("ok", "up made it a node")]


def test_what_a_cut_up_left_running_is_not_another_program() -> None:
    begun = of_host(2, ("manager=apt-get", f"{UNIT}\nunfinished=kubeadm"))
    trial = PortTrial(bound={("gpu1", 10250): "taken"})
    assert left_out(of_host(1), begun, of_host(3), trial=trial) == {}
    prepared = of_host(2, ("manager=apt-get", UNIT))
    assert "another program" in left_out(of_host(1), prepared, of_host(3), trial=trial)["gpu1"].message


def test_a_node_of_another_list_is_left_out() -> None:
    other = of_host(2, NODE, ("https://10.0.0.1:6443", "https://[fd00::9]:6443"))
    refused = left_out(of_host(1), other, of_host(3))
    assert refused["gpu1"].message == "remains: it is a node of another cluster, at fd00::9"
    alone = Survey({"gpu1": Seen(other, other.time, other.time)})
    assert refusals_before_up(hosts(), alone, ()) == {}, "it may be that of a control plane that is off"


def test_of_two_that_clash_the_node_stays() -> None:
    copy, node = of_host(9), of_host(9, NODE)
    assert list(left_out(of_host(1), copy, node)) == ["gpu1"]
    assert list(left_out(of_host(1), node, copy)) == ["gpu2"]


@pytest.mark.parametrize(
    ("call", "out"),
    [
        (Call("gpu1", "head", 6443), ["gpu1"]),
        (Call("head", "gpu1", 10250), ["gpu1"]),
        (Call("gpu1", "gpu2", 10250), []),
        (Call("gpu1", "head", 8020), []),
    ],
)
def test_a_closed_way_to_the_control_plane_keeps_the_other_host_out(call: Call, out: list[str]) -> None:
    refused = left_out(of_host(1), of_host(2), of_host(3), trial=PortTrial(calls={call: "silent"}))
    assert list(refused) == out
    if out:
        assert f"port {call.port}" in refused[out[0]].message and "is not answered from" in refused[out[0]].message


def test_ports_are_tried_only_for_hosts_that_are_no_nodes_and_have_work() -> None:
    node = parse_facts(text(NODE).encode())
    survey = seen(node, of_host(2))
    assert needs_ports(hosts(), survey, ["head", "gpu1"], ())
    assert not needs_ports(hosts(), survey, ["head"], ()), "no trial of ports keeps a node out"
    assert not needs_ports(hosts(), survey, ["gpu2"], ()), "it did not answer"
    assert not needs_ports(hosts(), survey, [], ()) and not needs_ports(hosts(), survey, ["gpu1"], ("all",))


HADOOP = """\
hosts:
  head: {address: 10.0.0.1, roles: [control-plane]}
  gpu1: {address: 10.0.0.2, roles: [worker, hadoop]}
hadoop: {master: gpu1}
"""
JAVA = f"file={HADOOP_FILE} IyBXcml0dGVuIGJ5IGNvcnJhbCBkZXBsb3kuCg=="


@pytest.mark.parametrize("cluster", [NODE, ("manager=apt-get", "leftover=/etc/kubernetes/kubelet.conf")])
def test_another_program_at_a_port_of_hadoop_is_found_on_a_node_of_kubernetes(cluster: tuple[str, str]) -> None:
    trial = PortTrial(bound={("gpu1", 8020): "taken", ("gpu1", 10250): "taken"})
    refused = refusals_before_up(hosts(HADOOP), seen(of_host(1), of_host(2, cluster), trial=trial), ["remains"])
    message = "ports: another program listens at port 8020, which HDFS' NameNode needs"
    assert {name: each.message for name, each in refused.items()} == {"gpu1": message}
    begun = of_host(2, cluster, ("cgroup=v2", f"{JAVA}\ncgroup=v2"))
    assert refusals_before_up(hosts(HADOOP), seen(of_host(1), begun, trial=trial), ["remains"]) == {}


def test_ports_are_tried_for_a_node_that_has_no_hadoop_yet() -> None:
    node = of_host(2, NODE)
    assert needs_ports(hosts(HADOOP), seen(of_host(1, NODE), node), ["gpu1"], ())
    assert not needs_ports(hosts(HADOOP), seen(of_host(1, NODE), node), ["head"], ())
    begun = of_host(2, NODE, ("cgroup=v2", f"{JAVA}\ncgroup=v2"))
    assert not needs_ports(hosts(HADOOP), seen(of_host(1, NODE), begun), ["gpu1"], ())
