"""Read the errors on PCI Express that the kernel counted of a device, whoever made it (Advanced Error Reporting).

Source: Linux, Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats. A kernel without AER, and a machine whose
firmware keeps the errors to itself, have no such files.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from corral.devices.figures.device_figures import whole

PCI: Final = Path("/sys/bus/pci/devices")
_MOST_FILE: Final = 4096
_ADDRESS: Final = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")
_FILES: Final = (
    ("correctable", "aer_dev_correctable", "TOTAL_ERR_COR"),
    ("nonfatal", "aer_dev_nonfatal", "TOTAL_ERR_NONFATAL"),
    ("fatal", "aer_dev_fatal", "TOTAL_ERR_FATAL"),
)


def pcie_errors(bus: str, pci: Path = PCI) -> dict[str, int]:
    """The errors by severity of the device at a PCI address, as `0000:C1:00.0` or NVML's `00000000:C1:00.0`."""
    found = _ADDRESS.fullmatch(bus.lower())
    if found is None:
        return {}
    folder = pci / f"{int(found[1], 16):04x}:{found[2]}"
    counts = ((severity, _total(folder / name, word)) for severity, name, word in _FILES)
    return {severity: count for severity, count in counts if count is not None}


def _total(path: Path, word: str) -> int | None:
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_FILE).decode("ascii", "replace")
    except OSError:
        return None
    totals = (line.split() for line in text.splitlines())
    return next((whole(words[1]) for words in totals if len(words) == 2 and words[0] == word), None)
