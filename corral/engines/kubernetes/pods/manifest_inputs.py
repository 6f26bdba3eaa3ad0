"""The cluster-specific inputs of a pod manifest, besides the launch that every engine gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

MANAGED_TAINT: Final = "corral.dev/managed"
"""The taint of nodes that are Corral's alone."""


class Toleration(msgspec.Struct, frozen=True):
    """A toleration of Corral's pods."""

    key: str
    operator: str = "Exists"
    value: str = ""
    effect: str = ""


class Owner(msgspec.Struct, frozen=True, rename="camel"):
    """The object that owns the pod, such as a UnifiedJob."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = True


class ClaimedDevice(msgspec.Struct, frozen=True):
    """A resource claim that the pod uses, and the task's requests in it."""

    claim: str
    requests: tuple[str, ...] = ()
    """The claim's requests; empty means all."""


class PodSettings(msgspec.Struct, frozen=True):
    """Settings of all pods of one server in one namespace."""

    server: str
    """The server's UID."""
    namespace: str
    default_image: str = ""
    image_pull_secrets: tuple[str, ...] = ()
    service_account: str = ""
    storage_limit_bytes: int = 0
    """Bytes that a pod may write to its node, unless its job reserves more; 0 means no limit."""
    tolerations: tuple[Toleration, ...] = (Toleration(MANAGED_TAINT, effect="NoSchedule"),)


class PodParts(msgspec.Struct, frozen=True):
    """The engine's decisions for one task."""

    node: str
    """The node's name in the cluster, without the engine's prefix."""
    owner: Owner | None = None
    secret: str = ""
    """The name of the job's Secret, whose keys are `secret_keys`."""
    env: Mapping[str, str] = {}
    """Corral's own variables, which override the job's."""
    ports: Mapping[str, Sequence[int]] = {}
    host_ports: bool = False
    device_resource: str = ""
    """On shared nodes the resource to request by count, such as nvidia.com/gpu; "" for named devices."""
    rdma: tuple[str, ...] = ()
    """Resources to request one each of, for the node's RDMA network."""
    template: Mapping[str, Any] = {}
