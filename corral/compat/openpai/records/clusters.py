"""The JSON shapes of virtual clusters and machines in OpenPAI's API, where some figures have two names."""

from __future__ import annotations

import msgspec


class Figures(msgspec.Struct, frozen=True):
    """Amounts: whole CPUs and devices, each under both of OpenPAI's names, and memory in MB."""

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
    """The device counts of one machine."""

    used: int = msgspec.field(name="gpuUsed")
    available: int = msgspec.field(name="gpuAvailable")
    avaiable: int = msgspec.field(name="gpuAvaiable")
    """The same value under OpenPAI's misspelled name."""
    total: int = msgspec.field(name="gpuTotal")
