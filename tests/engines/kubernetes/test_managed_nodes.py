"""Devices have names on nodes that are Corral's alone; elsewhere they are counted, and none is taken from other pods."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from corral.engines.kubernetes.devices.claim_state import ClaimBook
from corral.engines.kubernetes.devices.managed_nodes import LISTED, SHARED, NamedDevices, is_managed, listed
from corral.engines.kubernetes.devices.resource_slices import Named, Slices
from corral.engines.kubernetes.devices.structs import ResourceClaim
from corral.engines.kubernetes.inventory import Nodes
from corral.engines.kubernetes.pods.labels import MANAGED
from corral.engines.kubernetes.settings import KubernetesSettings
from corral.engines.kubernetes.watch.foreign_pods import Others
from corral.engines.kubernetes.watch.node_structs import Node
from corral.engines.kubernetes.watch.object_copy import Change
from corral.model.inventory import Device
from tests.engines.kubernetes.test_inventory import GPU, held, pod
from tests.engines.kubernetes.test_slices import DRIVER, device, slice_of

TAINT = {"key": MANAGED, "value": "true", "effect": "NoSchedule"}


def node(*, gpus: int = 0, alone: bool = True, usable: int | None = None, resource: str = GPU, **meta: Any) -> Node:
    capacity = {"cpu": "8", "memory": "16Gi", "pods": "110"} | ({resource: str(gpus)} if gpus else {})
    allocatable = capacity | ({resource: str(gpus if usable is None else usable)} if gpus else {})
    labels = {MANAGED: "true"} if alone else {}
    made = {
        "metadata": {"name": "n1", "uid": "n1", "labels": labels, **meta},
        "spec": {"taints": [TAINT] if alone else []},
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return msgspec.convert(made, Node)


def found(of: Node, *, slices: Slices | None = None, others: Others | None = None) -> tuple[Device, ...]:
    book = Nodes(KubernetesSettings("uid"), NamedDevices(slices))
    book.put(of)
    (seen,) = book.inventory(others or Others(), lambda name: frozenset()).nodes
    return seen.devices


def published(count: int = 2) -> Slices:
    slices = Slices()
    slices.put(slice_of(*(device(f"gpu-{number}", kind="gpu") for number in range(count))))
    return slices


@pytest.mark.parametrize(
    ("labels", "effects", "managed"),
    [
        ({MANAGED: "true"}, ["NoSchedule"], True),
        ({MANAGED: ""}, ["NoSchedule", "NoExecute"], True),
        ({MANAGED: "false"}, ["NoSchedule"], False),
        ({}, ["NoSchedule"], False),
        ({MANAGED: "true"}, [], False),
        ({MANAGED: "true"}, ["PreferNoSchedule"], False),
    ],
)
def test_a_node_is_corrals_alone_when_it_says_so_and_keeps_others_away(
    labels: dict[str, str], effects: list[str], managed: bool
) -> None:
    taints = [{"key": MANAGED, "effect": effect} for effect in effects]
    assert is_managed(msgspec.convert({"metadata": {"labels": labels}, "spec": {"taints": taints}}, Node)) is managed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GPU-a", [("GPU-a", "", {})]),
        (
            " GPU-a , GPU-b;numa=1;pcie-switch=0000:00 ",
            [("GPU-a", "", {}), ("GPU-b", "", {"numa": "1", "pcie-switch": "0000:00"})],
        ),
        ("0;model=910b,1", [("0", "910b", {}), ("1", "", {})]),
        ("GPU-a,GPU-a", []),
        ("GPU-a,", []),
        ("GPU a", []),
        ("$(GPU)", []),
        ("GPU-a;numa", []),
        ("", []),
    ],
)
def test_an_annotation_lists_devices_whole_or_not_at_all(text: str, expected: list[tuple[str, str, Any]]) -> None:
    seen = listed(node(gpus=2, annotations={LISTED: text}))
    assert [(each.id, each.model, dict(each.cells)) for each, _ in seen] == expected
    assert {variable for _, variable in seen} <= {"NVIDIA_VISIBLE_DEVICES"}


@pytest.mark.parametrize(
    ("resource", "variable"),
    [
        ("nvidia.com/gpu", "NVIDIA_VISIBLE_DEVICES"),
        ("amd.com/gpu", "AMD_VISIBLE_DEVICES"),
        ("huawei.com/Ascend910", "ASCEND_VISIBLE_DEVICES"),
        ("example.com/fpga", None),
    ],
)
def test_each_vendor_has_its_variable(resource: str, variable: str | None) -> None:
    seen = listed(node(gpus=1, resource=resource, annotations={LISTED: "0"}))
    assert [each for _, each in seen] == ([variable] if variable else [])


def test_listed_devices_take_the_place_of_the_plugins_count() -> None:
    alone = node(gpus=2, annotations={LISTED: "GPU-a,GPU-b"})
    assert [(each.index, each.id, each.counted, each.healthy) for each in found(alone)] == [
        (0, "GPU-a", False, True),
        (1, "GPU-b", False, True),
    ]
    shared = node(gpus=2, alone=False, annotations={LISTED: "GPU-a,GPU-b"})
    assert [(each.id, each.counted) for each in found(shared)] == [(f"{GPU}#0", True), (f"{GPU}#1", True)]


def test_listed_devices_of_which_some_are_in_doubt_are_not_to_be_had() -> None:
    alone = node(gpus=2, usable=1, annotations={LISTED: "GPU-a,GPU-b"})
    assert [each.healthy for each in found(alone)] == [False, False]
    assert "1 working devices" in found(alone)[0].health_reason
    taken = node(gpus=2, annotations={LISTED: "GPU-a,GPU-b"})
    seen = found(taken, others=held(pod("theirs", "n1", gpu="1")))
    assert [each.healthy for each in seen] == [False, False] and "nothing says which" in seen[0].health_reason


def test_published_devices_of_a_kind_take_the_place_of_its_count() -> None:
    seen = found(node(gpus=8), slices=published())
    assert [(each.index, each.counted) for each in seen] == [(0, False), (1, False)]


def test_a_kind_that_is_not_published_is_counted_beside() -> None:
    slices = Slices()
    slices.put(slice_of(device("fpga-5", kind="fpga")))
    seen = found(node(gpus=2), slices=slices)
    assert [(each.index, each.kind, each.counted) for each in seen] == [
        (5, "fpga", False),
        (6, "gpu", True),
        (7, "gpu", True),
    ]


def test_on_a_shared_node_published_devices_are_shown_and_not_given() -> None:
    assert [(each.healthy, each.health_reason) for each in found(node(alone=False), slices=published())] == [
        (False, SHARED),
        (False, SHARED),
    ]
    counted = found(node(gpus=2, alone=False), slices=published())
    assert [each.counted for each in counted] == [True, True], "they are the same devices, by the plugin"


def test_a_device_of_somebody_elses_claim_is_not_to_be_had() -> None:
    book = ClaimBook("uid", "corral")
    result = {"request": "r", "driver": DRIVER, "pool": "n1", "device": "gpu-1"}
    status = {"allocation": {"devices": {"results": [result]}}}
    theirs = {"metadata": {"name": "x", "namespace": "theirs", "uid": "x"}, "status": status}
    book.fold_claim(Change(msgspec.convert(theirs, ResourceClaim)), 0)
    first, second = NamedDevices(published(), book).devices("n1", managed=True)
    assert first[0].healthy and first[1] == Named(DRIVER, "n1", "gpu-0")
    assert not second[0].healthy and "theirs/x" in second[0].health_reason


def test_a_task_without_devices_is_told_that_it_has_none() -> None:
    book = Nodes(KubernetesSettings("uid"))
    book.put(node(gpus=2, annotations={LISTED: "GPU-a,GPU-b"}))
    given = book.given("n1")
    assert given.variables([Device(1, "GPU-b")]) == {"NVIDIA_VISIBLE_DEVICES": "GPU-b"}
    assert given.variables([]) == {"NVIDIA_VISIBLE_DEVICES": "void"}
    assert given.has("GPU-b") and not given.has(f"{GPU}#0")
    book.put(node(gpus=2, alone=False))
    assert book.given("n1").variables([]) == {}
