"""Turn the measured links between the devices of a node into cells below the node."""

from __future__ import annotations

from dataclasses import dataclass

from corral.spec.expanded_machines import Cells
from corral.spec.link_quality import APART, SAME_NUMA, SAME_SWITCH, UNKNOWN, Matrix, groups, islands

_ORDER = ("numa", "nvlink", "pcie-switch")


@dataclass(frozen=True)
class Wiring:
    """The devices of one node and their links; each matrix is square, in the order of `names`."""

    names: tuple[str, ...]
    links: Matrix
    """The best link between two devices."""
    pcie: Matrix
    """The path over PCIe where it is known; APART means another switch.

    A table does not show it beside NVLink.
    """
    numa: tuple[int, ...] = ()
    """The NUMA node of each device; () when unknown."""

    def cells(self) -> tuple[Cells, ...]:
        """For each device, the cells between the node and the device, outermost first.

        `nvlink` is an island in which all devices are linked. With NVSwitches it is wider than `numa`; where only pairs
        have bridges it is narrower. A PCIe switch that overlaps an island is divided by it, so that bridged pairs rank
        nearer. Unknown levels are left out.
        """
        own = islands(self.links)
        found = (self._numa(), own, _cut(self._switches(), own))
        levels = {level: numbers for level, numbers in zip(_ORDER, found, strict=True) if numbers}
        return tuple(self._of(device, levels) for device in range(len(self.names)))

    def _of(self, device: int, levels: dict[str, list[int]]) -> Cells:
        found = [(level, numbers[device]) for level, numbers in levels.items()]
        found.sort(key=lambda cell: -levels[cell[0]].count(cell[1]))
        return tuple((level, str(number)) for level, number in found)

    def _numa(self) -> list[int]:
        return list(self.numa) or _certain(self.pcie, SAME_NUMA, doubt=APART)

    def _switches(self) -> list[int]:
        return _certain(self.pcie, SAME_SWITCH, doubt=UNKNOWN)


def _certain(pcie: Matrix, least: int, *, doubt: int) -> list[int]:
    """Groups of devices joined by links of at least `least`; [] when a doubtful link may join two groups."""
    numbers = groups(pcie, least)
    size = range(len(numbers))
    certain = all(numbers[a] == numbers[b] or pcie[a][b] > doubt for a in size for b in size if a != b)
    return numbers if certain else []


def _cut(switches: list[int], own: list[int]) -> list[int]:
    """Divide each PCIe switch that an island overlaps, unless one contains the other."""
    if not switches or not own:
        return switches
    of = {number: {at for at, each in enumerate(switches) if each == number} for number in switches}
    island = {number: {at for at, each in enumerate(own) if each == number} for number in own}
    crossed = {
        number
        for number, members in of.items()
        if any(not (members <= island[own[at]] or island[own[at]] <= members) for at in members)
    }
    keys = [(number, own[at]) if number in crossed else (number, -1) for at, number in enumerate(switches)]
    names = {key: at for at, key in enumerate(dict.fromkeys(keys))}
    return [names[key] for key in keys]
