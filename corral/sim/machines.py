"""The machines of a simulation: a short form such as `8x8` or `2x4:v100,4x4:k80`, or a server's documents."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from corral.control.core.configuration import scheduler_policy
from corral.devices.described import described_inventory
from corral.kernel.errors import InvalidInput, NotFound
from corral.model.configuration import Configuration, configuration_of
from corral.model.inventory import Device, Inventory, Node
from corral.scheduler import Policy
from corral.spec.configuration_file import load_site
from corral.spec.errors import shorten

ENGINE: Final = "local"
_SHORT: Final = re.compile(r"([0-9]{1,5})x([0-9]{1,2})(?:x([0-9]{1,3}))?(?::([A-Za-z0-9][A-Za-z0-9._-]{0,62}))?")
_MOST_PARTS: Final = 100
_MOST_DEVICES: Final = 131_072
_CPU_MILLIS: Final = 1_000_000
_MEMORY_BYTES: Final = 2**50


@dataclass(frozen=True)
class Site:
    """The machines and the documents in force."""

    inventory: Inventory
    configuration: Configuration

    @cached_property
    def devices(self) -> int:
        """Return the devices of all machines."""
        return sum(len(node.devices) for node in self.inventory.nodes)

    @cached_property
    def models(self) -> Mapping[str, int]:
        """Return the number of devices by model; "" is a model without a name."""
        return Counter(device.model for node in self.inventory.nodes for device in node.devices)

    @cached_property
    def model_of(self) -> Mapping[tuple[str, int], str]:
        """Return the model of each device by node and index; empty where no device has one."""
        if self.models.keys() <= {""}:
            return {}
        return {(node.name, device.index): device.model for node in self.inventory.nodes for device in node.devices}

    @cached_property
    def devices_per_node(self) -> int:
        """Return the devices of the largest machine."""
        return max((len(node.devices) for node in self.inventory.nodes), default=0)

    def policy(self, default: Policy) -> Policy:
        """Return the policy of the documents, or `default` if they have none."""
        return scheduler_policy(self.configuration.policy, default)


def plain_site(text: str) -> Site | None:
    """Read `NODESxDEVICES`, `NODESxDEVICESxNODES_PER_RACK`, either with `:MODEL`, or several of them between commas.

    Returns None for other text. Raises InvalidInput for other sizes.
    """
    parts = [_SHORT.fullmatch(part) for part in text.strip().split(",", _MOST_PARTS)]
    made: list[Node] = []
    racks = total = 0
    for part in parts:
        if part is None:
            return None
        nodes, devices, rack = (int(each or 0) for each in part.groups()[:3])
        total += nodes * devices
        if not (nodes * devices and total <= _MOST_DEVICES):
            raise InvalidInput(
                "no-machines", f"{nodes} nodes of {devices} devices are not from 1 to {_MOST_DEVICES} devices."
            )
        made += _plain(nodes, devices, rack or nodes, part[4] or "", len(made), racks)
        racks += -(-nodes // (rack or nodes))
    return checked_site(Site(Inventory(ENGINE, tuple(made)), Configuration()))


def machines_file(text: str) -> Path:
    """Return the file that machines are read from; raises NotFound where there is none of the name."""
    file = Path(text)
    if not os.path.isfile(file):  # False for text that is too long for a name, too
        raise NotFound("no-file", f"{shorten(text, 100)} is neither NODESxDEVICES, such as 4x8, nor a file.")
    return file


def described_site(text: str | bytes, filename: str = "cluster.yaml") -> Site:
    """Read documents of which one is a Cluster that describes its nodes.

    Raises InvalidInput, or SpecError with every problem of the documents.
    """
    return site_of(configuration_of(load_site(text, filename=filename)), filename)


def site_of(configuration: Configuration, filename: str) -> Site:
    """Return the machines that the only Cluster document describes; raises InvalidInput if there is none."""
    described = [cluster for cluster in configuration.clusters.values() if cluster.nodes]
    if len(described) != 1:
        said = "A simulation needs one Cluster document that describes its nodes"
        raise InvalidInput("no-machines", f"{said}; {filename} has {len(described)}.")
    return checked_site(Site(described_inventory(described[0], described[0].engine), configuration))


def _plain(nodes: int, devices: int, rack: int, model: str, first: int, racks: int) -> Iterator[Node]:
    """Yield equal nodes with devices and more processors and memory than any job asks for, after other such nodes."""
    for at in range(first, first + nodes):
        yield Node(
            name=f"{ENGINE}/node{at:05}",
            cells=(("rack", f"rack{racks + (at - first) // rack:05}"),),
            devices=tuple(Device(index, f"{at}:{index}", model=model, described=True) for index in range(devices)),
            cpu_millis=_CPU_MILLIS,
            memory_bytes=_MEMORY_BYTES,
        )


def checked_site(site: Site) -> Site:
    """Return the site; raises InvalidInput where its machines have no devices, or too many."""
    if not 1 <= site.devices <= _MOST_DEVICES:
        raise InvalidInput(
            "no-machines", f"The described machines have {site.devices} devices instead of 1 to {_MOST_DEVICES}."
        )
    return site
