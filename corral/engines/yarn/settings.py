"""The YARN engine's settings."""

from __future__ import annotations

import msgspec


class YarnSettings(msgspec.Struct, frozen=True):
    """One Hadoop cluster as Corral uses it."""

    server: str
    """The permanent UID of this Corral server: part of the names of its services."""
    resource_managers: tuple[str, ...]
    """The URLs of the ResourceManagers; the active one of a pair is found."""
    file_systems: tuple[str, ...]
    """The URLs of the NameNodes' WebHDFS; the active one of a pair is found."""
    user: str
    """The Hadoop user as whom services run."""
    url: str
    """The URL under which slots reach this server."""
    certificate: str = ""
    """The server's own certificate (PEM); "" means the nodes' trust store."""
    name: str = "yarn"
    """The engine's name, the first part of its nodes' names."""
    queue: str = "default"
    """The YARN queue of the services."""
    folder: str = "/apps/corral"
    """The folder in HDFS for the runtime and the records of attempts."""
    attribute: str = "nm.yarn.io/corral-node"
    """The node attribute that has each node's name, by which containers are pinned."""
    device_resource: str = "yarn.io/gpu"
    """The resource by which YARN counts devices."""
    device_kind: str = "gpu"
    stage_command: tuple[str, ...] = ()
    """The words that move data on the nodes; empty refuses tasks with inputs or outputs."""
    start_seconds: float = 120.0
    """Seconds after which containers that YARN did not give are given back, and their attempts fail."""
    idle_seconds: float = 60.0
    """Seconds for which a slot without an attempt is kept for a retry."""
    lifetime_seconds: int = 7 * 24 * 3600
    """Seconds after which YARN ends a service that no server has prolonged."""
