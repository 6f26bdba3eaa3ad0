"""Discovery of each vendor's devices: ids, cells, links and faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.devices import amd, ascend, machine_inventory, nvidia
from corral.devices.discovery_result import DiscoveryResult
from corral.spec.link_quality import NVLINK, QUALITY
from tests.devices.fake_nvml import Board, FakeNvml

BUSES = [f"0000000{index // 2}:0{index}:00.0" for index in range(4)]


def boards(**fields: object) -> list[Board]:
    return [Board(bus, f"GPU-{index}", **fields) for index, bus in enumerate(BUSES)]  # type: ignore[arg-type]


def test_gpus_have_places_and_links_by_pcie(tmp_path: Path) -> None:
    for index, bus in enumerate(BUSES):
        (tmp_path / bus[4:]).mkdir()
        (tmp_path / bus[4:] / "numa_node").write_text(f"{index // 2}\n")
    fake = FakeNvml(boards(), {(0, 1): 10, (2, 3): 20, (0, 2): 50})
    found = nvidia.discover(fake, tmp_path)
    assert [device.cells for device in found.devices] == [
        (("numa", "0"), ("pcie-switch", "0")),
        (("numa", "0"), ("pcie-switch", "0")),
        (("numa", "1"), ("pcie-switch", "1")),
        (("numa", "1"), ("pcie-switch", "1")),
    ]
    assert found.links[0] == (0, QUALITY["PIX"], QUALITY["SYS"], QUALITY["SYS"])
    assert found.links[3][2] == QUALITY["PXB"]
    first = found.devices[0]
    assert (first.id, first.model, first.memory_bytes) == ("GPU-0", "NVIDIA A100-SXM4-40GB", 40 << 30)
    assert first.healthy and not first.described and fake.open == 0


def test_nvlinks_count_directly_and_through_switches(tmp_path: Path) -> None:
    pair = boards()[:2]
    pair[0].links, pair[1].links = {0: BUSES[1], 1: BUSES[1]}, {0: BUSES[0].upper(), 5: BUSES[0]}
    assert nvidia.discover(FakeNvml(pair, {}), tmp_path).links == ((0, NVLINK + 2), (NVLINK + 2, 0))
    switched = boards(links=dict.fromkeys(range(12), "switch"))
    assert {NVLINK + 12, 0} == {link for row in nvidia.discover(FakeNvml(switched, {}), tmp_path).links for link in row}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"ecc": 3}, "3 uncorrectable memory errors since the driver was loaded"),
        ({"remap_failed": 1}, "a memory row could not be remapped"),
        ({"lost": True}, "the device does not answer"),
    ],
)
def test_a_faulty_gpu_is_there_but_not_healthy(tmp_path: Path, fault: dict[str, object], reason: str) -> None:
    some = [Board(BUSES[0], "GPU-0"), Board(BUSES[1], "GPU-1", **fault)]  # type: ignore[arg-type]
    good, bad = nvidia.discover(FakeNvml(some, {}), tmp_path).devices
    assert good.healthy and not bad.healthy and bad.health_reason == reason


def test_a_gpu_that_was_lost_before_the_start_keeps_its_place_and_the_others_are_found(tmp_path: Path) -> None:
    some = boards()
    some[1].refused = FakeNvml.NVML_ERROR_GPU_IS_LOST
    found = nvidia.discover(FakeNvml(some, {(0, 2): 10}), tmp_path)
    assert [device.healthy for device in found.devices] == [True, False, True, True]
    assert (found.devices[1].index, found.devices[1].health_reason) == (1, "the device does not answer")
    assert found.devices[2].id == "GPU-2" and found.links[0][2] == QUALITY["PIX"]


def test_a_gpu_of_another_container_is_none_of_this_machine(tmp_path: Path) -> None:
    some = boards()
    some[0].refused = FakeNvml.NVML_ERROR_NO_PERMISSION
    found = nvidia.discover(FakeNvml(some, {}), tmp_path)
    assert [(device.index, device.id) for device in found.devices] == [(0, "GPU-1"), (1, "GPU-2"), (2, "GPU-3")]


def test_slices_of_a_gpu_are_devices_of_their_own(tmp_path: Path) -> None:
    parts = [Board("", f"MIG-{index}", memory=5 << 30) for index in range(3)]
    found = nvidia.discover(FakeNvml([Board(BUSES[0], "GPU-0", slices=parts), Board(BUSES[1], "GPU-1")], {}), tmp_path)
    assert [(device.index, device.id) for device in found.devices] == [
        (0, "MIG-0"), (1, "MIG-1"), (2, "MIG-2"), (3, "GPU-1")]  # fmt: skip
    assert found.links[0][1] > found.links[0][3] and found.links[0][0] == 0


def test_no_driver_is_no_device_and_a_note(tmp_path: Path) -> None:
    assert nvidia.discover(FakeNvml([], {}, driver=False), tmp_path) == DiscoveryResult(note="NVML: Driver Not Loaded")


def test_amd_gpus_are_read_from_the_kernels_topology(tmp_path: Path) -> None:
    def node(number: int, links: dict[int, tuple[int, int]], **known: int) -> None:
        folder = tmp_path / str(number)
        (folder / "io_links").mkdir(parents=True)
        (folder / "properties").write_text("".join(f"{name} {value}\n" for name, value in known.items()))
        (folder / "name").write_text("gfx90a\n" if known["simd_count"] else "\n")
        for index, (to, (kind, weight)) in enumerate(links.items()):
            (folder / "io_links" / str(index)).mkdir()
            (folder / "io_links" / str(index) / "properties").write_text(
                f"type {kind}\nnode_to {to}\nweight {weight}\n"
            )
        (folder / "mem_banks/0").mkdir(parents=True)
        (folder / "mem_banks/0/properties").write_text("heap_type 1\nsize_in_bytes 1000\n")

    node(0, {}, simd_count=0, cpu_cores_count=8)
    node(1, {}, simd_count=0, cpu_cores_count=8)
    node(2, {0: (2, 20), 3: (11, 15)}, simd_count=440, cpu_cores_count=0, unique_id=255)
    node(3, {0: (2, 20), 2: (11, 15)}, simd_count=440, cpu_cores_count=0, unique_id=256)
    node(4, {1: (2, 20)}, simd_count=440, cpu_cores_count=0, unique_id=0, domain=0, location_id=77)
    found = amd.discover(tmp_path)
    assert [device.id for device in found.devices] == ["AMD-00000000000000ff", "AMD-0000000000000100", "AMD-0-77"]
    assert [device.cells[0] for device in found.devices] == [("numa", "0"), ("numa", "0"), ("numa", "1")]
    assert found.links[0] == (0, NVLINK + 15, QUALITY["SYS"])
    assert found.devices[0].memory_bytes == 1000 and found.devices[0].model == "AMD gfx90a"
    assert amd.discover(tmp_path / "none").devices == ()


def test_ascend_npus_are_found_by_their_device_files(tmp_path: Path) -> None:
    for name in ("davinci0", "davinci7", "davinci_manager", "null"):
        (tmp_path / name).touch()
    assert [device.index for device in ascend.discover(tmp_path).devices] == [0, 7]
    assert ascend.discover(tmp_path / "none").devices == ()


def test_a_machine_without_devices_is_a_node_without_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    for room in (nvidia, amd, ascend):
        monkeypatch.setattr(room, "discover", lambda: DiscoveryResult(note="nothing"))
    node = machine_inventory.this_machine("local")
    assert node.name == "local/machine" and node.devices == () and node.links == ()
    assert node.cpu_millis >= 1000 and node.memory_bytes > 0
