"""Several control planes: a balancer on each host, who begins the cluster, and how the others join it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
import yaml

from corral.deploy.checks import ours
from corral.deploy.checks.connection import Refusal
from corral.deploy.checks.facts import Facts, Service
from corral.deploy.checks.report import Seen, Survey, findings_of
from corral.deploy.hosts.reader import Hosts
from corral.deploy.remote.joining import joining_text
from corral.deploy.remote.ssh import NotReached
from corral.deploy.steps import balancer, files
from corral.deploy.steps.plan import plan_of
from corral.deploy.steps.step import HostPlan, Joining
from tests.deploy.facts import hosts, installed, of_host

LIST = """\
hosts:
  a: {address: 10.0.0.1, roles: [control-plane]}
  b: {address: 10.0.0.2, roles: [control-plane]}
  c: {address: 10.0.0.3, roles: [control-plane, worker]}
  d: {address: 10.0.0.4, roles: [worker]}
"""
WITH_ADDRESS = LIST + "kubernetes: {endpoint: 10.0.0.9}\n"
NUMBER = {"a": 1, "b": 2, "c": 3, "d": 4}
KEY, TOKEN = "c" * 64, "abcdef.0123456789abcdef"
COMMAND = f"kubeadm join 127.0.0.1:6444 --token {TOKEN} --discovery-token-ca-cert-hash sha256:{'b' * 64}"


def bare(*names: str) -> dict[str, Facts]:
    return {name: of_host(NUMBER[name]) for name in names}


def running(chosen: Hosts, *names: str, leader: str = "a") -> dict[str, Facts]:
    """Hosts on which every step was done; `leader` began the cluster."""
    found = {}
    for name, own in bare(*names).items():
        done = installed(own, chosen, name == leader)
        more = {
            ours.BALANCER_FILE: balancer.configuration(chosen, bare(*NUMBER), own),
            ours.BALANCER_UNIT_FILE: balancer.UNIT,
        }
        plane = "/etc/kubernetes/admin.conf"
        found[name] = replace(
            done,
            packages={**done.packages, "haproxy": "2.6"},
            files={**done.files, **{path: text.encode() for path, text in more.items()}},
            services={**done.services, "corral-balancer": Service("active", "enabled")},
            leftovers=(*done.leftovers, *(() if name == "d" or plane in done.leftovers else (plane,))),
            joined="127.0.0.1",
        )  # fmt: skip
    return found


def plans(chosen: Hosts, known: dict[str, Facts]) -> dict[str, HostPlan]:
    return {each.name: each for each in plan_of(chosen, survey(chosen, known))}


def survey(chosen: Hosts, known: dict[str, Facts]) -> Survey:
    lost = {host.name: Refusal("it is off", "") for host in chosen.hosts if host.name not in known}
    return Survey({name: Seen(each, 0.0, 0.0) for name, each in known.items()}, lost)


def titles(plan: HostPlan) -> list[str]:
    return [step.title for step in plan.steps if step.needed]


def test_the_first_begins_the_cluster_at_its_balancer_and_the_others_join_it_as_control_planes() -> None:
    found = plans(hosts(LIST), bare(*NUMBER))
    assert {name: titles(plan)[-1] for name, plan in found.items()} == {
        "a": "apply the pods' network (flannel)", "b": "join a as a control plane", "c": "join a as a control plane",
        "d": "join a as a worker",
    }  # fmt: skip
    documents = next(step for step in found["a"].steps if step.title.endswith(files.KUBEADM_FILE))
    assert b"controlPlaneEndpoint: 127.0.0.1:6444" in documents.content
    for name, plan in found.items():
        assert {"write /etc/kubernetes/corral-balancer.cfg", "enable and start corral-balancer"} <= set(titles(plan)), (
            name
        )
        assert "haproxy" in titles(plan)[0] and not plan.obstacles
    joining = next(step.joining for step in found["b"].steps if step.joining)
    assert joining == Joining("a", False, "127.0.0.1:6444", "10.0.0.2", plane=True)


def test_a_balancer_leads_to_every_control_plane_that_is_ready() -> None:
    text = balancer.configuration(hosts(LIST), bare("a", "b"), of_host(4))
    assert [line for line in text.splitlines() if line.startswith("  server ")] == [
        "  server a 10.0.0.1:6443", "  server b 10.0.0.2:6443", "  server c 10.0.0.3:6443",
    ]  # fmt: skip
    assert "bind 127.0.0.1:6444\n" in text and "httpchk GET /readyz" in text
    six = hosts(LIST.replace("{address: 10.0.0.1,", "{address: 10.0.0.1, internalAddress: 'fd00::1',"))
    assert "  server a [fd00::1]:6443\n" in balancer.configuration(six, bare("a"), of_host(4))


def test_a_control_plane_that_was_not_reached_keeps_its_line() -> None:
    chosen = hosts(LIST.replace("address: 10.0.0.1,", "address: head.example,"))
    own = replace(
        of_host(4), files={ours.BALANCER_FILE: b"listen x\n  server a 10.9.9.9:6443\n  server b [fd00::2]:6443\n"}
    )
    assert ours.balanced_servers(own) == {"a": "10.9.9.9", "b": "fd00::2"}
    assert "  server a 10.9.9.9:6443\n" in balancer.configuration(chosen, bare("b"), own)
    assert "  server a head.example:6443\n" in balancer.configuration(chosen, bare("b"), of_host(4))


def test_an_address_that_reaches_any_of_them_needs_no_balancer() -> None:
    found = plans(hosts(WITH_ADDRESS), bare(*NUMBER))
    assert not any("balancer" in title or "haproxy" in title for plan in found.values() for title in titles(plan))
    assert next(step.joining for step in found["d"].steps if step.joining).endpoint == "10.0.0.9:6443"


@pytest.mark.parametrize("document", [LIST, WITH_ADDRESS])
def test_a_cluster_that_stands_needs_nothing_also_while_a_control_plane_is_off(document: str) -> None:
    chosen = hosts(document)
    known = running(chosen, *NUMBER)
    assert {name: titles(plan) for name, plan in plans(chosen, known).items()} == {name: [] for name in NUMBER}
    del known["a"]
    found = plans(chosen, known)
    assert [titles(found[name]) for name in "bcd"] == [[], [], []], "what is once in a cluster is left to a"
    assert not any(found[name].bars for name in "bcd")


def test_the_rest_of_a_cluster_goes_to_another_control_plane_once_the_lost_one_is_off_the_list() -> None:
    chosen = hosts(LIST.replace("a: {address: 10.0.0.1", "e: {address: 10.0.0.5"))
    known = running(hosts(LIST), "b", "c", "d") | {"e": of_host(5)}
    found = plans(chosen, known)
    assert titles(found["e"])[-1] == "join b as a control plane"
    assert titles(found["b"])[-1] == "apply the pods' network (flannel)"
    assert {"change /etc/kubernetes/corral-balancer.cfg", "restart corral-balancer"} <= set(titles(found["d"]))


def test_no_second_cluster_is_begun_while_a_control_plane_is_silent() -> None:
    found = plans(hosts(LIST), bare("a", "c", "d"))
    assert found["a"].bars == ("b may have the cluster already, and was not reached",)
    assert not found["c"].bars and not found["d"].bars


def test_a_control_plane_that_was_cut_while_it_joined_begins_no_cluster() -> None:
    chosen = hosts(LIST)
    cut = replace(running(chosen, "b")["b"], unfinished=frozenset({ours.UNFINISHED_NODE}))
    found = plans(chosen, bare("a", "c", "d") | {"b": cut})
    assert titles(found["b"])[-1] == "join a as a control plane"
    assert "init --config /etc/kubernetes/corral.yaml" in titles(found["a"])


def test_a_cluster_that_was_begun_with_one_control_plane_takes_no_others() -> None:
    alone = hosts(
        LIST.replace("[control-plane]}\n  c", "[worker]}\n  c").replace("[control-plane, worker]", "[worker]")
    )
    head = installed(of_host(1), alone, True)
    found = plans(hosts(LIST), bare("b", "c", "d") | {"a": head})
    assert "begun with a as its only control plane" in found["b"].bars[0]
    assert not found["a"].bars and not found["d"].bars
    documents = next(step for step in found["a"].steps if files.KUBEADM_FILE in step.title)
    assert not documents.needed, "the file goes on telling how the cluster was begun"


def test_a_node_whose_balancer_leads_elsewhere_is_of_another_cluster() -> None:
    chosen = hosts(LIST)
    known = running(chosen, *NUMBER)

    def remains() -> list[str]:
        return [each.host for each in findings_of(chosen, survey(chosen, known)) if "another cluster" in each.message]

    assert remains() == []
    elsewhere = {**known["d"].files, ours.BALANCER_FILE: b"listen x\n  server a 10.9.9.9:6443\n"}
    known["d"] = replace(known["d"], files=elsewhere)
    assert remains() == ["d"]


def join(output: str, *, plane: bool) -> dict[str, object]:
    async def ask(name: str, what: str) -> tuple[int, str]:
        assert (name, what) == ("a", "make_plane_token" if plane else "make_token")
        return 0, output

    joining = Joining("a", True, "127.0.0.1:6444", "10.0.0.3", plane)
    host = hosts(LIST).hosts[2]
    document: dict[str, object] = yaml.safe_load(asyncio.run(joining_text(host, joining, ask)))
    return document


def test_a_control_plane_joins_with_the_key_of_the_certificates() -> None:
    document = join(f"corral-certificate-key {KEY}\n{COMMAND}\n", plane=True)
    local = {"advertiseAddress": "10.0.0.3", "bindPort": 6443}
    assert document["controlPlane"] == {"certificateKey": KEY, "localAPIEndpoint": local}
    node = document["nodeRegistration"]
    assert isinstance(node, dict) and node["taints"] == [], "a worker, too, so it takes tasks"
    assert "controlPlane" not in join(f"{COMMAND}\n", plane=False)


@pytest.mark.parametrize("output", [COMMAND, f"corral-certificate-key {KEY[1:]}\n{COMMAND}"])
def test_a_control_plane_without_a_key_is_a_failure_without_secrets(output: str) -> None:
    with pytest.raises(NotReached) as caught:
        join(output, plane=True)
    assert TOKEN not in str(caught.value) and KEY[1:] not in str(caught.value)
