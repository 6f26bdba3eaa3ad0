"""Present this machine as inventory: one node with its discovered devices, or the nodes of its cluster document."""

from __future__ import annotations

from msgspec import structs

from corral.devices import amd, ascend, nvidia
from corral.devices.described import described_inventory, machine_cpu_millis, machine_memory, shared_memory
from corral.devices.device_mismatch import reconciled
from corral.devices.discovery_result import Found
from corral.devices.mps import daemon_runs
from corral.model.inventory import MPS_LABEL, Inventory, Node
from corral.spec.cluster import ClusterDocument


def presented(document: ClusterDocument | None, engine: str) -> Inventory:
    """Return the inventory of an engine of this machine: its document's nodes, or else the machine as discovered.

    A node marked `found` gets this machine's devices. It is marked as mismatched if they differ from the expected ones.
    """
    if document is None or not document.nodes:
        return Inventory(engine, (this_machine(engine),))
    inventory = described_inventory(document, engine)
    real = {f"{engine}/{node.name}" for node in document.nodes if node.found}
    if not real:
        return inventory
    machine = this_machine(engine)
    nodes = tuple(_compared(node, machine) if node.name in real else node for node in inventory.nodes)
    return structs.replace(inventory, nodes=nodes)


def _compared(node: Node, machine: Node) -> Node:
    return reconciled(structs.replace(node, labels=machine.labels | node.labels), machine)


def may_change(document: ClusterDocument | None) -> bool:
    """Return whether `presented` depends on the machine and not on the document alone."""
    return document is None or not document.nodes or any(node.found for node in document.nodes)


def this_machine(engine: str, name: str = "machine") -> Node:
    """Return this machine as one node: its CPU, memory, devices and links."""
    found = devices_found()
    return Node(
        f"{engine}/{name}",
        devices=found.devices,
        links=found.links,
        cpu_millis=machine_cpu_millis(),
        memory_bytes=machine_memory(),
        shm_bytes=shared_memory(),
        labels=dict([MPS_LABEL]) if daemon_runs() else {},
    )


def devices_found() -> Found:
    """Return the devices of the first vendor that has any.

    A second vendor's devices are left out: their indexes would collide in the vendors' variables.
    """
    notes = []
    for discover in (nvidia.discover, amd.discover, ascend.discover):
        found = discover()
        if found.devices:
            return found
        notes.append(found.note)
    return Found(note="; ".join(note for note in notes if note))
