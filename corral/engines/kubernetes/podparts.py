"""Why: beside what every engine is told of a task, a pod needs what only this cluster knows; here it is said once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

MANAGED_TAINT: Final = "corral.dev/managed"
"""The taint of nodes that are Corral's alone."""


class Toleration(msgspec.Struct, frozen=True):
    """A taint that Corral's pods may run under."""

    key: str
    operator: str = "Exists"
    value: str = ""
    effect: str = ""


class Owner(msgspec.Struct, frozen=True, rename="camel"):
    """The object that the pod goes with, such as a UnifiedJob."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = True


class ClaimedDevice(msgspec.Struct, frozen=True):
    """A resource claim that the pod uses, and which of the claim's requests are the task's."""

    claim: str
    requests: tuple[str, ...] = ()
    """Empty: all of them."""


class PodSettings(msgspec.Struct, frozen=True):
    """What holds for every pod of one server in one namespace."""

    server: str
    """The server's UID."""
    namespace: str
    default_image: str = ""
    image_pull_secrets: tuple[str, ...] = ()
    service_account: str = ""
    storage_limit_bytes: int = 0
    """What a pod may write to its node, unless its job reserves more; 0 is no limit."""
    tolerations: tuple[Toleration, ...] = (Toleration(MANAGED_TAINT, effect="NoSchedule"),)


class PodParts(msgspec.Struct, frozen=True):
    """What the engine found out for this one task."""

    node: str
    """The node's name in the cluster, without the engine's."""
    owner: Owner | None = None
    secret: str = ""
    """The name of the job's Secret, whose keys are `secret_keys`."""
    env: Mapping[str, str] = {}
    """Corral's own variables, over the job's."""
    ports: Mapping[str, Sequence[int]] = {}
    host_ports: bool = False
    device_resource: str = ""
    """On shared nodes the resource that is asked for by count, such as nvidia.com/gpu; "" for devices with names."""
    rdma: tuple[str, ...] = ()
    """Resources of which it asks for one each, to be given the node's network with RDMA."""
    template: Mapping[str, Any] = {}
