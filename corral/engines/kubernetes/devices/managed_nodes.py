"""Give devices by name on managed nodes, which are labelled and tainted for Corral alone.

There a device is given by a claim (its driver publishes it in a ResourceSlice), or by its vendor's variable. For the
variable, an annotation of the node lists the ids, and the device plugin's resource is not requested. On all other nodes
a plugin or kube-scheduler chooses the device, and Corral only counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

import msgspec

from corral.engines.kubernetes.devices.claim_state import ClaimBook
from corral.engines.kubernetes.devices.resource_slices import Named, Slices
from corral.engines.kubernetes.pods.labels import MANAGED
from corral.engines.kubernetes.watch import node_structs as kubernetes
from corral.model.inventory import Device

LISTED: Final = "corral.dev/devices"
"""A node annotation: the comma-separated ids of its devices, as their vendor's variable takes them.

Each may be followed by `;LEVEL=CELL` for the cells that it is in, and `;model=NAME`.
"""
SHARED: Final = (
    f"its node is shared: devices of drivers are given on nodes with the label and taint {MANAGED} (NoSchedule) only"
)
HELD: Final = "held by the claim {}, which is not Corral's"
_VARIABLES: Final = (
    ("nvidia.com/", "NVIDIA_VISIBLE_DEVICES", "void"),
    ("amd.com/", "AMD_VISIBLE_DEVICES", "none"),
    ("huawei.com/", "ASCEND_VISIBLE_DEVICES", "void"),
    ("cambricon.com/", "CAMBRICON_VISIBLE_DEVICES", "none"),
    ("habana.ai/", "HABANA_VISIBLE_DEVICES", "none"),
)
"""(prefix of a device plugin's resource, variable of its vendor's container runtime, value for no device)."""
_ID: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.:/]{0,127}")
_CELL: Final = re.compile(r"([a-z0-9][-a-z0-9]{0,62})=([^\s;,=]{1,63})")
_MOST_LISTED: Final = 1024


class Given(msgspec.Struct, frozen=True):
    """How the named devices of one node are given to pods."""

    named: dict[str, Named] = {}
    """The claim's name of each claimed device, by device id."""
    listed: frozenset[str] = frozenset()
    """The ids of devices that are given by the variable."""
    variable: str = ""
    """The variable that confines a container to devices; "" where the vendor is unknown or the node is shared."""
    nothing: str = ""
    """The variable's value for no device."""

    def has(self, device: str) -> bool:
        """Return whether the node has a device of this id that can be given by name."""
        return device in self.named or device in self.listed

    def variables(self, devices: Iterable[Device]) -> dict[str, str]:
        """Return the variable with the task's devices for its container."""
        if not self.variable:
            return {}
        return {self.variable: ",".join(each.id for each in devices if each.id in self.listed) or self.nothing}


NOTHING: Final = Given()


def is_managed(node: kubernetes.Node) -> bool:
    """Return whether a node is Corral's alone: it has the label, and a taint that keeps others' pods away."""
    kept = any(taint.key == MANAGED and taint.effect == "NoSchedule" for taint in node.spec.taints)
    return kept and node.metadata.labels.get(MANAGED, "false") != "false"


def listed(node: kubernetes.Node) -> tuple[tuple[Device, str], ...]:
    """Return the devices that a node's annotation lists, each with its vendor's variable; none if it is invalid."""
    text = node.metadata.annotations.get(LISTED, "")
    variable = variables(node)
    return _read(text, variable[0]) if text and variable else ()


def variables(node: kubernetes.Node) -> tuple[str, str] | None:
    """Return the device variable of a node and its value for none, or None for an unknown vendor."""
    for resource in sorted(node.status.capacity):
        for beginning, variable, nothing in _VARIABLES:
            if resource.startswith(beginning):
                return variable, nothing
    return None


@lru_cache(maxsize=10_000)
def _read(text: str, variable: str) -> tuple[tuple[Device, str], ...]:
    found: list[tuple[Device, str]] = []
    for entry in text.split(",")[:_MOST_LISTED]:
        name, *more = (part.strip() for part in entry.split(";"))
        cells = [_CELL.fullmatch(part) for part in more]
        if not _ID.fullmatch(name) or None in cells or name in {device.id for device, _ in found}:
            return ()
        told = [(cell[1], cell[2]) for cell in cells if cell is not None]
        model = dict(told).get("model", "")
        inner = tuple(cell for cell in told if cell[0] != "model")
        found.append((Device(len(found), name, model=model, cells=inner), variable))
    return tuple(found)


def doubt(names: int, usable: int, held: int) -> str:
    """Return why a node's listed devices are unusable, "" if they are usable.

    A device plugin reports how many devices are given to others or broken, but not which.
    """
    if held:
        return f"pods that are not Corral's hold {held} of the node's devices, and nothing says which"
    if usable < names:
        return f"the device plugin has {usable} working devices and the annotation {LISTED} lists {names}"
    return ""


class NamedDevices:
    """The devices of all nodes that drivers publish, and why any of them is unavailable."""

    def __init__(self, slices: Slices | None = None, book: ClaimBook | None = None) -> None:
        self._slices, self._book = slices or Slices(), book

    def given(self, node: kubernetes.Node) -> Given:
        """Return how the node's devices are given to pods."""
        if not is_managed(node):
            return NOTHING
        variable, nothing = variables(node) or ("", "")
        named = {device.id: how for device, how in self._slices.devices(node.metadata.name)}
        return Given(named, frozenset(device.id for device, _ in listed(node)), variable, nothing)

    def devices(self, node: str, *, managed: bool) -> tuple[tuple[Device, Named], ...]:
        """Return the devices of a node in the order of their indexes, each with its name for a claim."""
        return tuple(self._told(node, managed=managed))

    def _told(self, node: str, *, managed: bool) -> Iterator[tuple[Device, Named]]:
        for device, named in self._slices.devices(node):
            holder = self._book.holder(named) if self._book is not None else ""
            reason = HELD.format(holder) if holder else "" if managed else SHARED
            if reason and device.healthy:
                yield msgspec.structs.replace(device, healthy=False, health_reason=reason), named
            else:
                yield device, named
