"""Why: a cluster document's nodes become the same values that discovery gives, so nothing above can tell them apart but by
their label *described*."""

from __future__ import annotations

import os

from corral.model.inventory import Device, Node
from corral.spec.cluster import ClusterDocument
from corral.spec.layout import NodeDescription


def described_nodes(document: ClusterDocument, engine: str) -> tuple[Node, ...]:
    """The nodes that a cluster document describes; an amount it leaves out is this machine's."""
    return tuple(_node(description, engine) for description in document.nodes)


def machine_memory() -> int:
    """The memory of this machine in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def machine_cpu_millis() -> int:
    """The processors that this process may use, in thousandths."""
    return len(os.sched_getaffinity(0)) * 1000


def shared_memory() -> int:
    """The size of this machine's shared memory in bytes; 0 when it has none."""
    try:
        found = os.statvfs("/dev/shm")
    except FileNotFoundError:
        return 0
    return found.f_frsize * found.f_blocks


def _node(description: NodeDescription, engine: str) -> Node:
    name = f"{engine}/{description.name}"
    return Node(
        name=name,
        cells=description.cells,
        devices=tuple(
            Device(
                index=device.index,
                id=f"{name}:{device.index}",
                kind=device.kind,
                model=device.model,
                cells=device.cells,
                memory_bytes=device.memory_bytes,
                described=True,
            )
            for device in description.devices
        ),
        cpu_millis=description.cpu_millis or machine_cpu_millis(),
        memory_bytes=description.memory_bytes or machine_memory(),
        shm_bytes=description.shm_bytes or shared_memory(),
        labels=dict(description.labels),
    )
