"""Expand the described device groups of a node into single devices.

Each device has the attributes that are published and the edits that its container gets.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from corral.kernel.errors import InvalidInput
from corral.spec.devices_document import MOST_DEVICES, DeviceGroup, DevicesDocument, attribute_of, load_devices

PCIE_ROOT: Final = "resource.kubernetes.io/pcieRoot"
"""The standard Kubernetes attribute for a device's PCIe root."""
UNHEALTHY: Final = "corral.dev/unhealthy"
"""The taint key of a broken device."""

_SLICE: Final = 128
"""Devices per ResourceSlice."""


@dataclass(frozen=True, slots=True)
class Gives:
    """The container edits of a device."""

    visible: str = ""
    """The variable that lists the indexes of all given devices; "" for none."""
    env: tuple[tuple[str, str], ...] = ()
    device_nodes: tuple[tuple[str, str, str], ...] = ()
    """(path in the container, path on the machine, permissions)."""
    mounts: tuple[tuple[str, str, bool], ...] = ()
    """(path on the machine, path in the container, read only)."""


@dataclass(frozen=True, slots=True)
class Known:
    """One device of this node."""

    name: str
    index: int
    attributes: tuple[tuple[str, str | int | bool], ...]
    memory_bytes: int
    gives: Gives
    broken: str = ""
    """Why the device is unhealthy; "" when it is healthy."""

    def document(self) -> dict[str, Any]:
        """Return the device as an entry of a ResourceSlice."""
        attributes = [*self.attributes, ("healthy", not self.broken)]
        if self.broken:
            attributes.append(("healthReason", self.broken[:64]))
        found: dict[str, Any] = {"name": self.name, "attributes": {name: _typed(value) for name, value in attributes}}
        if self.memory_bytes:
            found["capacity"] = {"memory": {"value": str(self.memory_bytes)}}
        if self.broken:
            found["taints"] = [{"key": UNHEALTHY, "effect": "NoSchedule"}]
        return found


def read_devices(path: Path) -> DevicesDocument:
    """Read a devices document. Raises InvalidInput for an unreadable file, SpecError for invalid content."""
    try:
        return load_devices(path.read_bytes(), filename=str(path))
    except OSError as error:
        raise InvalidInput("no-description", f"{path} cannot be read: {error.strerror}.") from None


def known_devices(
    document: DevicesDocument, node: str, missing: Callable[[str], bool] | None = None
) -> dict[str, Known]:
    """Return the devices of a node by name.

    `missing` returns whether a path is no device file; by default it checks this machine.
    Raises InvalidInput when a node has more devices than allowed.
    """
    groups = document.of_node(node)
    total = sum(group.count for group in groups)
    if total > MOST_DEVICES:
        raise InvalidInput("too-many-devices", f"The node {node} has {total} devices, and may have {MOST_DEVICES}.")
    found: dict[str, Known] = {}
    for group in groups:
        for number in range(group.count):
            device = _known(group, len(found), number, missing or no_device_file)
            found[device.name] = device
    return found


def no_device_file(path: str) -> bool:
    """Return whether the path has no character or block device."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return True
    return not (stat.S_ISCHR(mode) or stat.S_ISBLK(mode))


def slice_contents(devices: Sequence[Known]) -> list[list[dict[str, Any]]]:
    """Split the devices into the contents of ResourceSlices. There is always at least one slice."""
    documents = [device.document() for device in devices]
    return [documents[start : start + _SLICE] for start in range(0, len(documents), _SLICE)] or [[]]


def _known(group: DeviceGroup, index: int, number: int, missing: Callable[[str], bool]) -> Known:
    def filled(text: str) -> str:
        return text.replace("$(index)", str(index)).replace("$(number)", str(number))

    attributes: list[tuple[str, str | int | bool]] = [("kind", group.kind), ("model", group.model), ("index", index)]
    if group.cells:
        attributes.append(("levels", ",".join(group.cells)))
        attributes += [(attribute_of(level), str(number // size)) for level, size in group.cells.items()]
    if group.pcie_roots:
        root = group.pcie_roots[number // (group.count // len(group.pcie_roots))]
        attributes.append((PCIE_ROOT, root))
    attributes += group.attributes.items()
    nodes = tuple(
        (filled(node.path), filled(node.host or node.path), node.permissions or "rw") for node in group.device_nodes
    )
    reasons = {each.number: each.reason for each in group.unhealthy}
    absent = [host for _, host, _ in nodes if missing(host)]
    return Known(
        name=f"{group.kind}-{index}",
        index=index,
        attributes=tuple(attributes),
        memory_bytes=group.memory_bytes,
        gives=Gives(
            group.visible,
            tuple((filled(name), filled(value)) for name, value in group.env.items()),
            nodes,
            tuple((filled(mount.host), filled(mount.path or mount.host), mount.read_only) for mount in group.mounts),
        ),
        broken=reasons.get(number, f"no device file {absent[0]}" if absent else ""),
    )


def _typed(value: str | int | bool) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"bool": value}
    return {"int": value} if isinstance(value, int) else {"string": value}
