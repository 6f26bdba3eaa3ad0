"""Device groups in a document become devices: their published attributes, the containers' edits, and their health."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from corral.devices.dra.cdi import CdiFolder
from corral.devices.dra.device_groups import Known, known_devices, no_device_file, slice_contents
from corral.devices.dra.prepared_claims import Given
from corral.kernel.errors import InvalidInput
from corral.spec.devices_document import load_devices
from corral.spec.errors import SpecError


def known(text: str, node: str = "node1") -> dict[str, Known]:
    return known_devices(load_devices(text), node, lambda path: path.endswith("absent"))


def attributes(device: Known) -> dict[str, Any]:
    return {name: next(iter(value.values())) for name, value in device.document()["attributes"].items()}


def test_devices_are_published_with_model_kind_cells_and_pcie_root() -> None:
    devices = known(
        "devices: [{kind: npu, model: a2, memory: 32Gi, count: 8, cells: {numa: 4, pcie-switch: 2}, "
        "pcieRoots: ['pci0000:00', 'pci0000:80'], attributes: {firmware: '7.1'}}]"
    )
    assert list(devices) == [f"npu-{index}" for index in range(8)]
    assert attributes(devices["npu-5"]) == {
        "kind": "npu",
        "model": "a2",
        "index": 5,
        "levels": "numa,pcie-switch",
        "numa": "1",
        "pcieSwitch": "2",
        "resource.kubernetes.io/pcieRoot": "pci0000:80",
        "firmware": "7.1",
        "healthy": True,
    }
    assert devices["npu-5"].document()["capacity"] == {"memory": {"value": str(32 * 2**30)}}
    assert devices["npu-5"].document()["attributes"]["index"] == {"int": 5}


def test_numbers_go_on_over_the_groups_that_a_node_has() -> None:
    text = """
    devices:
    - {kind: npu, count: 2}
    - {kind: fpga, count: 2, nodes: ["node[1-2]", spare], env: {"FPGA_$(index)": "bus $(number)"}}
    - {kind: npu, nodes: [node3]}
    """
    assert list(known(text, "node2")) == ["npu-0", "npu-1", "fpga-2", "fpga-3"]
    assert list(known(text, "node3")) == ["npu-0", "npu-1", "npu-2"]
    assert known(text)["fpga-3"].gives.env == (("FPGA_3", "bus 1"),)


def test_device_files_and_mounts_reach_containers() -> None:
    devices = known(
        "devices: [{kind: fpga, count: 2, "
        "deviceNodes: [{path: /dev/card$(number), host: /dev/xdma$(number)}, {path: /dev/ctl}], "
        "mounts: [{host: /opt/fpga}, {host: /var/fpga/$(index), path: /state/$(number), readOnly: false}]}]"
    )
    given = [Given("r", "n", "fpga-1"), Given("r", "n", "fpga-0")]
    document = CdiFolder(Path("/cdi"), "fpga.example.com").document("u", given, devices)
    assert document["cdiVersion"] == "0.6.0" and document["kind"] == "fpga.example.com/claim"
    (device,) = document["devices"]
    assert device["containerEdits"]["deviceNodes"] == [
        {"path": "/dev/card0", "hostPath": "/dev/xdma0", "permissions": "rw"},
        {"path": "/dev/card1", "hostPath": "/dev/xdma1", "permissions": "rw"},
        {"path": "/dev/ctl", "hostPath": "/dev/ctl", "permissions": "rw"},
    ]
    assert device["containerEdits"]["mounts"] == [
        {"hostPath": "/opt/fpga", "containerPath": "/opt/fpga", "options": ["rbind", "nosuid", "ro"]},
        {"hostPath": "/var/fpga/0", "containerPath": "/state/0", "options": ["rbind", "nosuid", "rw"]},
        {"hostPath": "/var/fpga/1", "containerPath": "/state/1", "options": ["rbind", "nosuid", "rw"]},
    ]


def test_a_device_whose_file_is_absent_is_broken_and_says_so() -> None:
    devices = known(
        "devices: [{deviceNodes: [{path: /dev/x, host: /dev/absent}]}, {deviceNodes: [{path: /dev/there}]}]"
    )
    assert [device.broken for device in devices.values()] == ["no device file /dev/absent", ""]
    document = devices["gpu-0"].document()
    assert document["attributes"]["healthy"] == {"bool": False}
    assert document["attributes"]["healthReason"] == {"string": "no device file /dev/absent"}
    assert document["taints"] == [{"key": "corral.dev/unhealthy", "effect": "NoSchedule"}]
    assert "taints" not in devices["gpu-1"].document()


def test_only_device_files_count_as_such(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert [no_device_file(path) for path in (os.devnull, str(tmp_path / "file"), str(tmp_path / "none"))] == [
        False,
        True,
        True,
    ]


def test_slices_hold_128_devices_each_and_a_node_without_devices_has_an_empty_one() -> None:
    contents = slice_contents(list(known("devices: [{count: 300}]").values()))
    assert [len(content) for content in contents] == [128, 128, 44]
    assert len({device["name"] for content in contents for device in content}) == 300
    assert slice_contents([]) == [[]]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("devices: [{count: 3, cells: {numa: 2}}]", "numa: cells of 2 devices do not divide the 3 around them evenly"),
        ("devices: [{count: 4, cells: {pcie-switch: 1, numa: 2}}]", "numa: cells of 2 devices do not divide the 1"),
        ("devices: [{count: 3, pcieRoots: [a, b]}]", "3 devices cannot be shared out evenly under 2 PCIe roots"),
        ("devices: [{attributes: {model: x}}]", "the attribute model is published already"),
        ("devices: [{cells: {pcie-switch: 1}, attributes: {pcieSwitch: x}}]", "pcieSwitch is published already"),
        ("devices: [{unhealthy: [{number: 1}]}]", "unhealthy names device 1, and there are 1"),
        ("devices: [{nodes: ['node[3-1]']}]", "3-1 counts backwards"),
        ("devices: [{kind: A_b}]", "expected lower-case letters, digits"),
        ("devices: [{deviceNodes: [{path: dev/x}]}]", "expected an absolute path"),
        ("devices: [{deviceNodes: [{path: /dev/x, permissions: wr}]}]", "expected some of r, w and m"),
        (
            "devices: [{count: 2, deviceNodes: [{path: /dev/x, host: /dev/x$(number)}]}]",
            '"/dev/x": containers with two devices would see one; write $(number) here too',
        ),
        ("devices: [{env: {'A-B': x}}]", "expected letters, digits, '_', $(index) and $(number)"),
        ("devices: [{model: " + "m" * 65 + "}]", "devices[0].model"),
        ("driver: Not_a_domain", "expected a domain name in lower case"),
        ("driver: " + "a" * 64, "driver"),
        ("device: []", 'did you mean "devices"?'),
        ("kind: Cluster", "kind"),
        ("[]", "expected devices (a mapping of fields), got a list"),
        ("{", "line"),
    ],
)
def test_a_document_that_cannot_be_meant_is_refused_where_it_is_wrong(text: str, problem: str) -> None:
    with pytest.raises(SpecError) as refused:
        load_devices(text)
    assert "devices.yaml" in str(refused.value)
    assert problem in str(refused.value) or problem == "line"


def test_a_node_with_too_many_devices_is_refused() -> None:
    with pytest.raises(InvalidInput, match="node1 has 1025 devices"):
        known("devices: [{count: 1024}, {}]")
