"""The machines of a simulation: a short form such as `8x8`, or the documents that a server would read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from corral.control.core.configuration import scheduler_policy
from corral.devices.described import described_inventory
from corral.kernel.errors import InvalidInput
from corral.model.configuration import Configuration, configuration_of
from corral.model.inventory import Device, Inventory, Node
from corral.scheduler import Policy
from corral.spec.configuration_file import load_site

ENGINE: Final = "local"
_SHORT: Final = re.compile(r"([0-9]{1,5})x([0-9]{1,2})(?:x([0-9]{1,3}))?")
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
    def devices_per_node(self) -> int:
        """Return the devices of the largest machine."""
        return max((len(node.devices) for node in self.inventory.nodes), default=0)

    def policy(self, default: Policy) -> Policy:
        """Return the policy of the documents, or `default` if they have none."""
        return scheduler_policy(self.configuration.policy, default)


def plain_site(text: str) -> Site | None:
    """Read `NODESxDEVICES` or `NODESxDEVICESxNODES_PER_RACK`; None for other text. Raises InvalidInput for other sizes."""
    short = _SHORT.fullmatch(text.strip())
    if short is None:
        return None
    nodes, devices, rack = (int(each or 0) for each in short.groups())
    return Site(_plain(nodes, devices, rack or nodes), Configuration())


def described_site(text: str | bytes, filename: str = "cluster.yaml") -> Site:
    """Read documents of which one is a Cluster that describes its nodes.

    Raises InvalidInput, or SpecError with every problem of the documents.
    """
    configuration = configuration_of(load_site(text, filename=filename))
    described = [cluster for cluster in configuration.clusters.values() if cluster.nodes]
    if len(described) != 1:
        said = "A simulation needs one Cluster document that describes its nodes"
        raise InvalidInput("no-machines", f"{said}; {filename} has {len(described)}.")
    return _checked(Site(described_inventory(described[0], described[0].engine), configuration))


def _plain(nodes: int, devices: int, rack: int) -> Inventory:
    """Return equal nodes with devices and more processors and memory than any job asks for."""
    if not 1 <= nodes * devices <= _MOST_DEVICES:
        raise InvalidInput(
            "no-machines", f"{nodes} nodes of {devices} devices are not from 1 to {_MOST_DEVICES} devices."
        )
    made = (
        Node(
            name=f"{ENGINE}/node{at:05}",
            cells=(("rack", f"rack{at // rack:05}"),),
            devices=tuple(Device(index, f"{at}:{index}", described=True) for index in range(devices)),
            cpu_millis=_CPU_MILLIS,
            memory_bytes=_MEMORY_BYTES,
        )
        for at in range(nodes)
    )
    return Inventory(ENGINE, tuple(made))


def _checked(site: Site) -> Site:
    if not 1 <= site.devices <= _MOST_DEVICES:
        raise InvalidInput(
            "no-machines", f"The described machines have {site.devices} devices instead of 1 to {_MOST_DEVICES}."
        )
    return site
