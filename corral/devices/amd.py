"""Discover AMD GPUs and their links from the kernel, without ROCm.

Source: the Linux amdkfd driver's topology under `/sys/class/kfd/kfd/topology/nodes`. A node with SIMD units is a GPU,
one with processor cores a NUMA node; link type 11 is XGMI.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from corral.devices.discovery_result import DiscoveryResult
from corral.model.inventory import Device
from corral.spec.device_topology import Wiring
from corral.spec.link_quality import NVLINK, QUALITY, symmetric

TOPOLOGY = Path("/sys/class/kfd/kfd/topology/nodes")
FILES = ("[0-9]*/properties", "[0-9]*/name", "[0-9]*/io_links/*/properties", "[0-9]*/mem_banks/*/properties")
"""The files of a topology that are read."""
_OF_NODE = re.compile(r"[0-9]+/properties")
_XGMI = 11
_HEAPS = {"1", "2"}
"""Memory bank types that count as device memory: public (1) and private (2) frame buffer."""


def discover(topology: Path = TOPOLOGY) -> DiscoveryResult:
    """Return the AMD GPUs of this machine, in the kernel's order."""
    if not topology.is_dir():
        return DiscoveryResult(note="no AMD kernel driver")
    found = (path for pattern in FILES for path in topology.glob(pattern))
    return described({str(path.relative_to(topology)): _text(path) for path in found})


def described(files: Mapping[str, str]) -> DiscoveryResult:
    """Return the AMD GPUs of a machine by the texts of its topology's `FILES`, by their paths below `TOPOLOGY`.

    Raises ValueError or KeyError for texts that the driver does not write.
    """
    nodes: dict[int, dict[str, str]] = {}
    for path, text in files.items():
        number, _, name = path.partition("/")
        nodes.setdefault(int(number), {})[name] = text
    properties = {number: _properties(known.get("properties", "")) for number, known in nodes.items()}
    gpus = gpu_nodes(files)
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
            model=f"AMD {nodes[number].get('name', '').strip() or 'GPU'}",
            cells=cells[index],
            memory_bytes=_memory(nodes[number]),
        )
        for index, number in enumerate(gpus)
    )
    return DiscoveryResult(devices, matrix)


def gpu_nodes(files: Mapping[str, str]) -> list[int]:
    """Return the numbers of a topology's nodes that are GPUs, in the order of the devices. Raises ValueError."""
    own = [(path.partition("/")[0], _properties(text)) for path, text in files.items() if _OF_NODE.fullmatch(path)]
    found = sorted(int(number) for number, known in own if int(known.get("simd_count", "0")))
    if len(found) > len(set(found)):
        raise ValueError("a node is told twice")
    return found


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


def _links(node: Mapping[str, str]) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for known in _all(node, "io_links/"):
        found[int(known["node_to"])] = (int(known["type"]), int(known.get("weight", "0")))
    return found


def _memory(node: Mapping[str, str]) -> int:
    banks = _all(node, "mem_banks/")
    return sum(int(bank["size_in_bytes"]) for bank in banks if bank.get("heap_type") in _HEAPS)


def _all(node: Mapping[str, str], folder: str) -> Iterator[dict[str, str]]:
    """The properties of the parts of a node, by their paths."""
    for path, text in sorted(node.items()):
        if path.startswith(folder) and (known := _properties(text)):
            yield known


def _id(known: dict[str, str], number: int) -> str:
    unique = int(known.get("unique_id", "0"))
    return f"AMD-{unique:016x}" if unique else f"AMD-{known.get('domain', '0')}-{known.get('location_id', number)}"


def _properties(text: str) -> dict[str, str]:
    return dict(line.split(None, 1) for line in text.splitlines() if len(line.split(None, 1)) == 2)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
