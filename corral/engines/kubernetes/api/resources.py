"""The addresses of Kubernetes' resources, and calls on them with their description in words."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

import msgspec


class Resource(msgspec.Struct, frozen=True):
    """One kind of object at the API server."""

    plural: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True

    @property
    def title(self) -> str:
        """Its name as `kubectl` and roles write it: `pods`, `resourceclaims.resource.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


PODS: Final = Resource("pods")
EVENTS: Final = Resource("events")
SECRETS: Final = Resource("secrets")
CONFIG_MAPS: Final = Resource("configmaps")
NODES: Final = Resource("nodes", namespaced=False)
NAMESPACES: Final = Resource("namespaces", namespaced=False)
PERSISTENT_VOLUMES: Final = Resource("persistentvolumes", namespaced=False)
VOLUME_CLAIMS: Final = Resource("persistentvolumeclaims")
CLAIMS: Final = Resource("resourceclaims", "resource.k8s.io")
SLICES: Final = Resource("resourceslices", "resource.k8s.io", namespaced=False)


class Call(msgspec.Struct, frozen=True):
    """One verb on one resource. Without a name it means all objects, without a namespace all namespaces."""

    verb: str
    """The verb as roles write it: get, list, watch, create, update, patch, delete, deletecollection."""
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def method(self) -> str:
        """The HTTP method of the verb."""
        return _METHODS[self.verb]

    @property
    def path(self) -> str:
        """The path at the API server, with every part quoted."""
        resource = self.resource
        parts = ["apis", resource.group, resource.version] if resource.group else ["api", resource.version]
        if resource.namespaced and self.namespace:
            parts += ["namespaces", self.namespace]
        parts.append(resource.plural)
        if self.name:
            parts.append(self.name)
            parts += [part for part in self.subresource.split("/") if part]
        return "/" + "/".join(quote(part, safe="") for part in parts)

    @property
    def what(self) -> str:
        """The verb and its resource without a name: `create pods in namespace x`."""
        title = f"{self.resource.title}/{self.subresource}" if self.subresource else self.resource.title
        if not self.resource.namespaced:
            return f"{self.verb} {title}"
        return f"{self.verb} {title} in {f'namespace {self.namespace}' if self.namespace else 'all namespaces'}"

    def __str__(self) -> str:
        if not self.name:
            return self.what
        return self.what.replace(self.resource.title, f"{self.resource.title} {self.name}", 1)


_METHODS: Final = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
