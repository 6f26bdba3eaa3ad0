"""Read NVIDIA GPUs from NVIDIA's DCGM exporter, where it measures them already.

The names are those of DCGM exporter's `default-counters.csv`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from corral.devices.figures.device_figures import MOST_DEVICES, DeviceFigures, number, word
from corral.devices.figures.exporter_page import SECONDS, ExporterUrl, fetched, series_of

_MIB: Final = 2**20
_BLANK: Final = 2**31 - 16
"""From here on DCGM's numbers for "not known" begin; counters may be as large."""
_PREFIX: Final = "DCGM_FI_DEV_"
_FIELDS: Final[Mapping[str, tuple[str, type]]] = {
    "GPU_UTIL": ("use", float), "MEM_COPY_UTIL": ("memory_use", float), "ENC_UTIL": ("encoder_use", float),
    "DEC_UTIL": ("decoder_use", float), "GPU_TEMP": ("temperature", float), "MEMORY_TEMP": ("memory_temperature", float),
    "POWER_USAGE": ("power", float), "SM_CLOCK": ("clock", float), "MEM_CLOCK": ("memory_clock", float),
    "TOTAL_ENERGY_CONSUMPTION": ("energy", int), "PCIE_REPLAY_COUNTER": ("pcie_replays", int),
    "ECC_SBE_VOL_TOTAL": ("ecc_corrected", int), "ECC_DBE_VOL_TOTAL": ("ecc_uncorrected", int), "XID_ERRORS": ("xid", int),
    "CORRECTABLE_REMAPPED_ROWS": ("remapped_corrected", int),
    "UNCORRECTABLE_REMAPPED_ROWS": ("remapped_uncorrected", int), "ROW_REMAP_FAILURE": ("remap_failed", bool),
    "NVLINK_BANDWIDTH_TOTAL": ("nvlink_kib", int),
}  # fmt: skip
"""The figure that a field of DCGM is, and its type."""
_MEMORY: Final = ("FB_USED", "FB_FREE", "FB_RESERVED")
"""In MiB; all memory is their sum."""


class DcgmExporterReader:
    """Reads devices from DCGM exporter in each round; one that does not answer leaves them out."""

    def __init__(self, url: ExporterUrl, seconds: float = SECONDS) -> None:
        self._url, self._seconds = url, seconds

    def read(self) -> tuple[DeviceFigures, ...]:
        """Return the figures of the page of now. Raises OSError or ValueError if there is none."""
        return parse_page(fetched(self._url, self._seconds))

    def close(self) -> None:
        """Nothing stays open."""


def parse_page(page: bytes) -> tuple[DeviceFigures, ...]:
    """The GPUs of a page, by their index. Raises ValueError for a page that tells of none.

    Series of MIG instances are left out: their index is that of the GPU, and their figures are not.
    """
    found: dict[int, dict[str, Any]] = {}
    memory: dict[int, dict[str, float]] = {}
    for name, labels, value in series_of(page, (_PREFIX,)):
        if value < 0:
            continue
        field = name.removeprefix(_PREFIX)
        told = number(labels.get("gpu", ""))
        index = -1 if told is None else int(told)
        if labels.get("GPU_I_ID") or not 0 <= index < MOST_DEVICES:
            continue
        device = found.setdefault(index, _about(index, labels))
        if field in _FIELDS:
            figure, kind = _FIELDS[field]
            if kind is not float or value < _BLANK:
                device[figure] = kind(value)
        elif field in _MEMORY and value < _BLANK:
            memory.setdefault(index, {})[field] = value
    if not found:
        raise ValueError("DCGM exporter tells of no GPU")
    for index, parts in memory.items():
        if "FB_USED" in parts:
            found[index]["memory_used"] = int(parts["FB_USED"]) * _MIB
            if "FB_FREE" in parts:
                found[index]["memory_total"] = int(sum(parts.values())) * _MIB
    return tuple(DeviceFigures(**found[index]) for index in sorted(found))


def _about(index: int, labels: Mapping[str, str]) -> dict[str, Any]:
    minor = number(labels.get("device", "").removeprefix("nvidia"))
    return {
        "vendor": "nvidia",
        "index": index,
        "id": word(labels.get("UUID", "")),
        "model": word(labels.get("modelName", "")),
        "minor": None if minor is None or minor < 0 else int(minor),
        "bus": word(labels.get("pci_bus_id", "")),
    }
