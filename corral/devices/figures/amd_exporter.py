"""Read AMD GPUs from AMD's device metrics exporter, where it measures them already.

Names and units are those of `docs/configuration/metricslist.md` of ROCm/device-metrics-exporter. Its pages write them in
small letters, and with the prefix `amd_` where it is configured so; older versions wrote labels in capitals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from corral.devices.figures.amd import AmdReader
from corral.devices.figures.device_figures import MOST_DEVICES, DeviceFigures, Held, number, word
from corral.devices.figures.exporter_page import SECONDS, ExporterUrl, fetched, series_of

_MIB: Final = 2**20
_PREFIX: Final = "amd_"
_BEGINS: Final = tuple(
    f"{prefix}{name}" for prefix in ("", _PREFIX, _PREFIX.upper()) for name in ("gpu_", "pcie_", "GPU_", "PCIE_")
)
_NOT_KNOWN: Final = frozenset({2.0**16 - 1, 2.0**32 - 1})
"""What AMD's library says for a figure that it does not have."""
_PERCENT: Final[Mapping[str, str]] = {"gpu_gfx_activity": "use", "gpu_umc_activity": "memory_use"}
_COUNTS: Final[Mapping[str, str]] = {
    "pcie_replay_count": "pcie_replays",
    "gpu_ecc_correct_total": "ecc_corrected",
    "gpu_ecc_uncorrect_total": "ecc_uncorrected",
}
_MEMORY: Final[Mapping[str, str]] = {"gpu_used_vram": "memory_used", "gpu_total_vram": "memory_total"}
"""In units of 2^20 bytes."""
_CLOCKS: Final[Mapping[str, str]] = {"system": "clock", "memory": "memory_clock"}
"""By the label `clock_type`, which older versions wrote as `GPU_CLOCK_TYPE_SYSTEM`."""
_FIRST_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "temperature": ("gpu_edge_temperature", "gpu_junction_temperature"),
    "memory_temperature": ("gpu_memory_temperature",),
    "power": ("gpu_package_power", "gpu_average_package_power", "gpu_power_usage"),
}
"""Each figure is the first of these series that is more than 0: which of them a GPU has depends on its generation."""
_HELD_DOWN: Final[Mapping[str, Held]] = {
    "gpu_violation_socket_thermal_residency_percentage": Held.HEAT,
    "gpu_violation_vr_thermal_residency_percentage": Held.HEAT,
    "gpu_violation_hbm_thermal_residency_percentage": Held.HEAT,
    "gpu_violation_processor_hot_residency_percentage": Held.PROCHOT,
    "gpu_violation_ppt_residency_percentage": Held.POWER,
}
"""Percent of the time in which a GPU's clocks were held down, of MI300 and later."""
_ALTERNATIVES: Final = frozenset(name for names in _FIRST_OF.values() for name in names)


class AmdExporterReader:
    """Reads devices from AMD's exporter in each round; one that does not answer leaves them out."""

    def __init__(
        self,
        url: ExporterUrl,
        seconds: float = SECONDS,
        *,
        kernel: Callable[[], Sequence[DeviceFigures]] | None = None,
    ) -> None:
        """`kernel` reads the devices from the kernel's files, once, for their ids and PCI addresses: jobs are given devices
        by these ids, which the exporter does not tell.
        """
        self._url, self._seconds, self._kernel = url, seconds, kernel or AmdReader().read
        self._known: dict[int, DeviceFigures] | None = None

    def read(self) -> tuple[DeviceFigures, ...]:
        """Return the figures of the page of now. Raises OSError or ValueError if there is none."""
        found = parse_page(fetched(self._url, self._seconds))
        if self._known is None:
            self._known = {each.index: each for each in self._kernel()}
        return tuple(self._named(each) for each in found)

    def _named(self, device: DeviceFigures) -> DeviceFigures:
        known = (self._known or {}).get(device.index)
        return device if known is None else msgspec.structs.replace(device, id=known.id, bus=known.bus)

    def close(self) -> None:
        """Nothing stays open."""


def parse_page(page: bytes) -> tuple[DeviceFigures, ...]:
    """The GPUs of a page, by `gpu_id`. Raises ValueError for a page that tells of none.

    Where several partitions have the same `gpu_id`, the figures are those of the first one.
    """
    found: dict[int, dict[str, Any]] = {}
    partitions: dict[int, str] = {}
    choices: dict[int, dict[str, float]] = {}
    held_down: dict[int, dict[Held, float]] = {}
    for name, given, value in series_of(page, _BEGINS):
        labels = {label.lower(): text for label, text in given.items()}
        told = number(labels.get("gpu_id", ""))
        index = -1 if told is None else int(told)
        if value < 0 or value in _NOT_KNOWN or not 0 <= index < MOST_DEVICES:
            continue
        if partitions.setdefault(index, labels.get("gpu_partition_id", "")) != labels.get("gpu_partition_id", ""):
            continue
        device = found.setdefault(index, _about(index, labels))
        metric = name.lower().removeprefix(_PREFIX)
        if metric in _ALTERNATIVES:
            choices.setdefault(index, {})[metric] = value
        elif metric in _HELD_DOWN and value <= 100:
            parts, reason = held_down.setdefault(index, {}), _HELD_DOWN[metric]
            parts[reason] = max(value / 100, parts.get(reason, 0.0))
        else:
            device |= _figure(metric, labels, value, device)
    if not found:
        raise ValueError("AMD's device metrics exporter tells of no GPU")
    for index, values in choices.items():
        for figure, names in _FIRST_OF.items():
            known = [values[name] for name in names if name in values]
            if known:
                found[index][figure] = next((each for each in known if each > 0), known[0])
    for index, parts in held_down.items():
        found[index]["held_down"] = tuple((reason, parts[reason]) for reason in Held if reason in parts)
    return tuple(DeviceFigures(**found[index]) for index in sorted(found))


def _figure(metric: str, labels: Mapping[str, str], value: float, device: Mapping[str, Any]) -> dict[str, Any]:
    """The figure that a series is, by its name among a device's; nothing for one that is not read."""
    if metric in _PERCENT and value <= 100:
        return {_PERCENT[metric]: value}
    if metric in _COUNTS:
        return {_COUNTS[metric]: int(value)}
    if metric in _MEMORY:
        return {_MEMORY[metric]: int(value) * _MIB}
    if metric == "gpu_energy_consumed":
        return {"energy": int(value / 1e3)}  # from microjoules
    if metric == "gpu_clock":
        clock = _CLOCKS.get(labels.get("clock_type", "").lower().removeprefix("gpu_clock_type_"), "")
        return {clock: max(value, device.get(clock, 0.0))} if clock else {}  # a GPU has one for each of its dies
    return {}


def _about(index: int, labels: Mapping[str, str]) -> dict[str, Any]:
    unique = word(labels.get("gpu_uuid", "") or labels.get("serial_number", ""))
    return {
        "vendor": "amd",
        "index": index,
        "id": f"AMD-{unique}" if unique else f"AMD-{index}",
        "model": word(labels.get("card_series", "") or labels.get("card_model", "") or "AMD GPU"),
    }
