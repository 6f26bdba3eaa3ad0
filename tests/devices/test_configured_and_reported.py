"""A machine whose devices differ from the configuration is marked not ready, with both figures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from corral.devices import amd, ascend, machine_inventory, nvidia
from corral.devices.device_mismatch import differences, kept
from corral.devices.discovery_result import Found
from corral.model.inventory import Device, Inventory, Mismatch, Node
from corral.spec.cluster import load_cluster
from corral.spec.errors import SpecError

GIB = 2**30


def gpus(count: int, model: str = "A100", *, memory: int = 80 * GIB, per_switch: int = 2) -> tuple[Device, ...]:
    return tuple(
        Device(at, f"GPU-{at}", model=model, memory_bytes=memory, cells=(("pcie-switch", str(at // per_switch)),))
        for at in range(count)
    )


NPUS = tuple(structs.replace(each, kind="npu", model="") for each in gpus(2))
LATER = tuple(structs.replace(each, index=each.index + 4) for each in gpus(2))


@pytest.mark.parametrize(
    ("configured", "reported", "wanted"),
    [
        (gpus(8), gpus(8), ()),
        (gpus(8), gpus(7), (Mismatch("devices", "8 × A100", "7 × A100"),)),
        (gpus(2), (*gpus(1), *gpus(2, "H100")[1:]), (Mismatch("devices", "2 × A100", "1 × A100, 1 × H100"),)),
        (gpus(2, ""), gpus(2, "H100"), ()),
        (gpus(1), (), (Mismatch("devices", "1 × A100", "none"),)),
        (gpus(2), NPUS, (Mismatch("devices", "2 × A100", "2 × npu"),)),
        (gpus(2), LATER, (Mismatch("numbers", "0, 1", "4, 5"),)),
        (gpus(2), gpus(2, memory=79 * GIB), ()),
        (gpus(2), gpus(2, memory=40 * GIB), (Mismatch("memory", "80Gi", "40Gi"),)),
        (gpus(2, memory=0), gpus(2, memory=40 * GIB), ()),
        (gpus(4), gpus(4, per_switch=4), (Mismatch("pcie-switch", "{0, 1} {2, 3}", "{0, 1, 2, 3}"),)),
        (gpus(4), tuple(structs.replace(each, cells=()) for each in gpus(4)), ()),
    ],
)  # fmt: skip
def test_what_differs_is_told_in_figures(
    configured: tuple[Device, ...], reported: tuple[Device, ...], wanted: tuple[Mismatch, ...]
) -> None:
    assert differences(configured, reported) == wanted


def presented(monkeypatch: pytest.MonkeyPatch, text: str, devices: tuple[Device, ...]) -> Inventory:
    links = tuple(tuple(0 if a == b else 50 for b in devices) for a in devices)
    monkeypatch.setattr(nvidia, "discover", lambda: Found(devices, links))
    return machine_inventory.presented(load_cluster(text), "local")


def test_a_node_whose_devices_are_found_has_the_machines_own(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "node: {devices: {source: found, count: 4, model: A100}, labels: {a: b}}\nracks: {r: {nodes: [n]}}"
    (node,) = presented(monkeypatch, text, gpus(4)).nodes
    assert (node.name, node.cells, node.labels) == ("local/n", (("rack", "r"),), {"a": "b"})
    assert node.devices == gpus(4) and not node.devices[0].described and len(node.links) == 4
    assert node.ready and node.mismatches == ()


def test_a_node_that_reports_other_devices_is_marked_and_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "nodes: {n: {devices: {source: found, count: 4, model: A100}}, m: {devices: 2}}"
    marked, other = presented(monkeypatch, text, gpus(3)).nodes
    assert not marked.ready and marked.mismatches == (Mismatch("devices", "4 × A100", "3 × A100"),)
    assert marked.ready_reason == (
        "the machine reports other devices than configured (devices: 4 × A100 configured, 3 × A100 reported)"
    )
    assert other.ready and all(device.described for device in other.devices)


def test_only_what_depends_on_the_machine_may_change() -> None:
    assert machine_inventory.may_change(None) and machine_inventory.may_change(load_cluster("kind: Cluster"))
    assert machine_inventory.may_change(load_cluster("nodes: {a: {devices: {source: found}}, b: {devices: 2}}"))
    assert not machine_inventory.may_change(load_cluster("nodes: {b: {devices: 2}}"))


def test_a_node_that_expects_nothing_takes_what_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    (node,) = presented(monkeypatch, "nodes: {n: {devices: {source: found}}}", gpus(3)).nodes
    assert node.ready and len(node.devices) == 3


def test_a_machine_where_nothing_is_found_does_not_have_what_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for room in (amd, ascend):
        monkeypatch.setattr(room, "discover", lambda: Found(note="nothing"))
    (node,) = presented(monkeypatch, "nodes: {n: {devices: {source: found, count: 2}}}", ()).nodes
    assert not node.ready and node.mismatches == (Mismatch("devices", "2 × gpu", "none"),)


def test_the_devices_of_one_machine_are_one_nodes() -> None:
    with pytest.raises(SpecError, match="2 nodes ask for those that are found"):
        load_cluster("node: {devices: {source: found}}\nnodes: [a, b]")


def inventory(*devices: Device, links: tuple[tuple[int, ...], ...] = ()) -> Inventory:
    return Inventory("local", (Node("local/machine", devices=devices, links=links),))


def test_a_device_that_vanished_is_kept_under_its_number_as_unhealthy() -> None:
    """Y9: the driver numbers the remaining seven from 0; a task on GPU-5 still holds number 5."""
    links = tuple(tuple(0 if a == b else 10 * a + b for b in range(4)) for a in range(4))
    before = inventory(*gpus(4), links=links)
    left = tuple(structs.replace(each, index=at) for at, each in enumerate((*gpus(4)[:1], *gpus(4)[2:])))
    now = inventory(*left, links=((0, 2, 3), (20, 0, 23), (30, 32, 0)))
    (node,) = kept(before, now).nodes
    assert [(device.index, device.id, device.healthy) for device in node.devices] == [
        (0, "GPU-0", True),
        (1, "GPU-1", False),
        (2, "GPU-2", True),
        (3, "GPU-3", True),
    ]
    assert node.links == links
    assert node.devices[1].health_reason == "the machine reports it no longer"
    assert kept(kept(before, now), before) == before


@given(st.permutations(range(6)), st.integers(0, 6), st.integers(0, 3))
def test_no_device_ever_changes_its_number(order: list[int], missing: int, more: int) -> None:
    before = inventory(*gpus(6))
    ids = [f"GPU-{at}" for at in order[missing:]] + [f"NEW-{at}" for at in range(more)]
    now = inventory(*(Device(at, name) for at, name in enumerate(ids)))
    (node,) = kept(before, now).nodes
    by_id = {device.id: device for device in node.devices}
    assert [device.index for device in node.devices] == list(range(len(by_id)))
    assert all(by_id[f"GPU-{at}"].index == at for at in range(6))
    assert {name for name, device in by_id.items() if device.healthy} == set(ids)
