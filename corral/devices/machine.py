"""Why: without a cluster document this machine is one node, with what is really found on it and nothing else."""

from __future__ import annotations

from corral.devices import amd, ascend, nvidia
from corral.devices.described import described_inventory, machine_cpu_millis, machine_memory, shared_memory
from corral.devices.found import Found
from corral.model.inventory import Inventory, Node
from corral.spec.cluster import ClusterDocument


def presented(document: ClusterDocument | None, engine: str) -> Inventory:
    """What an engine of this machine presents: the nodes that its document describes, or else the machine as found."""
    if document is not None and document.nodes:
        return described_inventory(document, engine)
    return Inventory(engine, (this_machine(engine),))


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
