"""The inventory of a cluster: resources of other pods are subtracted, and broken devices are marked."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.engines.kubernetes import inventory
from corral.engines.kubernetes.api.quantities import amount, count
from corral.engines.kubernetes.inventory import BROKEN, TAKEN, Nodes
from corral.engines.kubernetes.pods.labels import DEVICES, MOST_DEVICES, devices_of, labels_of
from corral.engines.kubernetes.settings import KubernetesSettings, settings_of
from corral.engines.kubernetes.watch.foreign_pods import Others, requests
from corral.engines.kubernetes.watch.node_structs import Node
from corral.engines.kubernetes.watch.object_copy import Change
from corral.engines.kubernetes.watch.pod_structs import Meta, OwnerReference, Pod
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId
from corral.model.inventory import Inventory, Taint
from corral.model.launch import TaskLaunch
from corral.scheduler.cluster.topology_tree import Tree

SETTINGS = KubernetesSettings("uid")
GPU = "nvidia.com/gpu"


def node(name: str = "a", gpus: int = 4, usable: int | None = None, **more: Any) -> Node:
    capacity = {"cpu": "8", "memory": "16Gi", "pods": "110", "ephemeral-storage": "1Ti", GPU: str(gpus)}
    allocatable = {**capacity, GPU: str(gpus if usable is None else usable), **more.pop("allocatable", {})}
    status = {
        "capacity": capacity,
        "allocatable": allocatable,
        "conditions": more.pop("conditions", [{"type": "Ready", "status": "True"}]),
    }
    made = {"metadata": {"name": name, "uid": name, "labels": more.pop("labels", {})}, "spec": more, "status": status}
    return msgspec.convert(made, Node)


def pod(name: str, on: str, *, phase: str = "Running", **asked: str) -> Pod:
    amounts = {key.replace("gpu", GPU): value for key, value in asked.items()}
    spec = {"nodeName": on, "containers": [{"name": "c", "resources": {"requests": amounts}}]}
    return msgspec.convert({"metadata": {"name": name, "uid": name}, "spec": spec, "status": {"phase": phase}}, Pod)


def seen(*nodes: Node, others: Others | None = None, mine: frozenset[int] = frozenset(), **settings: Any) -> Inventory:
    book = Nodes(msgspec.structs.replace(SETTINGS, **settings))
    for each in nodes:
        book.put(each)
    return book.inventory(others or Others(), lambda name: mine)


def held(*pods: Pod) -> Others:
    others = Others()
    for each in pods:
        others.fold(Change(each))
    return others


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1),
        ("1500m", 2),
        ("2Gi", 2 * 2**30),
        ("129e6", 129_000_000),
        ("1.5Ki", 1536),
        ("100n", 1),
        ("1E", 10**18),
        ("many", 0),
        ("", 0),
    ],
)
def test_quantities_are_counted_up(text: str, expected: int) -> None:
    assert amount(text) == expected


def test_processors_are_counted_in_thousandths() -> None:
    assert [count("cpu", text) for text in ("1", "250m", "0.5")] == [1000, 250, 500]


def test_a_node_with_its_devices() -> None:
    labels = {
        "topology.kubernetes.io/zone": "z1",
        "topology.kubernetes.io/rack": "r1",
        "nvidia.com/gpu.product": "H100",
    }
    (found,) = seen(node(labels=labels)).nodes
    assert found.name == "kubernetes/a"
    assert (found.cpu_millis, found.memory_bytes, found.max_tasks) == (8000, 16 * 2**30, 110)
    assert found.cells == (("zone", "z1"), ("rack", "r1"))
    assert [(device.index, device.id, device.kind, device.model) for device in found.devices] == [
        (at, f"{GPU}#{at}", "gpu", "H100") for at in range(4)
    ]


def test_what_others_hold_is_not_there_and_comes_back() -> None:
    others, book = Others(), Nodes(SETTINGS)
    book.put(node())
    taking = pod("p", "a", cpu="3", memory="1Gi", gpu="1")
    assert others.fold(Change(taking)) == "a"
    book.touch("a")
    (found,) = book.inventory(others, lambda name: frozenset()).nodes
    assert (found.cpu_millis, found.memory_bytes, found.max_tasks) == (5000, 15 * 2**30, 109)
    assert [device.health_reason for device in found.devices] == ["", "", "", TAKEN]
    assert others.fold(Change(taking)) == ""
    assert others.fold(Change(pod("p", "a", phase="Succeeded", cpu="3"))) == "a"
    book.touch("a")
    (found,) = book.inventory(others, lambda name: frozenset()).nodes
    assert (found.cpu_millis, [device.healthy for device in found.devices]) == (8000, [True] * 4)


def test_devices_of_our_own_pods_are_never_shown_as_taken() -> None:
    others = held(pod("p", "a", gpu="2"))
    (found,) = seen(node(), others=others, mine=frozenset({2, 3})).nodes
    assert [device.index for device in found.devices if not device.healthy] == [0, 1]


def test_devices_that_the_plugin_finds_broken_are_told() -> None:
    (found,) = seen(node(usable=3), others=held(pod("p", "a", gpu="1"))).nodes
    assert [device.health_reason for device in found.devices] == ["", "", TAKEN, BROKEN]


@pytest.mark.parametrize(
    ("conditions", "reason"),
    [
        (
            [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "silent"}],
            "NodeStatusUnknown",
        ),
        ([{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "no CNI"}], "no CNI"),
        ([], "not reported"),
        ([{"type": "Ready", "status": "True"}, {"type": "NetworkUnavailable", "status": "True"}], "no network"),
    ],
)
def test_a_sick_node_is_not_ready(conditions: list[dict[str, str]], reason: str) -> None:
    (found,) = seen(node(conditions=conditions)).nodes
    assert not found.ready
    assert reason in found.ready_reason


def test_taints_are_kept_but_for_those_that_say_what_ready_says_and_ours() -> None:
    keys = ("mine", "node.kubernetes.io/not-ready", "corral.dev/managed", "node.kubernetes.io/memory-pressure")
    taints = [{"key": key, "effect": "NoSchedule"} for key in keys]
    (found,) = seen(node(taints=taints, unschedulable=True)).nodes
    assert set(found.taints) == {
        Taint("mine"),
        Taint("node.kubernetes.io/memory-pressure"),
        Taint("node.kubernetes.io/unschedulable"),
    }


def test_other_resources_are_plain_amounts_and_what_is_a_device_is_a_setting() -> None:
    fpga = node(gpus=0, allocatable={"example.com/fpga-u55c": "2", "rdma/hca": "8"})
    (found,) = seen(fpga).nodes
    assert found.resources == {"example.com/fpga-u55c": 2, "rdma/hca": 8, "disk": 2**40}
    (found,) = seen(fpga, devices=settings_of("u", namespace="n", devices="example.com/fpga*=fpga").devices).nodes
    assert [device.kind for device in found.devices] == ["fpga", "fpga"]


def test_levels_are_those_that_some_node_names() -> None:
    inventory = seen(node(labels={"topology.kubernetes.io/rack": "r"}), node("b"))
    assert inventory.levels == ("rack", "node", "numa", "nvlink", "pcie-switch", "device")
    assert "r" in Tree(inventory).cells[1].names


def test_labels_of_levels_are_a_setting() -> None:
    levels = settings_of("u", namespace="n", topology="row=dc/row, rack=dc/rack").topology
    (found,) = seen(node(labels={"dc/row": "7", "dc/rack": "2"}), topology=levels).nodes
    assert found.cells == (("row", "7"), ("rack", "2"))


@pytest.mark.parametrize("text", ["rack", "node=x", "Rack=x", "=x", "rack="])
def test_levels_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="topology_labels"):
        settings_of("u", namespace="n", topology=text)


def test_racks_of_one_name_in_two_zones_are_two() -> None:
    def at(name: str, zone: str) -> Node:
        return node(name, labels={"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/rack": "1"})

    first, second = seen(at("a", "x"), at("b", "y")).nodes
    assert (first.cells[1], second.cells[1]) == (("rack", "x/1"), ("rack", "y/1"))


def test_a_pod_holds_the_larger_of_its_init_containers_and_the_rest() -> None:
    spec = {
        "nodeName": "a",
        "initContainers": [
            {"name": "sidecar", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
            {"name": "init", "resources": {"requests": {"cpu": "5", "memory": "1"}}},
        ],
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "2", "memory": "3"}}}],
        "overhead": {"cpu": "250m"},
    }
    made = msgspec.convert({"metadata": {"uid": "u"}, "spec": spec}, Pod)
    assert dict(requests(made)) == {"cpu": 6250, "memory": 3, "pods": 1}


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from("ab"), st.integers(0, 3), st.booleans()), max_size=30))
def test_what_is_held_is_the_sum_over_the_pods_there_are(steps: list[tuple[int, str, int, bool]]) -> None:
    others, there = Others(), {}
    for name, on, gpus, gone in steps:
        made = pod(str(name), there.get(name, (on, 0))[0], gpu=str(gpus))
        others.fold(Change(made, gone=gone))
        there[name] = (made.spec.node_name, gpus)
        if gone:
            del there[name]
    for on in "ab":
        gpus = [count for where, count in there.values() if where == on]
        assert others.on(on).get(GPU, 0) == sum(gpus)
        assert others.on(on).get("pods", 0) == len(gpus)


def test_a_network_with_rdma_is_a_label_while_there_is_some_to_give() -> None:
    (some,) = seen(node(allocatable={"rdma/hca_a": "63"})).nodes
    assert some.labels["corral.dev/rdma"] == "true"
    (none,) = seen(node(allocatable={"rdma/hca_a": "0"})).nodes
    assert "corral.dev/rdma" not in none.labels
    (said,) = seen(node(allocatable={"rdma/hca_a": "63"}, labels={"corral.dev/rdma": "false"})).nodes
    assert said.labels["corral.dev/rdma"] == "false"


def test_no_more_devices_are_seen_of_a_node_than_a_pods_label_can_tell() -> None:
    (found,) = seen(node(gpus=10**12), others=held(pod("p", "a", gpu="3"))).nodes
    assert [device.index for device in found.devices] == list(range(MOST_DEVICES))
    assert [device.index for device in found.devices if not device.healthy] == [245, 246, 247]
    given = TaskLaunch(AttemptId("0mabcdefgh123.0.worker.0.0"), "ada", "k/a", (), {}, devices=found.devices)
    label = labels_of(given, {})[DEVICES]
    assert len(label) <= 63
    assert devices_of(Pod(Meta(labels={DEVICES: label}))) == frozenset(range(MOST_DEVICES))


def owned(name: str, uid: str, *, phase: str = "Running") -> Pod:
    owner = OwnerReference("corral.dev/v1alpha1", "UnifiedJob", "outside", uid)
    made = pod(name, "a", gpu="1", phase=phase)
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, owner_references=(owner,)))


def test_pods_of_an_object_are_counted_unless_its_job_lives_and_is_run_by_its_own_controller() -> None:
    others = held(owned("p", "live"), owned("q", "over"), pod("r", "a", gpu="1"))
    assert others.on("a") == {GPU: 3, "pods": 3}
    assert others.run_elsewhere({"live", "unknown"}) == ["a"]
    assert others.on("a") == {GPU: 2, "pods": 2}
    assert others.run_elsewhere({"live"}) == []
    others.fold(Change(owned("s", "live")))
    assert others.on("a") == {GPU: 2, "pods": 2}
    assert others.run_elsewhere(()) == ["a", "a"]
    assert others.on("a") == {GPU: 4, "pods": 4}
    for name, uid in (("p", "live"), ("q", "over")):
        others.fold(Change(owned(name, uid), gone=True))
    others.fold(Change(owned("s", "live", phase="Succeeded")))
    assert others.run_elsewhere({"over"}) == []
    assert others.on("a") == {GPU: 1, "pods": 1}


def test_a_node_that_is_not_understood_costs_no_other_and_comes_back_when_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = inventory.translated

    def translate(seen: Node, *more: Any) -> Any:
        if seen.metadata.labels.get("odd"):
            raise ZeroDivisionError("a mistake")
        return real(seen, *more)

    monkeypatch.setattr(inventory, "translated", translate)
    book = Nodes(SETTINGS)

    def names() -> list[str]:
        return [each.name for each in book.inventory(Others(), lambda name: frozenset()).nodes]

    for each in (node("a"), node("b", labels={"odd": "1"}), node("c")):
        book.put(each)
    assert names() == ["kubernetes/a", "kubernetes/c"]
    assert "node b is not offered" in caplog.text and "ZeroDivisionError" in caplog.text
    book.put(node("b"))
    assert names() == ["kubernetes/a", "kubernetes/b", "kubernetes/c"]
    book.put(node("b", labels={"odd": "1"}))
    assert names() == ["kubernetes/a", "kubernetes/c"]
