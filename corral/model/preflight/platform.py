"""Judge what machines are like: what slows the tasks on one of them, and in what the machines of a job differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Final

import msgspec

from corral.kernel.units import format_memory
from corral.model.records import Record

MOST_PRESSURE: Final = 0.1
"""The part of a minute in which tasks may wait for a resource."""
LEAST_FREE: Final = 0.05
"""The part of the disk of the task's folder that should be free."""
MOST_DIRTY: Final = 0.1
"""The part of memory that may wait to be written."""
_GIB: Final = 1024**3
_SLOW_CLOCKS: Final = ("hpet", "acpi_pm", "jiffies")
_WAITS: Final = {"cpu": "a processor", "io": "the disk"}
"""What tasks wait for, by the kernel's names where they are not words."""
_NETWORK_AND_DISK: Final = ("network", "NVMe")
"""Their links keep their speed; accelerators lower theirs while they are idle."""
_Word = Annotated[str, msgspec.Meta(max_length=200)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**60)]
_Part = Annotated[float, msgspec.Meta(ge=0, le=1)]


class MachineMemory(Record, frozen=True):
    """Memory in bytes."""

    total: _Count = 0
    available: _Count = 0
    page_cache: _Count = 0
    dirty: _Count = 0
    """Changed pages of files that wait to be written."""
    swap_total: _Count = 0
    swap_free: _Count = 0
    huge_pages_reserved: _Count = 0


class NumaNode(Record, frozen=True):
    """One NUMA node."""

    node: _Count
    processors: _Word = ""
    """Such as 0-15,32-47."""
    memory: _Count = 0


class PciLink(Record, frozen=True):
    """The link of a PCI device: what it runs at, and what it could."""

    address: _Word
    kind: _Word
    driver: _Word = ""
    speed: _Word = ""
    most_speed: _Word = ""
    width: _Count = 0
    most_width: _Count = 0
    numa_node: int | None = None


class MachineDisk(Record, frozen=True):
    """A disk of the machine."""

    name: _Word
    bytes: _Count
    rotational: bool = False
    scheduler: _Word = ""


class FolderDisk(Record, frozen=True):
    """The disk that has the task's folder, in bytes."""

    bytes: _Count = 0
    free: _Count = 0


class MachineFacts(Record, frozen=True):
    """What a task read of its machine; what it could not read is empty."""

    host: _Word = ""
    kernel: _Word = ""
    os: _Word = ""
    processor: _Word = ""
    processors: _Count = 0
    sockets: _Count | None = None
    clock: _Word = ""
    governors: Annotated[dict[_Word, _Count], msgspec.Meta(max_length=16)] = {}
    """How many processors have which governor of their frequency."""
    throttled: _Count | None = None
    """How often processors were throttled since the machine started."""
    huge_pages: _Word = ""
    """Of transparent huge pages: always, madvise or never."""
    swappiness: int | None = None
    numa_balancing: int | None = None
    memory: MachineMemory = MachineMemory()
    numa: Annotated[tuple[NumaNode, ...], msgspec.Meta(max_length=32)] = ()
    pci: Annotated[tuple[PciLink, ...], msgspec.Meta(max_length=64)] = ()
    disks: Annotated[tuple[MachineDisk, ...], msgspec.Meta(max_length=64)] = ()
    drivers: Annotated[dict[_Word, _Word], msgspec.Meta(max_length=32)] = {}
    """Versions of the drivers of devices and networks."""
    pressure: Annotated[dict[_Word, _Part], msgspec.Meta(max_length=8)] = {}
    """The part of the last minute in which some task waited for cpu, memory or io."""
    work_folder: FolderDisk = FolderDisk()


class MachineReport(Record, frozen=True):
    """A machine of the job."""

    task: str
    node: str
    facts: MachineFacts
    findings: tuple[str, ...]


class PlatformReport(Record, frozen=True):
    """The machines of a job, as its tasks found them before their commands began."""

    at: str
    machines: tuple[MachineReport, ...]
    differences: tuple[str, ...]
    """In what machines differ that should be alike, in sentences."""


def judge_machines(told: Sequence[tuple[str, str, MachineFacts]], at: str) -> PlatformReport:
    """The report of what tasks read, each by its name and node; a node with several tasks is shown once."""
    first: dict[str, tuple[str, MachineFacts]] = {}
    for task, node, facts in told:
        first.setdefault(node or facts.host or task, (task, facts))
    machines = [MachineReport(task, node, facts, tuple(findings_of(facts))) for node, (task, facts) in first.items()]
    return PlatformReport(at, tuple(machines), tuple(_differences(machines)))


def findings_of(facts: MachineFacts) -> list[str]:
    """What slows tasks on a machine, in sentences."""
    return [*_of_processors(facts), *_of_memory(facts), *_of_links(facts), *_of_load(facts)]


def _of_processors(facts: MachineFacts) -> list[str]:
    found = []
    for governor, count in facts.governors.items():
        if governor not in ("performance", "schedutil"):
            found.append(
                f"{count} of {facts.processors} processors have the governor {governor}; performance is faster."
            )
    if facts.throttled:
        found.append(
            f"Processors were throttled {facts.throttled} times since the machine started; look at its cooling."
        )
    if facts.clock in _SLOW_CLOCKS:
        found.append(f"The clock source is {facts.clock}, which is slow to read; tsc is usual.")
    return found


def _of_memory(facts: MachineFacts) -> list[str]:
    found, memory = [], facts.memory
    if facts.huge_pages == "never":
        found.append("Transparent huge pages are off; madvise lets programs ask for them.")
    used = memory.swap_total - memory.swap_free
    if used > _GIB:
        found.append(f"{format_memory(used)} of swap are in use.")
    if memory.total and memory.dirty > MOST_DIRTY * memory.total:
        found.append(f"{format_memory(memory.dirty)} of the page cache wait to be written.")
    sizes = [each.memory for each in facts.numa]
    for each in facts.numa:
        if each.memory < 0.9 * max(sizes):
            found.append(
                f"NUMA node {each.node} has {format_memory(each.memory)} of memory, another one "
                f"{format_memory(max(sizes))}."
            )
    return found


def _of_links(facts: MachineFacts) -> list[str]:
    found = []
    for link in facts.pci:
        slower = link.kind in _NETWORK_AND_DISK and link.most_speed and link.speed != link.most_speed
        if link.width < link.most_width or slower:
            found.append(
                f"The PCIe link of {link.address} ({link.kind}) has {link.speed} x{link.width}; it could have "
                f"{link.most_speed} x{link.most_width}."
            )
    return found


def _of_load(facts: MachineFacts) -> list[str]:
    found = []
    for name, part in facts.pressure.items():
        if name != "cpu" and part > MOST_PRESSURE:
            found.append(f"In the last minute tasks waited for {_WAITS.get(name, name)} for {part:.0%} of the time.")
    disk = facts.work_folder
    if disk.bytes and disk.free < LEAST_FREE * disk.bytes:
        found.append(
            f"The disk of the task's folder has {format_memory(disk.free)} left of {format_memory(disk.bytes)}."
        )
    return found


def _differences(machines: Sequence[MachineReport]) -> Iterable[str]:
    yield from _differ("kernel", [(each.node, each.facts.kernel) for each in machines])
    yield from _differ("processor", [(each.node, each.facts.processor) for each in machines])
    yield from _differ("use of huge pages", [(each.node, each.facts.huge_pages) for each in machines])
    for driver in sorted({name for each in machines for name in each.facts.drivers}):
        yield from _differ(f"driver {driver}", [(each.node, each.facts.drivers.get(driver, "")) for each in machines])


def _differ(what: str, values: Sequence[tuple[str, str]]) -> Iterable[str]:
    of_value: dict[str, list[str]] = {}
    for node, value in values:
        of_value.setdefault(value or "none", []).append(node)
    if len(of_value) < 2:
        return
    most_first = sorted(of_value.items(), key=lambda item: -len(item[1]))
    words = [f"{value} on {_some(nodes)}" for value, nodes in most_first[:4]]
    yield f"The {what} differs: {'; '.join(words)}."


def _some(nodes: Sequence[str]) -> str:
    return f"{nodes[0]} and {len(nodes) - 1} more" if len(nodes) > 2 else " and ".join(nodes)
