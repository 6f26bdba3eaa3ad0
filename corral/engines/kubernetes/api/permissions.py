"""The list of permissions that Corral needs on a cluster. `doctor` checks it, and chart and docs must match it."""

from __future__ import annotations

from typing import Final, NamedTuple

from corral.engines.kubernetes.api.resources import (
    CLAIMS,
    CONFIG_MAPS,
    EVENTS,
    NODES,
    PERSISTENT_VOLUMES,
    PODS,
    SECRETS,
    SLICES,
    VOLUME_CLAIMS,
    Resource,
)

OBJECTS: Final = (
    Resource("unifiedjobs", "corral.dev", "v1alpha1"),
    Resource("unifiedjobs", "ai.centauruscloud.io", "v1alpha1"),
    Resource("frameworks", "frameworkcontroller.microsoft.com"),
)


class Permission(NamedTuple):
    """Verbs on one resource, and their purpose."""

    resource: Resource
    verbs: tuple[str, ...]
    purpose: str
    subresource: str = ""
    everywhere: bool = False
    """Whether it is for all namespaces or cluster-scoped; otherwise it is for the pods' namespace."""

    @property
    def title(self) -> str:
        """The resource as roles write it: `pods/log`."""
        return f"{self.resource.title}/{self.subresource}" if self.subresource else self.resource.title


NEEDED: Final = (
    Permission(PODS, ("list", "watch"), "what there is, and what others hold", everywhere=True),
    Permission(NODES, ("list", "watch"), "the machines", everywhere=True),
    Permission(PODS, ("get", "create", "patch", "delete"), "tasks"),
    Permission(PODS, ("get",), "logs", "log"),
    Permission(PODS, ("get", "create"), "commands beside tasks, copies", "exec"),
    Permission(PODS, ("get", "create"), "notebooks, corral forward", "portforward"),
    Permission(SECRETS, ("list", "create", "patch", "delete"), "secrets, plans"),
    Permission(CONFIG_MAPS, ("create",), "the runtime"),
    Permission(EVENTS, ("list", "watch"), "what the cluster says of pods"),
    Permission(PERSISTENT_VOLUMES, ("list", "watch"), "which nodes reach which volumes", everywhere=True),
    Permission(VOLUME_CLAIMS, ("get", "patch"), "volumes where the tasks are"),
)
"""Permissions without which tasks do not run, or not well."""
FOR_DEVICES: Final = (
    Permission(SLICES, ("list", "watch"), "devices of drivers", everywhere=True),
    Permission(CLAIMS, ("list", "watch"), "who holds which device", everywhere=True),
    Permission(CLAIMS, ("get", "create", "patch", "delete"), "devices by their names"),
    Permission(CLAIMS, ("patch",), "devices by their names", "status"),
)
"""Further permissions where the cluster serves DRA."""
