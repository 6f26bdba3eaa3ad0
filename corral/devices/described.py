"""Turn the nodes of a cluster document into inventory nodes.

They differ from discovered nodes only by the devices' `described` flag.
"""

from __future__ import annotations

import os

from corral.model.inventory import Device, Inventory, Node, PinnedCell, Taint
from corral.spec.cluster import ClusterDocument
from corral.spec.expanded_machines import NodeDescription


def described_nodes(document: ClusterDocument, engine: str) -> tuple[Node, ...]:
    """Return the nodes of a cluster document. An unset amount is taken from this machine."""
    return tuple(_node(description, engine) for description in document.nodes)


def described_inventory(document: ClusterDocument, engine: str) -> Inventory:
    """Return everything that a cluster document describes, as the inventory of the engine with that name."""
    machines = document.machines
    pins = tuple(
        PinnedCell(name, pin.level, pin.type, tuple((f"{engine}/{node}", indexes) for node, indexes in pin.devices))
        for name, pin in machines.pinned.items()
    )
    return Inventory(engine, described_nodes(document, engine), machines.levels, pins)


def machine_memory() -> int:
    """Return the memory of this machine in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def machine_cpu_millis() -> int:
    """Return the CPU that this process may use, in millicores."""
    return len(os.sched_getaffinity(0)) * 1000


def shared_memory() -> int:
    """Return the size of this machine's shared memory in bytes, or 0 without `/dev/shm`."""
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
                device.index, f"{name}:{device.index}", device.kind, device.model, device.cells, device.memory_bytes,
                described=True, chain=device.chain, parent=device.parent,
            )
            for device in description.devices
        ),
        links=description.links,
        cpu_millis=description.cpu_millis or machine_cpu_millis(),
        memory_bytes=description.memory_bytes or machine_memory(),
        shm_bytes=description.shm_bytes or shared_memory(),
        resources=dict(description.resources),
        labels=dict(description.labels),
        taints=tuple(Taint(*taint) for taint in description.taints),
    )  # fmt: skip
