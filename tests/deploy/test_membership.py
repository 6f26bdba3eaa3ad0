"""Nodes that are added and removed: what is to be done of each, and what a failure says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from corral.deploy.checks.before_up import OF_NEW_NODES, refusals_before_up
from corral.deploy.checks.report import Seen, Survey
from corral.deploy.remote import asking
from corral.deploy.steps.kubeadm import CLOSED, join_text
from corral.deploy.steps.membership import (
    EMPTY,
    FORGET,
    RESET,
    GarbledNodes,
    Node,
    closed_joining,
    parse_nodes,
    refusal_of_drain,
    refusal_of_validation,
    steps_of_removal,
)
from corral.deploy.steps.step import HostPlan, Joining, Step
from corral.model.cordons import VALIDATING
from tests.deploy.facts import hosts, of_host

TOLD = (
    "corral-nodes begin 2\nhead\t\tnode-role.kubernetes.io/control-plane\tTrue\tv1.34.4\t\n"
    "gpu1\ttrue\ta b\tUnknown\todd version\tfalse\ncorral-nodes end 2\n"
)
NODES = {"gpu1": Node("gpu1", False, frozenset(), True)}


def test_nodes_are_read_with_their_taints() -> None:
    assert parse_nodes(TOLD) == {
        "head": Node("head", False, frozenset({"node-role.kubernetes.io/control-plane"}), True, "v1.34.4", False),
        "gpu1": Node("gpu1", True, frozenset({"a", "b"}), False, "", True),
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "error: no\n",
        TOLD.replace("corral-nodes end 2\n", ""),
        TOLD.replace("gpu1", "-o"),
        TOLD.replace("True", "a\tb"),
    ],
)
def test_what_is_no_list_of_nodes_is_refused(text: str) -> None:
    with pytest.raises(GarbledNodes):
        parse_nodes(text)


def test_a_node_joins_with_the_taint_that_a_validation_of_corral_tolerates() -> None:
    assert CLOSED == VALIDATING
    host = hosts().hosts[1]
    for closed, taints in ((True, [{"key": CLOSED, "effect": "NoSchedule"}]), (False, None)):
        document = yaml.safe_load(join_text(host, "10.0.0.2", "10.0.0.1:6443", "a.b", "c", closed=closed))
        assert document["nodeRegistration"].get("taints") == taints


def test_only_the_step_that_joins_is_changed_where_a_node_joins_closed() -> None:
    joining = Joining("head", True, "10.0.0.1:6443", "10.0.0.2")
    plan = HostPlan("gpu1", ("worker",), (Step("package", "install"), Step("kubeadm", "join", joining=joining)))
    first, second = closed_joining(plan).steps
    assert first == plan.steps[0] and second.joining is not None and second.joining.closed


@pytest.mark.parametrize(
    ("name", "stands", "lost", "steps"),
    [
        ("gpu1", True, False, (EMPTY, RESET, FORGET)),
        ("gpu1", False, False, (FORGET,)),
        ("gpu2", True, False, (RESET,)),
        ("gpu2", False, False, ()),
        ("gpu1", False, True, (FORGET,)),
        ("gpu2", False, True, ()),
    ],
)
def test_a_removal_that_was_cut_has_only_what_is_left(
    name: str, stands: bool, lost: bool, steps: tuple[str, ...]
) -> None:
    assert steps_of_removal(name, NODES, stands=stands, lost=lost) == steps


def test_tasks_that_keep_a_node_from_being_drained_are_named() -> None:
    said = (
        "node/gpu2 cordoned\n"
        'error: unable to drain node "gpu2" due to error: cannot delete cannot delete Pods that declare no controller '
        "(use --force to override): a/1, a/2, a/3, b/4, continuing command...\nThere are pending nodes to be drained:\n"
        " gpu2\ncannot delete cannot delete Pods that declare no controller (use --force to override): a/1, a/2, a/3, b/4\n"
    )
    refusal = refusal_of_drain("gpu2", said, 600)
    assert refusal.message == "tasks run on it that nobody would start again: a/1, a/2, a/3 and 1 more"
    assert "corral drain kubernetes/gpu2" in refusal.remedy and "--end-tasks" in refusal.remedy
    late = refusal_of_drain("gpu2", "There are pending pods: global timeout reached: 10m0s", 600)
    assert late.message == "its pods did not end within 600 s"
    assert refusal_of_drain("gpu2", "error: broken\n", 600).message == "it could not be drained: error: broken"


def test_a_node_that_is_not_validated_says_what_is_missing() -> None:
    said = 'pod/x created\nEvents: none\ncorral: no way to the DNS\npod "x" deleted\n'
    assert refusal_of_validation(said).message.endswith("a pod on it does not reach the DNS of the cluster")
    assert "8472" in refusal_of_validation(said).remedy
    assert refusal_of_validation("error: odd\n").message == "it has joined and is not offered: error: odd"


def test_a_node_is_added_only_as_the_list_describes_it() -> None:
    few = of_host(2, ("card=nvidia\ncard=nvidia", "card=nvidia"), ("usable=nvidia 2", "usable=nvidia 1"))
    survey = Survey({"head": Seen(of_host(1), 0, 0), "gpu1": Seen(few, few.time, few.time)})
    assert refusals_before_up(hosts(), survey, ("clock",)) == {}
    refused = refusals_before_up(hosts(), survey, ("clock",), OF_NEW_NODES)
    assert refused["gpu1"].message == "devices: 1 nvidia device instead of the 2 of gpu"
    assert refusals_before_up(hosts(), survey, ("clock", "devices"), OF_NEW_NODES) == {}


def test_the_pod_that_validates_a_node_is_one_that_only_its_kubelet_judges() -> None:
    functions = Path(asking.__file__).with_name("nodes.sh").read_text()
    script = f"{functions}\nvalidation_pod pod gpu1 pause:1 10.96.0.10\n"
    pod = yaml.safe_load(subprocess.run(["sh"], input=script, capture_output=True, text=True, check=True).stdout)
    assert pod["spec"]["nodeName"] == "gpu1" and pod["spec"]["tolerations"] == [{"operator": "Exists"}]
    (container,) = pod["spec"]["containers"]
    assert container["readinessProbe"]["tcpSocket"] == {"host": "10.96.0.10", "port": 53}


def test_the_flag_of_the_taint_is_taken_out_and_the_others_stay(tmp_path: Path) -> None:
    functions = Path(asking.__file__).with_name("nodes.sh").read_text()
    flags = tmp_path / "flags"
    script = re.sub("/var/lib/kubelet/kubeadm-flags.env", str(flags), functions) + f"\nforget_taint {CLOSED}\n"
    for before in (
        f'A="--node-ip=1 --register-with-taints={CLOSED}=:NoSchedule"\n',
        f'A="--register-with-taints={CLOSED}=:NoSchedule --node-ip=1"\n',
        'A="--node-ip=1"\n',
    ):
        flags.write_text(before)
        subprocess.run(["sh", "-e"], input=script, text=True, check=True)
        assert flags.read_text().replace(" ", "") == 'A="--node-ip=1"\n'
