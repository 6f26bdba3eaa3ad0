"""Take the machine's own figures from Prometheus' node exporter, where it measures them already.

Names, labels and units are node exporter's own. Of its series those are taken that Corral would measure itself: whole
disks, file systems on disks and servers (each once), interfaces but loopback, and failed links of interfaces with hardware.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from corral.devices.figures.exporter_page import (
    NODE_EXPORTER,
    SECONDS,
    ExporterUrl,
    Series,
    exporter_url,
    fetched,
    series_of,
)
from corral.model.metrics.families import FAMILIES
from corral.model.metrics.node_families import NodeMetric
from corral.model.metrics.samples import Value
from corral.monitor.agent.machine_files import (
    DISK_SYSTEMS,
    MODES,
    MOST_CPUS,
    MOST_LINES,
    SERVER_SYSTEMS,
    FileSystem,
    is_whole_disk,
)
from corral.monitor.agent.machine_samples import fault_values

_ADDRESS_KIND: Final = "node_network_address_assign_type"
_OF_HARDWARE: Final = 0
"""NET_ADDR_PERM of the kernel: the interface has its address from hardware, as bridges and those of containers have not."""
_BEGINS: Final = (*NodeMetric, _ADDRESS_KIND)
_AGENT: Final = b"\ncorral_agent_"
_FILE_SYSTEM: Final = frozenset(
    {
        NodeMetric.FILE_SYSTEM,
        NodeMetric.FILE_SYSTEM_AVAILABLE,
        NodeMetric.FILE_SYSTEM_READ_ONLY,
        NodeMetric.FILE_SYSTEM_ERROR,
    }
)
_KINDS: Final = DISK_SYSTEMS | SERVER_SYSTEMS
_DISK: Final = frozenset({NodeMetric.DISK_READ, NodeMetric.DISK_WRITTEN})
_NETWORK: Final = frozenset({NodeMetric.NETWORK_IN, NodeMetric.NETWORK_OUT})


def machine_source(address: str) -> Callable[[], Sequence[Value]] | None:
    """What reads the machine from node exporter at an address; None without one. Raises InvalidInput for a wrong one."""
    if not address:
        return None
    return NodeExporterReader(exporter_url(address, NODE_EXPORTER)).read


class NodeExporterReader:
    """Reads the machine from node exporter in each round; one that does not answer leaves the machine out."""

    def __init__(self, url: ExporterUrl, seconds: float = SECONDS) -> None:
        self._url, self._seconds = url, seconds

    def read(self) -> list[Value]:
        """Return the series of the page of now, and faults that the kernel alone tells.

        Raises OSError or ValueError if there is no page.
        """
        return [*parse_page(fetched(self._url, self._seconds)), *fault_values()]


def parse_page(page: bytes) -> list[Value]:
    """The series of a page that Corral has, too. Raises ValueError for a page that tells nothing of a machine."""
    if _AGENT in page:
        raise ValueError("node exporter's address is that of a Corral agent, which asks node exporter itself")
    told = list(series_of(page, _BEGINS))
    hardware = {
        each.labels.get("device", "") for each in told if each.name == _ADDRESS_KIND and each.value == _OF_HARDWARE
    }
    mounts: dict[tuple[str, ...], str] = {}
    counts: dict[str, int] = {}
    found: list[Value] = []
    for each in told:
        family = FAMILIES.get(each.name)
        if family is None or not _is_wanted(each, hardware, mounts):
            continue
        labels = tuple(each.labels.get(name, "") for name in family.labels)
        counts[each.name] = counts.get(each.name, 0) + 1
        if counts[each.name] <= _most(each.name) and all(map(str.isprintable, labels)):
            found.append(Value(each.name, labels, each.value))
    if not found:
        raise ValueError("node exporter tells nothing of a machine")
    return found


def _is_wanted(each: Series, hardware: set[str], mounts: dict[tuple[str, ...], str]) -> bool:
    """Whether Corral tells of this disk, file system or interface; `mounts` is the first mount of each file system."""
    labels: Mapping[str, str] = each.labels
    device = labels.get("device", "")
    if each.name in _FILE_SYSTEM:
        told = FileSystem(device, labels.get("fstype", ""), labels.get("mountpoint", ""))
        return told.kind in _KINDS and mounts.setdefault(told.identity, told.mount) == told.mount
    if each.name in _DISK:
        return is_whole_disk(device)
    if each.name in _NETWORK:
        return device != "lo"
    if each.name == NodeMetric.LINK_DOWN:
        return device != "lo" and device in hardware
    return each.name != NodeMetric.CPU or labels.get("mode") in MODES


def _most(name: str) -> int:
    """Series of a family that are told."""
    return MOST_CPUS * len(MODES) if name == NodeMetric.CPU else MOST_LINES
