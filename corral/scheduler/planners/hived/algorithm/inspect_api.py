"""HiveD's inspection documents in JSON, as pages for HiveD read them.

`GET /v1/inspect/affinitygroups[/name]` and `GET /v1/inspect/clusterstatus[/physicalcluster|/virtualclusters[/vc]]`.
Source: HiveD, pkg/api types. An empty field is left out where HiveD leaves it out.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from corral.kernel.errors import InvalidInput, NotFound
from corral.scheduler.planners.hived.algorithm.cells import OPPORTUNISTIC, Cell, CellState, PhysicalCell, VirtualCell
from corral.scheduler.planners.hived.algorithm.groups import Group
from corral.scheduler.planners.hived.algorithm.state import State

Document = dict[str, Any]


def inspected(state: State, what: str) -> Document | list[Document]:
    """Return the document at a path below `/v1/inspect/`.

    Raises InvalidInput where HiveD answers 400, NotFound where it answers 404.
    """
    match what.rstrip("/").split("/"):
        case ["affinitygroups"]:
            return affinity_groups(state)
        case ["affinitygroups", *name]:
            return affinity_group(state, "/".join(name))
        case ["clusterstatus"]:
            return cluster_status(state)
        case ["clusterstatus", "physicalcluster"]:
            return physical_cluster(state)
        case ["clusterstatus", "virtualclusters"]:
            return virtual_clusters(state)
        case ["clusterstatus", "virtualclusters", *name]:
            return virtual_cluster(state, "/".join(name))
    raise NotFound("nothing-to-inspect", f"HiveD has nothing at /v1/inspect/{what[:200]}.")


def affinity_groups(state: State) -> Document:
    """Return all groups: `{"items": [...]}`."""
    return {"items": [_group(group) for group in state.groups.values()]}


def affinity_group(state: State, name: str) -> Document:
    """Return one group; raises InvalidInput (HiveD's 400) if it neither holds nor reserves devices."""
    if name not in state.groups:
        raise InvalidInput("unknown-group", f"Affinity group {name} is neither allocated nor preempting.")
    return _group(state.groups[name])


def cluster_status(state: State) -> Document:
    """Return the physical cells and those of every virtual cluster."""
    return {"physicalCluster": physical_cluster(state), "virtualClusters": virtual_clusters(state)}


def physical_cluster(state: State) -> list[Document]:
    """Return every top-level cell with all cells below it."""
    return [_physical(cell) for chain in state.forest.chains.values() for cell in chain.cells[chain.top]]


def virtual_clusters(state: State) -> dict[str, list[Document]]:
    """Return for each virtual cluster its owned cells with all cells below, then its opportunistic devices."""
    scavenged = _scavenged(state)
    return {name: _tenant(state, name, scavenged.get(name, [])) for name in state.forest.tenants}


def virtual_cluster(state: State, name: str) -> list[Document]:
    """Return the cells of one virtual cluster; raises InvalidInput (HiveD's 400) if it does not exist."""
    if name not in state.forest.tenants:
        raise InvalidInput("unknown-virtual-cluster", f"VC {name} not found.")
    return _tenant(state, name, _scavenged(state).get(name, []))


def _tenant(state: State, name: str, scavenged: list[PhysicalCell]) -> list[Document]:
    tenant = state.forest.tenants[name]
    roots = [root for levels in tenant.owned.values() for cells in levels for root in cells]
    documents = [_virtual(root) for root in [*roots, *tenant.pinned.values()]]
    return documents + [_opportunistic(cell) for cell in scavenged]


def _scavenged(state: State) -> dict[str, list[PhysicalCell]]:
    found: dict[str, list[PhysicalCell]] = {}
    for group in state.groups.values():
        for cell, owned in group.held():
            if owned is None and cell.reserver is None:
                found.setdefault(group.vc, []).append(cell)
    return found


def _group(group: Group) -> Document:
    physical: dict[str, list[int]] = {}
    virtual: dict[str, list[str]] = {}
    for cell, owned in group.held():
        physical.setdefault(cell.nodes[0], []).append(cell.device)
        if owned is not None:
            virtual.setdefault(owned.root.address, []).append(owned.address)
    status: Document = {"vc": group.vc, "priority": group.priority, "state": group.state.value}
    optional: Document = {
        "physicalPlacement": physical,
        "virtualPlacement": virtual,
        "allocatedPods": [pod.pod for pod in group.pods],
        "preemptingPods": list(group.preempting),
    }
    status |= {name: value for name, value in optional.items() if value}
    if group.lazily_preempted_by:
        when = datetime.fromtimestamp(int(group.lazily_preempted_at), UTC)
        status["lazyPreemptionStatus"] = {
            "preemptor": group.lazily_preempted_by,
            "preemptionTime": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
    return {"metadata": {"name": group.name}, "status": status}


def _cell(cell: Cell, address: str, state: CellState, *, healthy: bool, leaf_type: str = "") -> Document:
    document: Document = {"leafCellType": leaf_type} if leaf_type else {}
    document["cellType"] = cell.kind.type
    if cell.kind.at_node:
        document["isNodeLevel"] = True
    return document | {
        "cellAddress": address,
        "cellState": state.value,
        "cellHealthiness": "Healthy" if healthy else "Bad",
        "cellPriority": cell.priority,
    }


def _leaf_type(cell: Cell) -> str:
    """Return the leaf type of a top-level cell, and "" for all others, as HiveD does."""
    if cell.parent is not None:
        return ""
    while cell.children:
        cell = cell.children[0]
    return cell.kind.type


def _physical_alone(cell: PhysicalCell) -> Document:
    document = _cell(cell, cell.address, cell.state, healthy=cell.healthy, leaf_type=_leaf_type(cell))
    vc = cell.virtual.vc if cell.virtual is not None else ""
    if not vc and not cell.children and cell.user is not None and cell.reserver is None:
        vc = cell.user.vc
    return document | ({"vc": vc} if vc else {})


def _virtual_alone(cell: VirtualCell) -> Document:
    return _cell(cell, cell.address, cell.state, healthy=cell.healthy, leaf_type=_leaf_type(cell))


def _physical(cell: PhysicalCell) -> Document:
    document = _physical_alone(cell)
    if cell.children:
        document["cellChildren"] = [_physical(child) for child in cell.children]
    if cell.virtual is not None:
        document["virtualCell"] = _virtual_alone(cell.virtual)
    return document


def _virtual(cell: VirtualCell) -> Document:
    document = _virtual_alone(cell)
    if cell.children:
        document["cellChildren"] = [_virtual(child) for child in cell.children]
    if cell.physical is not None:
        document["physicalCell"] = _physical_alone(cell.physical)
    return document


def _opportunistic(cell: PhysicalCell) -> Document:
    """Return a device that a virtual cluster uses opportunistically, listed among its cells as HiveD does."""
    document = _cell(cell, f"{cell.address}-opp", CellState.USED, healthy=cell.healthy)
    return document | {"cellPriority": OPPORTUNISTIC, "physicalCell": _physical_alone(cell)}
