"""Why: how the devices of a node are wired, by whoever measured it, becomes the cells below the node, once for all."""

from __future__ import annotations

from dataclasses import dataclass

from corral.spec.links import APART, SAME_NUMA, SAME_SWITCH, UNKNOWN, Matrix, groups, islands
from corral.spec.machines import Cells

_ORDER = ("numa", "nvlink", "pcie-switch")


@dataclass(frozen=True)
class Wiring:
    """The devices of one node and the ways between them, each matrix square in their order."""

    names: tuple[str, ...]
    links: Matrix
    """The best way between two devices."""
    pcie: Matrix
    """The way over PCIe, where it is known: a table does not tell it beside NVLink. APART is another switch."""
    numa: tuple[int, ...] = ()
    """The NUMA node of each device, () when nobody said it."""

    def cells(self) -> tuple[Cells, ...]:
        """By device the cells between the node and it, outermost first.

        `nvlink` is an island in which all devices are linked: on a machine with NVSwitches it is wider than `numa`, where
        only pairs have bridges it is narrower. A PCIe switch that such a bridge leads out of is cut by it, so that the
        bridged pair is nearer. What is not known is left out.
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
    """The groups of devices as near as `least`, [] when some pair of two groups is in doubt, and may belong together."""
    numbers = groups(pcie, least)
    size = range(len(numbers))
    certain = all(numbers[a] == numbers[b] or pcie[a][b] > doubt for a in size for b in size if a != b)
    return numbers if certain else []


def _cut(switches: list[int], own: list[int]) -> list[int]:
    """The switches, those that overlap with an island without one being inside the other divided by it."""
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
