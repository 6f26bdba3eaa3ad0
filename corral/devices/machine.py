"""Why: without a cluster document this machine is one node, with what is really found on it and nothing else."""

from __future__ import annotations

from msgspec import structs

from corral.devices import amd, ascend, nvidia
from corral.devices.comparing import reconciled
from corral.devices.described import described_inventory, machine_cpu_millis, machine_memory, shared_memory
from corral.devices.found import Found
from corral.devices.mps import daemon_runs
from corral.model.inventory import MPS_LABEL, Inventory, Node
from corral.spec.cluster import ClusterDocument


def presented(document: ClusterDocument | None, engine: str) -> Inventory:
    """What an engine of this machine presents: the nodes that its document describes, or else the machine as found.

    A node whose devices are to be found has this machine's, and is marked when they are not those it expects.
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
    """Whether what `presented` sees depends on the machine, and not on the document alone."""
    return document is None or not document.nodes or any(node.found for node in document.nodes)


def this_machine(engine: str, name: str = "machine") -> Node:
    """This machine as one node: its processors, memory, devices and their links."""
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
    """The devices of the first vendor that has any; a machine with two vendors' devices shows the first one's.

    A second vendor's would share the numbers that its variables count by.
    """
    notes = []
    for discover in (nvidia.discover, amd.discover, ascend.discover):
        found = discover()
        if found.devices:
            return found
        notes.append(found.note)
    return Found(note="; ".join(note for note in notes if note))
