"""What a cluster that Corral shares with others says of its queues and of the applications that are not Corral's."""

from __future__ import annotations

from corral.model.records import Record
from corral.model.views import Amounts


class SharedQueue(Record, frozen=True):
    """A queue of the cluster's own scheduler."""

    name: str
    """With the queues above it: `root.research`."""
    state: str = ""
    capacity: float = 0.0
    """Percent of the whole cluster that it is promised."""
    used_percent: float = 0.0
    """Percent of the whole cluster that its applications use, Corral's among them."""
    used: Amounts = Amounts()
    running: int = 0
    """Applications that run in it; `pending` wait."""
    pending: int = 0
    corral: bool = False
    """Whether Corral puts jobs into it: by the engine's settings, or at present."""


class OtherApplication(Record, frozen=True):
    """A running or waiting application of the cluster that is not Corral's."""

    id: str
    name: str
    user: str
    queue: str
    kind: str = ""
    """What the cluster calls it: MAPREDUCE, SPARK, …"""
    state: str = ""
    started_at: str = ""
    containers: int = 0
    used: Amounts = Amounts()


class ClusterUse(Record, frozen=True):
    """How one cluster is used beside Corral."""

    engine: str
    queues: tuple[SharedQueue, ...] = ()
    applications: tuple[OtherApplication, ...] = ()
    """The ones that use most memory first."""
    left_out: int = 0
    """Further applications that are not listed."""
    others: Amounts = Amounts()
    """What all applications that are not Corral's use."""
    corral: Amounts = Amounts()
    """What Corral's own applications use, the masters of its services among them."""
    trouble: str = ""
    """Why the cluster could not be asked; "" when it answered."""
