"""Discover AMD GPUs and their links from the kernel, without ROCm.

Source: the Linux amdkfd driver's topology under `/sys/class/kfd/kfd/topology/nodes`. A node with SIMD units is a GPU,
one with processor cores a NUMA node; link type 11 is XGMI.
"""

from __future__ import annotations

from pathlib import Path

from corral.devices.discovery_result import Found
from corral.model.inventory import Device
from corral.spec.device_topology import Wiring
from corral.spec.link_quality import NVLINK, QUALITY, symmetric

TOPOLOGY = Path("/sys/class/kfd/kfd/topology/nodes")
_XGMI = 11
_HEAPS = {"1", "2"}
"""Memory bank types that count as device memory: public (1) and private (2) frame buffer."""


def discover(topology: Path = TOPOLOGY) -> Found:
    """Return the AMD GPUs of this machine, in the kernel's order."""
    if not topology.is_dir():
        return Found(note="no AMD kernel driver")
    nodes = {int(path.name): path for path in topology.iterdir() if path.name.isdigit()}
    properties = {number: _properties(path / "properties") for number, path in sorted(nodes.items())}
    gpus = [number for number, known in properties.items() if int(known.get("simd_count", "0"))]
    links = {number: _links(nodes[number]) for number in gpus}
    numa = {number: _numa(links[number], properties) for number in gpus}
    rows = [[_between(links[a], b, near=numa[a] == numa[b]) for b in gpus] for a in gpus]
    matrix = symmetric(rows)
    names = tuple(f"GPU{index}" for index in range(len(gpus)))
    cells = Wiring(names, matrix, pcie=(), numa=tuple(numa.values())).cells()
    devices = tuple(
        Device(
            index=index,
            id=_id(properties[number], number),
            kind="gpu",
            model=f"AMD {_name(nodes[number])}",
            cells=cells[index],
            memory_bytes=_memory(nodes[number]),
        )
        for index, number in enumerate(gpus)
    )
    return Found(devices, matrix)


def _between(links: dict[int, tuple[int, int]], other: int, *, near: bool) -> int:
    """Return the link quality to another GPU: XGMI by hops (weight 15 each), else by whether both share a NUMA node."""
    kind, weight = links.get(other, (0, 0))
    if kind == _XGMI:
        return NVLINK + max(1, 16 - weight // 15)
    return QUALITY["NODE"] if near else QUALITY["SYS"]


def _processors(links: dict[int, tuple[int, int]], properties: dict[int, dict[str, str]]) -> list[int]:
    return [number for number in links if int(properties.get(number, {}).get("cpu_cores_count", "0"))]


def _numa(links: dict[int, tuple[int, int]], properties: dict[int, dict[str, str]]) -> int:
    """Return the nearest NUMA node. kfd numbers nodes with processors first, in the kernel's NUMA order."""
    near = _processors(links, properties)
    return min(near, key=lambda number: links[number][1]) if near else 0


def _links(node: Path) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for path in sorted((node / "io_links").glob("*/properties")):
        known = _properties(path)
        found[int(known["node_to"])] = (int(known["type"]), int(known.get("weight", "0")))
    return found


def _memory(node: Path) -> int:
    banks = (_properties(path) for path in (node / "mem_banks").glob("*/properties"))
    return sum(int(bank["size_in_bytes"]) for bank in banks if bank.get("heap_type") in _HEAPS)


def _name(node: Path) -> str:
    try:
        return (node / "name").read_text().strip() or "GPU"
    except OSError:
        return "GPU"


def _id(known: dict[str, str], number: int) -> str:
    unique = int(known.get("unique_id", "0"))
    return f"AMD-{unique:016x}" if unique else f"AMD-{known.get('domain', '0')}-{known.get('location_id', number)}"


def _properties(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    return dict(line.split(None, 1) for line in lines if len(line.split(None, 1)) == 2)
