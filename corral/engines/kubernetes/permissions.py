"""Why: what Corral has to be allowed on a cluster is one list: doctor asks for each, chart and docs are held to it."""

from __future__ import annotations

from typing import Final, NamedTuple

from corral.engines.kubernetes.resources import (
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
    """Verbs on one resource, and what they are for."""

    resource: Resource
    verbs: tuple[str, ...]
    purpose: str
    subresource: str = ""
    everywhere: bool = False
    """In all namespaces, or about things of no namespace; else in that of the pods."""

    @property
    def title(self) -> str:
        """As roles write it: `pods/log`."""
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
"""Without these tasks do not run, or not well."""
FOR_DEVICES: Final = (
    Permission(SLICES, ("list", "watch"), "devices of drivers", everywhere=True),
    Permission(CLAIMS, ("list", "watch"), "who holds which device", everywhere=True),
    Permission(CLAIMS, ("get", "create", "patch", "delete"), "devices by their names"),
    Permission(CLAIMS, ("patch",), "devices by their names", "status"),
)
"""Where the cluster serves DRA."""
