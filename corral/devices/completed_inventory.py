"""Add to the nodes that an engine finds itself what a cluster document says of them and the engine does not know.

Amounts of processors, memory and other resources stay the engine's: it counts what others use of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import structs

from corral.devices.described import described_inventory
from corral.devices.device_mismatch import differences, marked
from corral.model.inventory import Device, Inventory, Node
from corral.spec.cluster import ClusterDocument


def completed(inventory: Inventory, document: ClusterDocument) -> Inventory:
    """Return the engine's inventory with the document's cells, labels, taints, pinned cells and device descriptions.

    Nodes that only the document names are left out, and nodes that it does not name get the cells that their labels name.
    A node that has other devices than the document says is marked as mismatched, and is not ready.
    """
    said = described_inventory(document, inventory.engine)
    by_name = {node.name: node for node in said.nodes}
    levels = said.levels if document.nodes or document.level_labels else inventory.levels
    nodes = []
    for node in inventory.nodes:
        found = by_name.get(node.name)
        if found is not None:
            node = _described(node, found)
        nodes.append(_in_cells(node, found.cells if found is not None else (), levels, document.level_labels))
    return structs.replace(inventory, nodes=tuple(nodes), levels=levels, pinned=said.pinned)


def _described(node: Node, said: Node) -> Node:
    """The node with the labels, taints and devices of its description."""
    taints = (*node.taints, *(each for each in said.taints if each not in node.taints))
    node = structs.replace(node, labels=node.labels | said.labels, taints=taints)
    if not said.devices:
        return node
    devices = tuple(_filled(node.devices, said.devices))
    found = differences(said.devices, devices)
    if found:
        unready = marked(node, found)
        return unready if node.ready else structs.replace(unready, ready_reason=node.ready_reason)
    return structs.replace(node, devices=devices, links=node.links or said.links)


def _filled(devices: Sequence[Device], said: Sequence[Device]) -> Iterator[Device]:
    """The engine's devices, with the description's word for what the engine leaves open."""
    by_index = {each.index: each for each in said}
    for each in devices:
        known = by_index.get(each.index)
        if known is None:
            yield each
            continue
        yield structs.replace(
            each,
            model=each.model or known.model,
            memory_bytes=each.memory_bytes or known.memory_bytes,
            cells=() if each.counted else each.cells or known.cells,
            chain=each.chain or known.chain,
        )


def _in_cells(node: Node, said: tuple[tuple[str, str], ...], levels: Sequence[str], labels: dict[str, str]) -> Node:
    """The node in its cells: the document's before those that its labels name, and these before the engine's.

    A node whose devices are only counted is one that the engine chooses itself, so it stays out of all cells.
    """
    if any(device.counted for device in node.devices):
        return node
    named = {level: node.labels[label] for level, label in labels.items() if label in node.labels}
    cells = dict(node.cells) | named | dict(said)
    return structs.replace(node, cells=tuple((level, cells[level]) for level in levels if level in cells))
