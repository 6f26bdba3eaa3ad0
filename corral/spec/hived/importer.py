"""Convert HiveD's configuration to our Cluster, Queue and Policy documents.

Cell types keep their names and become levels of that name in lower case. Physical cells keep their nodes, device
numbers and pinned names. Virtual clusters become queues that own cells. The *hived* preset takes HiveD's own
tie-breaks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from corral.kernel import units
from corral.spec.cell_type_resolution import level_name
from corral.spec.cluster import ClusterDocument
from corral.spec.errors import SpecError
from corral.spec.hived.configuration import HivedCluster, HivedPhysicalCell
from corral.spec.policy import PolicyDocument
from corral.spec.queue import QueueDocument
from corral.spec.validation_messages import problems_of
from corral.spec.yaml_source import Source

Checked = TypeVar("Checked", bound=BaseModel)
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._/-]+")


def documents_of(
    hived: HivedCluster, *, engine: str = "local", filename: str = "hivedscheduler.yaml"
) -> list[ClusterDocument | QueueDocument | PolicyDocument]:
    """The machines, the virtual clusters and the policy of a HiveD configuration.

    Raises SpecError for a name that our documents do not allow, such as a virtual cluster's with a space.
    """
    return [
        cluster_of(hived, engine=engine, filename=filename),
        *(queue_of(hived, name, filename=filename) for name in hived.virtual_clusters),
        PolicyDocument(preset="hived"),
    ]


def cluster_of(
    hived: HivedCluster, *, engine: str = "local", queues: bool = False, filename: str = "hivedscheduler.yaml"
) -> ClusterDocument:
    """The machines as a Cluster document; with `queues` it includes the virtual clusters.

    Raises SpecError as `documents_of` does.
    """
    physical = hived.physical_cluster
    tops = Counter(cell.cell_address for cell in physical.physical_cells)
    data: dict[str, Any] = {
        "engine": engine,
        "cellTypes": {
            name: {"child": each.child_cell_type, "count": each.child_cell_number, **_node(hived, name)}
            for name, each in physical.cell_types.items()
        },
        "cells": [
            _top(hived, cell, at, unique=tops[cell.cell_address] == 1)
            for at, cell in enumerate(physical.physical_cells)
        ],
    }
    if queues:
        data["queues"] = {name: _shape(hived, name) for name in hived.virtual_clusters}
    return _checked(ClusterDocument, data, filename)


def queue_of(hived: HivedCluster, name: str, *, filename: str = "hivedscheduler.yaml") -> QueueDocument:
    """One virtual cluster as a queue that owns its cells."""
    return _checked(QueueDocument, {"kind": "Queue", "name": name, **_shape(hived, name)}, filename)


def _shape(hived: HivedCluster, name: str) -> dict[str, Any]:
    owned = hived.virtual_clusters[name]
    return {
        "cells": [
            {"cellType": _in_chain(cell.cell_type), "count": cell.cell_number}
            for cell in owned.virtual_cells
            if cell.cell_number
        ],
        "pinnedCells": [pin.pinned_cell_id for pin in owned.pinned_cells],
    }


def _in_chain(dotted: str) -> str:
    """Qualify a type by its chain: HiveD's chain name alone means only the cells at the top of that chain."""
    return dotted if "." in dotted else f"{dotted}.{dotted}"


def _checked(model: type[Checked], data: Mapping[str, Any], filename: str) -> Checked:
    try:
        return model.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        raise SpecError(problems_of(error, model, Source(filename, dict(data)))) from None


def _node(hived: HivedCluster, name: str) -> dict[str, Any]:
    """The CPU and memory of a node type: the amounts of its SKU, multiplied by its SKUs per node."""
    types = hived.physical_cluster.cell_types
    if not types[name].is_node_level:
        return {}
    leaves, leaf = 1, name
    while leaf in types:
        leaves *= types[leaf].child_cell_number
        leaf = types[leaf].child_cell_type
    sku = hived.physical_cluster.sku_types.get(leaf)
    if sku is None:
        return {"node": {}}
    times = leaves // max(sku.gpu, 1)
    try:
        cpu, memory = units.parse_cpu(sku.cpu) * times, units.parse_memory(sku.memory) * times
    except ValueError:
        return {"node": {}}
    return {"node": {"cpu": units.format_cpu(cpu), "memory": units.format_memory(memory)}}


def _top(hived: HivedCluster, cell: HivedPhysicalCell, at: int, *, unique: bool) -> dict[str, Any]:
    address = cell.cell_address or str(at)
    if not unique and not hived.physical_cluster.cell_types[cell.cell_type].is_node_level:
        address = f"{level_name(cell.cell_type)}-{address}"
    return {"type": cell.cell_type, **_cell(hived, cell, cell.cell_type, address)}


def _cell(hived: HivedCluster, cell: HivedPhysicalCell, name: str, path: str) -> dict[str, Any]:
    """A cell with all its written children; `path` is its name, made of the addresses from the top."""
    types = hived.physical_cluster.cell_types
    known = types.get(name)
    out: dict[str, Any] = {}
    if known is None:
        out["devices"] = [int(cell.cell_address)] if cell.cell_address else []
    elif known.is_node_level:
        out["name"] = cell.cell_address
    elif _above_node(hived, name):
        out["name"] = _UNFIT.sub("-", path)
    if cell.pinned_cell_id:
        out["pinned"] = cell.pinned_cell_id
    if known is not None and cell.cell_children:
        out["children"] = [
            _cell(hived, child, known.child_cell_type, f"{path}/{child.cell_address or at}")
            for at, child in enumerate(cell.cell_children)
        ]
    return {key: value for key, value in out.items() if value != []}


def _above_node(hived: HivedCluster, name: str) -> bool:
    types = hived.physical_cluster.cell_types
    while name in types:
        name = types[name].child_cell_type
        if name in types and types[name].is_node_level:
            return True
    return False
