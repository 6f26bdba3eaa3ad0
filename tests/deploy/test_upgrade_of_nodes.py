"""The upgrade of a cluster: its order, what keeps it from beginning, and what a cut leaves to be done."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from corral.deploy.checks.before_up import OF_UPGRADES, STOPPING, refusals_before_up
from corral.deploy.checks.facts import Facts
from corral.deploy.checks.report import Seen, Survey
from corral.deploy.hosts.reader import Hosts
from corral.deploy.remote import asking
from corral.deploy.steps.bundle import (
    KUBERNETES,
    PLUGINS,
    PLUGINS_FOLDER,
    PROGRAMS,
    RUNTIME,
    Bundle,
    BundleFile,
    ImageArchive,
)
from corral.deploy.steps.kubeadm import CLOSED
from corral.deploy.steps.membership import Node
from corral.deploy.steps.plan import plan_of, upgrade_plan_of
from corral.deploy.steps.step import HostPlan
from corral.deploy.steps.upgrade import (
    CLOSE,
    RETURN,
    VALIDATE,
    images_of,
    named,
    obstacles_to_upgrade,
    parse_tasks,
    rest_of,
    steps_of_upgrade,
)
from tests.deploy.facts import LIST, hosts, installed, of_host

TARGET = "v1.34.5"
API_SERVER, PROXY = f"registry.k8s.io/kube-apiserver:{TARGET}", f"registry.k8s.io/kube-proxy:{TARGET}"
ORDER = [
    "import the image registry.k8s.io/kube-proxy:v1.34.5",
    "install kubeadm",
    "upgrade node to v1.34.5",
    "install kubelet and kubectl",
    "restart kubelet",
]


def asked(version: str = "1.34.5") -> Hosts:
    return hosts(f"{LIST}kubernetes: {{version: {version}}}\n")


def bundle(mark: str = "new", version: str = TARGET) -> Bundle:
    """A bundle whose Kubernetes has another digest than that of the nodes."""
    files = [BundleFile(Path(name), f"{PROGRAMS}/{name}", "same", 1) for name in RUNTIME]
    files += [BundleFile(Path(name), f"{PROGRAMS}/{name}", mark, 1) for name in KUBERNETES]
    files += [BundleFile(Path(name), f"{PLUGINS_FOLDER}/{name}", "same", 1) for name in PLUGINS]
    names = [API_SERVER.replace(TARGET, version), PROXY.replace(TARGET, version)]
    archives = [ImageArchive(BundleFile(Path("x"), "x.tar", mark, 1), {name: f"sha256:{mark}"}) for name in names]
    return Bundle("x86_64", tuple(files), tuple(archives))


def node(number: int, *, first: bool = False, version: str = "v1.34.4", mark: str = "old") -> Facts:
    """A node of a cluster of this version, whose programs have this mark."""
    own = installed(of_host(number), hosts(), first)
    there = bundle(mark)
    return replace(
        own,
        programs={each.target: each.digest for each in there.programs},
        versions={"containerd": "v2.1.9", "kubeadm": version, "kubelet": version},
        images={} if mark == "old" else dict(there.images),
    )


def nodes(version: str = "v1.34.4") -> dict[str, Node]:
    return {name: Node(name, False, frozenset(), True, version) for name in ("head", "gpu1", "gpu2")}


def survey(**known: Facts) -> Survey:
    return Survey({name: Seen(each, each.time, each.time) for name, each in known.items()})


def plans(chosen: Hosts, given: Bundle, **known: Facts) -> dict[str, HostPlan]:
    return {plan.name: plan for plan in upgrade_plan_of(chosen, survey(**known), given)}


def cluster() -> dict[str, Facts]:
    return {"gpu2": node(3), "gpu1": node(2), "head": node(1, first=True)}


def test_control_planes_come_first_and_kubeadm_before_the_kubelet() -> None:
    found = plans(asked(), bundle(), **cluster())
    assert list(found) == ["head", "gpu1", "gpu2"]
    assert [step.title for step in found["gpu1"].doable] == ORDER
    assert [step.title for step in found["head"].doable] == [
        "import 2 images", "install kubeadm", "change /etc/kubernetes/corral.yaml", "upgrade apply v1.34.5",
        "install kubelet and kubectl", "restart kubelet",
    ]  # fmt: skip
    titles = steps_of_upgrade(found["gpu1"], nodes()["gpu1"], TARGET)
    assert titles[:2] == (ORDER[0], CLOSE) and titles[-2:] == (VALIDATE, RETURN)
    assert [step.title for step in images_of(found["gpu1"]).doable] == ORDER[:1]
    assert [step.title for step in rest_of(found["gpu1"]).doable] == ORDER[1:]


def test_up_leaves_to_the_upgrade_what_is_of_another_version() -> None:
    found = {plan.name: plan for plan in plan_of(asked(), survey(**cluster()), bundle())}
    assert "corral deploy upgrade does" in found["gpu1"].bars[0]
    assert not plans(asked(), bundle(), **cluster())["gpu1"].bars


@pytest.mark.parametrize(
    ("mark", "left"),
    [
        ({"upgrade"}, ["upgrade node to v1.34.5"]),
        ({"kubelet"}, ["restart kubelet"]),
        (set(), []),
    ],
)
def test_a_cut_upgrade_has_only_what_is_left(mark: set[str], left: list[str]) -> None:
    own = replace(node(2, version=TARGET, mark="new"), unfinished=frozenset(mark))
    plan = plans(asked(), bundle(), head=node(1, first=True), gpu1=own)["gpu1"]
    assert [step.title for step in plan.doable] == left
    upgraded = nodes(TARGET)["gpu1"]
    assert steps_of_upgrade(plan, upgraded, TARGET)[-2:] == ((VALIDATE, RETURN) if left else ())
    cut_at_the_end = replace(upgraded, noted=True, cordoned=True)
    assert steps_of_upgrade(plan, cut_at_the_end, TARGET)[-2:] == (VALIDATE, RETURN)


@pytest.mark.parametrize("name", ["containerd", "kubelet"])
def test_a_program_of_the_bundle_that_did_not_tell_its_version_in_time_is_not_restarted(name: str) -> None:
    own = node(2, version=TARGET, mark="new")
    silent, other = ({**own.versions, name: told} for told in ("", "v1.0.0"))
    for versions, restarted in ((silent, []), (other, [f"restart {name}"])):
        plan = plans(asked(), bundle(), head=node(1, first=True), gpu1=replace(own, versions=versions))["gpu1"]
        assert [step.title for step in plan.doable] == restarted


def test_a_node_is_not_emptied_for_what_its_pods_do_not_notice() -> None:
    own = replace(node(2, version=TARGET, mark="new"), images={})
    plan = plans(asked(), bundle(), head=node(1, first=True), gpu1=own)["gpu1"]
    assert steps_of_upgrade(plan, nodes(TARGET)["gpu1"], TARGET) == (f"import the image {PROXY}",)


@pytest.mark.parametrize(
    ("version", "there", "says"),
    [
        ("1.34.5", nodes("v1.34.6"), {"head", "gpu1", "gpu2"}),
        ("1.36.0", nodes(), {"head"}),
        ("1.38.0", nodes(), {"head", "gpu1", "gpu2"}),
        ("1.35.0", nodes(), set()),
        ("1.34.5", nodes() | {"gpu1": Node("gpu1", False, frozenset(), False, "v1.34.4")}, {"gpu1"}),
        ("1.34.5", nodes() | {"gpu1": Node("gpu1", True, frozenset(), False, "v1.34.4", True)}, set()),
        ("1.34.5", nodes() | {"gpu1": Node("gpu1", False, frozenset({CLOSED}), True, "v1.34.4")}, {"gpu1"}),
        ("1.34.5", {"head": nodes()["head"]}, {"gpu1", "gpu2"}),
        ("1.34.5", nodes() | {"gpu2": Node("gpu2", False, frozenset(), True, "")}, {"gpu2"}),
    ],
)  # fmt: skip
def test_an_upgrade_begins_only_where_it_can_be_ended(version: str, there: dict[str, Node], says: set[str]) -> None:
    chosen, given = asked(version), bundle(version=f"v{version}")
    order = list(plans(chosen, given, **cluster()).values())
    assert obstacles_to_upgrade(chosen, given, order, there, nodes().keys()).keys() == says


def test_a_bundle_of_another_version_than_the_list_is_refused() -> None:
    order = list(plans(asked("1.35.0"), bundle(), **cluster()).values())
    found = obstacles_to_upgrade(asked("1.35.0"), bundle(), order, nodes(), {"head"})
    assert found.keys() == {"head"}
    assert found["head"].message == "the bundle has kube-apiserver v1.34.5, and the list asks for v1.35.0"


def test_a_worker_waits_for_its_control_plane() -> None:
    order = list(plans(asked(), bundle(), **cluster()).values())
    found = obstacles_to_upgrade(asked(), bundle(), order, nodes(), {"gpu1"})
    assert found["gpu1"].message == "the control plane head is not upgraded yet"
    done = nodes() | {"head": nodes(TARGET)["head"]}
    assert not obstacles_to_upgrade(asked(), bundle(), order, done, {"gpu1"})


def test_a_full_disk_keeps_a_node_from_being_upgraded_and_not_from_up() -> None:
    full = of_host(2, ("mount=104857600 94371840 /", "mount=104857600 1024 /"))
    own = replace(installed(full, hosts(), False), mounts=full.mounts)
    looked = survey(head=node(1, first=True), gpu1=own)
    assert "gpu1" not in refusals_before_up(asked(), looked, ())
    assert refusals_before_up(asked(), looked, (), STOPPING, OF_UPGRADES)["gpu1"].message.startswith("disk: ")


def test_tasks_that_a_node_is_waited_for_are_read_and_named() -> None:
    text = "node/gpu2 cordoned\ncorral-tasks begin\na/1 \na/2 \n\ncorral-tasks end\n"
    assert parse_tasks(text) == ["a/1", "a/2"]
    assert parse_tasks("corral-tasks begin\n\ncorral-tasks end\n") == []
    assert parse_tasks("error: no\n") is None and parse_tasks("corral-tasks begin\na/1\n") is None
    assert named(["a", "b\x1b[2J", "c", "d", "e"]) == "a, b[2J, c and 2 more"


def test_only_pods_that_nobody_starts_again_are_waited_for(tmp_path: Path) -> None:
    functions = Path(asking.__file__).with_name("nodes.sh").read_text()
    (tmp_path / "kubectl").write_text("#!/bin/sh\nprintf 'a/task \\nb/server ReplicaSet\\nc/etcd Node\\n'\n")
    (tmp_path / "kubectl").chmod(0o755)
    env = {"PATH": f"{tmp_path}:{Path(shutil.which('awk') or '').parent}:/usr/bin:/bin", "ADMIN": "x"}
    script = f"{functions}\nwait_for_tasks gpu1 0\n"
    done = subprocess.run(["sh"], input=script, env=env, capture_output=True, text=True, check=True)
    assert parse_tasks(done.stdout) == ["a/task"]
