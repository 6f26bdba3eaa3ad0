"""Published ResourceSlices become devices with cells: incomplete pools do not count, and in a gap devices are
unavailable.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from corral.devices.dra.device_groups import known_devices, slice_contents
from corral.engines.kubernetes.devices.resource_slices import AWAY, Named, Slices
from corral.engines.kubernetes.devices.structs import ResourceSlice
from corral.spec.devices_document import load_devices

DRIVER = "npu.example.com"


def slice_of(
    *devices: dict[str, Any],
    name: str = "s0",
    generation: int = 1,
    count: int = 1,
    driver: str = DRIVER,
    node: str = "n1",
) -> ResourceSlice:
    spec = {
        "driver": driver,
        "nodeName": node,
        "pool": {"name": node, "generation": generation, "resourceSliceCount": count},
        "devices": list(devices),
    }
    document = {"metadata": {"name": name, "uid": name}, "spec": spec}
    return msgspec.json.decode(json.dumps(document), type=ResourceSlice)


def device(name: str, **attributes: Any) -> dict[str, Any]:
    kinds = {bool: "bool", int: "int", str: "string"}
    return {"name": name, "attributes": {key: {kinds[type(value)]: value} for key, value in attributes.items()}}


def names(slices: Slices, node: str = "n1") -> list[str]:
    return [named.device for _, named in slices.devices(node)]


def test_what_the_device_plugin_publishes_comes_back_as_it_was_described() -> None:
    text = (
        "devices: [{kind: npu, model: a2, count: 12, memory: 32Gi, cells: {numa: 6, pcie-switch: 3}, "
        "pcieRoots: ['pci0000:00', 'pci0000:80'], unhealthy: [{number: 3, reason: fan}]}]"
    )
    (content,) = slice_contents(list(known_devices(load_devices(text), "n1").values()))
    slices = Slices()
    assert slices.put(slice_of(*content)) == "n1"
    found = slices.devices("n1")
    assert [each.index for each, _ in found] == list(range(12)), "in the order of their numbers, not of their names"
    assert found[7][1] == Named(DRIVER, "n1", "npu-7")
    assert found[7][0].cells == (("numa", "1"), ("pcie-switch", "2"))
    assert (found[7][0].kind, found[7][0].model, found[7][0].memory_bytes) == ("npu", "a2", 32 * 2**30)
    assert found[7][0].id == f"{DRIVER}/n1/npu-7"
    assert [(each.index, each.health_reason) for each, _ in found if not each.healthy] == [(3, "fan")]


def test_a_vendors_attributes_are_understood() -> None:
    gpu = device("gpu-1", type="gpu", productName="A100", uuid="GPU-1", numaNode=1)
    gpu["attributes"]["resource.kubernetes.io/pcieRoot"] = {"string": "pci0000:17"}
    gpu["capacity"] = {"memory": {"value": "80Gi"}}
    slices = Slices()
    slices.put(slice_of(gpu))
    ((found, _),) = slices.devices("n1")
    assert (found.id, found.kind, found.model, found.index, found.healthy) == ("GPU-1", "gpu", "A100", 1, True)
    assert found.cells == (("numa", "1"), ("pcie-switch", "pci0000:17"))
    assert found.memory_bytes == 80 * 2**30


@pytest.mark.parametrize(("effect", "healthy"), [("NoSchedule", False), ("NoExecute", False), ("None", True)])
def test_a_tainted_device_is_not_to_be_had(effect: str, healthy: bool) -> None:
    slices = Slices()
    slices.put(slice_of({**device("a"), "taints": [{"key": "broken", "effect": effect}]}))
    ((found, _),) = slices.devices("n1")
    assert found.healthy is healthy
    assert found.health_reason == ("" if healthy else "its driver taints it with broken")


def test_a_pool_counts_when_all_of_its_newest_slices_are_there() -> None:
    slices = Slices()
    slices.put(slice_of(device("a-0"), count=2))
    assert names(slices) == []
    slices.put(slice_of(device("a-1"), name="s1", count=2))
    assert names(slices) == ["a-0", "a-1"]
    slices.put(slice_of(device("b-0"), generation=2, count=2))
    assert names(slices) == ["a-0", "a-1"], "half of the new state is not shown"
    slices.put(slice_of(device("b-1"), name="s1", generation=2, count=2))
    assert names(slices) == ["b-0", "b-1"]


def test_devices_whose_slices_are_gone_for_a_moment_are_not_to_be_had_but_known() -> None:
    slices = Slices()
    first = slice_of(device("a-0"))
    slices.put(first)
    assert slices.drop(first) == "n1"
    ((found, _),) = slices.devices("n1")
    assert (found.healthy, found.health_reason) == (False, AWAY)
    slices.put(slice_of(device("a-0"), name="s9"))
    ((found, _),) = slices.devices("n1")
    assert found.healthy
    slices.drop(slice_of(device("a-0"), name="s9"))
    slices.forget("n1")
    assert slices.devices("n1") == ()


def test_drivers_of_one_node_do_not_share_numbers() -> None:
    slices = Slices()
    slices.put(slice_of(device("gpu-0"), device("gpu-1")))
    slices.put(slice_of(device("nic-0"), name="s1", driver="nic.example.com"))
    found = slices.devices("n1")
    assert [each.index for each, _ in found] == [0, 1, 2]
    assert [named.driver for _, named in found] == ["nic.example.com", DRIVER, DRIVER]


def test_slices_of_no_node_are_left_alone() -> None:
    slices = Slices()
    assert slices.put(slice_of(device("a"), node="")) == ""
    assert slices.drop(slice_of(device("a"), node="")) == ""
    assert slices.devices("") == ()
