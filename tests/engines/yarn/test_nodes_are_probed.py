"""A probe tells the devices of a node: rows Y3 and Y9 of scheduling.md, with what a vendor's tool prints."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from corral.devices import amd
from corral.engines.yarn.inventory import inventory_of, nodes_of
from corral.engines.yarn.kind import YarnOptions, settings_of
from corral.engines.yarn.node_devices import ProbedNode, probed_node
from corral.engines.yarn.slot_messages import ProbeReport
from corral.kernel.errors import InvalidInput
from corral.model.requests import TopologyRequest
from corral.runtime import device_probe
from corral.runtime.device_probe import probe
from corral.scheduler import Cluster, NodesSeen
from tests.devices.test_topology_tables import switched
from tests.engines.yarn.harness import PATIENCE, YarnPlace
from tests.engines.yarn.test_names_and_refusals import WHERE, node
from tests.engines.yarn.test_services import until
from tests.scheduler.machines import gang, place, role
from tests.testbeds.hadoop.yarn import Yarn

SETTINGS = settings_of(YarnOptions(**WHERE), "s", "")
PCIE = """\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity
GPU0\t X \tSYS\tPIX\tSYS\t0-7
GPU1\tSYS\t X \tSYS\tPIX\t8-15
GPU2\tPIX\tSYS\t X \tSYS\t0-7
GPU3\tSYS\tPIX\tSYS\t X \t8-15
"""
TOOL = """#!/bin/sh
case "$1" in
--query-gpu=*) cat <<END
{devices}END
;;
topo) cat <<END
{topology}END
;;
*) exit 3 ;;
esac
"""


def lines(count: int, *bad: int) -> str:
    """What the tool lists: devices, some of them with uncorrectable errors."""
    return "".join(f"{at}, GPU-{at:04}, A100, 40960, {3 if at in bad else 0}\n" for at in range(count))


def seen(probed: ProbedNode, gpus: int = 4) -> Cluster:
    """A cluster of one node that YARN lists with so many devices, and whose probe told this."""
    listed = node("nm1", used_gpus=0)
    listed["totalResource"]["resourceInformations"]["resourceInformation"][2]["value"] = gpus
    inventory = inventory_of(nodes_of({"nodes": {"node": [listed]}}), SETTINGS, {}, {}, probed={"nm1": probed})
    found = Cluster()
    found.apply(NodesSeen(inventory))
    return found


def chosen(target: Cluster, devices: int, **fields: Any) -> tuple[int, ...] | None:
    found = place(target, gang("a", role(1, devices, **fields)))
    return found.tasks[0].devices if found is not None else None


def test_y3_devices_of_one_pcie_switch_are_taken_together() -> None:
    target = seen(probed_node(ProbeReport(lines(4), PCIE), 0.0))
    occupy_on(target, 0)
    assert chosen(target, 2) == (1, 3)
    switch = TopologyRequest(required="pcie-switch")
    assert chosen(target, 2, topology=switch) == (1, 3)
    occupy_on(target, 1)
    assert chosen(target, 2, topology=switch) is None
    assert chosen(target, 2) == (2, 3)


@pytest.mark.parametrize("word", ["NV12", "NV18"])
def test_y3_matrices_of_switched_machines_are_read(word: str) -> None:
    target = seen(probed_node(ProbeReport(lines(8), switched(word)), 0.0), gpus=8)
    for device in (0, 5):
        occupy_on(target, device)
    assert chosen(target, 2) == (2, 3)
    assert chosen(target, 4, topology=TopologyRequest(required="nvlink")) is not None


def test_y9_a_device_with_memory_errors_is_hidden_and_the_job_on_it_stays() -> None:
    target = seen(probed_node(ProbeReport(lines(4), PCIE), 0.0))
    occupy_on(target, 0, 2)
    again = seen(probed_node(ProbeReport(lines(4, 1, 2), PCIE), 1.0))
    (bad,) = again.nodes()
    target.apply(NodesSeen(inventory_with(bad)))
    assert chosen(target, 1) == (3,)
    assert chosen(target, 2) is None
    assert bad.devices[1].health_reason == "3 uncorrectable memory errors since the driver was loaded"
    assert len(target.gangs.by_job) == 1


def occupy_on(target: Cluster, *devices: int) -> None:
    """Let a job hold devices of nm1."""
    from corral.model.placement import Placement, TaskPlacement
    from corral.scheduler import GangPlaced
    from tests.scheduler.machines import unknown

    tasks = tuple(TaskPlacement("other", at, "yarn/nm1", (at,)) for at in devices)
    target.apply(GangPlaced(unknown(f"other-{'-'.join(map(str, devices))}"), Placement(tasks)))


def inventory_with(only: Any) -> Any:
    from corral.model.inventory import LEVELS, Inventory

    return Inventory("yarn", (only,), LEVELS)


def test_a_probe_that_counts_other_devices_than_yarn_is_not_believed() -> None:
    (found,) = seen(probed_node(ProbeReport(lines(3), ""), 0.0)).nodes()
    assert [device.id for device in found.devices] == [f"yarn/nm1:{at}" for at in range(4)]


@pytest.mark.parametrize(
    ("devices", "topology", "said"),
    [
        ("1, GPU-1, A100, 40960, 0\n", "", 'Line 1 of nvidia-smi is "1, GPU-1'),
        ("0, GPU-0, A100, 40960\n", "", "five fields"),
        ("0, GPU 0;rm, A100, 40960, 0\n", "", "Line 1"),
        ("0, GPU-0, A100, 99999999999999999999, 0\n", "", "Line 1"),
        ("0, GPU-0, A100, -1, 0\n", "", "Line 1"),
        ("0, GPU-0, A\x1b[31m, 40960, 0\n", "", "Line 1"),
        (lines(2), PCIE, "The link matrix has 4 devices, and the list of devices 2."),
        (lines(4), PCIE.replace("GPU3\tSYS", "GPU3\tODD"), "The link matrix cannot be read"),
        (lines(4), "nothing", "The link matrix cannot be read"),
        ("".join(f"{at}, GPU-{at}, A, 1, 0\n" for at in range(1025)), "", "Line 1025"),
    ],
)
def test_a_report_that_cannot_be_one_is_refused_by_its_line(devices: str, topology: str, said: str) -> None:
    with pytest.raises(InvalidInput) as error:
        probed_node(ProbeReport(devices, topology), 0.0)
    assert said in error.value.message
    assert len(error.value.message) < 1000


def kernel(folder: Path, gpus: int, bad: int = -1) -> None:
    """What AMD's driver tells of two processors and some GPUs, neighbours by XGMI, half of them on each."""
    nodes = folder / "sys/class/kfd/kfd/topology/nodes"
    for number in range(2 + gpus):
        place, at = nodes / str(number), number - 2
        (place / "mem_banks/0").mkdir(parents=True)
        (place / "mem_banks/0/properties").write_text(f"heap_type {1 if at >= 0 else 0}\nsize_in_bytes {1 << 36}\n")
        known = {"cpu_cores_count": 0 if at >= 0 else 64, "simd_count": 304 if at >= 0 else 0, "unique_id": 0xFF + at}
        (place / "properties").write_text("".join(f"{key} {value}\n" for key, value in known.items()))
        (place / "name").write_text("gfx942\n" if at >= 0 else "\n")
        if at < 0:
            continue
        with (place / "properties").open("a") as file:
            file.write(f"drm_render_minor {128 + at}\n")
        others = {0 if at < gpus // 2 else 1: (2, 20), (at ^ 1) + 2: (11, 15)}
        for link, (to, (kind, weight)) in enumerate(others.items()):
            (place / f"io_links/{link}").mkdir(parents=True)
            (place / f"io_links/{link}/properties").write_text(f"type {kind}\nnode_to {to}\nweight {weight}\n")
        ras = folder / f"sys/class/drm/renderD{128 + at}/device/ras"
        ras.mkdir(parents=True)
        (ras / "umc_err_count").write_text(f"ue: {2 if at == bad else 0}\nce: 7\n")


def probed(root: Path, monkeypatch: pytest.MonkeyPatch) -> ProbeReport:
    """What a probe tells of a node without `nvidia-smi`, as the server takes it."""
    monkeypatch.setenv("PATH", str(root))
    calls: Any = Calls()
    assert probe(calls, str(root)) == 0
    return msgspec.convert(calls.told, ProbeReport)


def test_y3_and_y9_of_amd_gpus_by_what_the_kernel_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel(tmp_path, 4, bad=3)
    found = probed_node(probed(tmp_path, monkeypatch), 0.0)
    assert [each.id for each in found.devices] == [f"AMD-{0xFF + at:016x}" for at in range(4)]
    assert {(each.model, each.memory_bytes) for each in found.devices} == {("AMD gfx942", 1 << 36)}
    assert found.devices[3].fault == "2 uncorrectable memory errors since the driver was loaded"
    target = seen(found)
    assert chosen(target, 2) == (0, 1)
    occupy_on(target, 0)
    assert chosen(target, 2, topology=TopologyRequest(required="numa")) is None
    assert chosen(target, 2) == (1, 2), "3 has errors"


def test_ascend_npus_are_named_by_their_device_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dev").mkdir()
    for number in (0, 1, 2):
        (tmp_path / f"dev/davinci{number}").touch()
    (tmp_path / "dev/davinci_manager").touch()
    found = probed_node(probed(tmp_path, monkeypatch), 0.0)
    assert [(each.id, each.model) for each in found.devices] == [(f"davinci{at}", "Ascend") for at in range(3)]
    (tmp_path / "dev/davinci1").unlink()
    with pytest.raises(InvalidInput, match="without a gap"):
        probed_node(probed(tmp_path, monkeypatch), 0.0)


def test_the_probe_sends_all_files_that_devices_are_read_from() -> None:
    """The runtime has no other part of Corral, so the list stands in both."""
    assert device_probe.KFD_FILES == amd.FILES


GPU = "simd_count 304\nunique_id 255\n"


@pytest.mark.parametrize(
    "files",
    [
        {"0/properties": "simd_count many\n"},
        {"0/properties": f"simd_count {'9' * 5000}\n"},
        {"0/properties": GPU, "0/io_links/0/properties": "type 11\nweight 1\n"},
        {"0/properties": GPU, "0/mem_banks/0/properties": "heap_type 1\n"},
        {"0/properties": GPU, "0/mem_banks/0/properties": f"heap_type 1\nsize_in_bytes {'9' * 40}\n"},
        {"0/properties": GPU, "0/name": "gfx\x1b[31m"},
        {"0/properties": f"simd_count 1\nunique_id {'9' * 400}\n"},
        {
            "0/properties": GPU,
            "1/properties": GPU,
            "0/io_links/0/properties": f"type 11\nnode_to 1\nweight -{'9' * 40}\n",
        },
        {f"{number}/properties": GPU for number in range(300)},
        {"0/properties": GPU, "00/properties": GPU},
    ],
)
def test_a_topology_that_no_driver_tells_is_refused(files: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="AMD's driver"):
        probed_node(ProbeReport(vendor="amd", files=files), 0.0)


def test_only_the_properties_of_a_node_say_that_it_is_a_gpu() -> None:
    bank = "heap_type 1\nsize_in_bytes 4096\nsimd_count 1\n"
    files = {"0/properties": GPU, "0/mem_banks/0/properties": bank}
    assert [each.memory_bytes for each in probed_node(ProbeReport(vendor="amd", files=files), 0.0).devices] == [4096]


@pytest.mark.parametrize(
    "path", ["../properties", "0/../properties", "0/properties/x", "/0/name", "0/io_links/x/properties"]
)
def test_a_path_that_is_none_of_the_topology_is_refused(path: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"vendor": "amd", "files": {path: ""}}, ProbeReport)


class Calls:
    """Takes a probe's report."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}

    def probed(self, report: dict[str, Any]) -> None:
        self.told = report


def write_tool(folder: Path, devices: str, topology: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "nvidia-smi").write_text(TOOL.format(devices=devices, topology=topology))
    (folder / "nvidia-smi").chmod(0o755)


def test_the_probe_sends_what_the_tool_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tool(tmp_path / "bin", lines(4), PCIE)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    calls: Any = Calls()
    assert probe(calls) == 0
    assert calls.told == {"devices": lines(4), "topology": PCIE, "trouble": ""}


@pytest.mark.parametrize(
    ("tool", "said"), [("", "not installed"), ("#!/bin/sh\necho no driver\nexit 9\n", "with 9: no")]
)
def test_a_probe_without_a_tool_that_works_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, said: str
) -> None:
    if tool:
        (tmp_path / "nvidia-smi").write_text(tool)
        (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/nowhere")
    calls: Any = Calls()
    assert probe(calls) == 0
    assert said in calls.told["trouble"]


@pytest.mark.timeout(600)
async def test_each_node_is_probed_once_by_a_container_and_the_next_server_knows(yarn: Yarn, tmp_path: Path) -> None:
    """Y3 and Y9 on a real YARN: nm1 has a tool, nm2 has none."""
    write_tool(yarn.home / "nm1" / "bin", lines(4, 1), PCIE)
    server = YarnPlace(yarn, tmp_path, probe_seconds=3600)
    try:
        async with server.open() as opened:
            await until(lambda: opened.raw._probe.found and not opened.raw._probe._awaited)
            async with asyncio.timeout(PATIENCE):  # YARN may still count devices of an earlier test's containers
                while True:
                    await opened.raw._watch.look()
                    nodes = {each.name: each for each in (await opened.raw.inventory()).nodes}
                    first = nodes["yarn/nm1"]
                    if [device.healthy for device in first.devices] == [True, False, True, True]:
                        break
                    await asyncio.sleep(0.2)
            assert [device.id for device in first.devices] == [f"GPU-{at:04}" for at in range(4)]
            assert first.devices[0].cells == first.devices[2].cells != first.devices[1].cells
            assert len(first.links) == 4
            assert [device.id for device in nodes["yarn/nm2"].devices] == [f"yarn/nm2:{at}" for at in range(4)]
            await until(lambda: not server._left())
        async with server.open() as opened:
            (known,) = [each for each in (await opened.raw.inventory()).nodes if each.name == first.name]
            assert (known.devices, known.links) == (first.devices, first.links), "without a probe of its own"
            assert not server._left()
    finally:
        (yarn.home / "nm1" / "bin" / "nvidia-smi").unlink()
        server.clear()
