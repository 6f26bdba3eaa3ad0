"""Why: OpenPAI's clients read the figures of virtual clusters and machines under names of their own, some of them twice."""

from __future__ import annotations

import msgspec


class Figures(msgspec.Struct, frozen=True):
    """Amounts: whole processors and devices, each under both of their names, and memory in MB."""

    cpu: int
    v_cores: int = msgspec.field(name="vCores")
    memory: int
    gpu: int
    gpus: int = msgspec.field(name="GPUs")


class VirtualCluster(msgspec.Struct, frozen=True, rename="camel"):
    """One virtual cluster; capacities are percentages of all machines."""

    capacity: float
    used_capacity: float
    max_capacity: float
    dedicated: bool
    num_jobs: int
    num_active_jobs: int
    num_pending_jobs: int
    status: str
    resources_used: Figures
    resources_guaranteed: Figures
    resources_total: Figures


class NodeFigures(msgspec.Struct, frozen=True):
    """The devices of one machine."""

    used: int = msgspec.field(name="gpuUsed")
    available: int = msgspec.field(name="gpuAvailable")
    avaiable: int = msgspec.field(name="gpuAvaiable")
    """The same as OpenPAI spelled it."""
    total: int = msgspec.field(name="gpuTotal")
