"""The names of topology levels in sentences."""

from __future__ import annotations

from typing import Final

_NAMES: Final = {"pcie-switch": "PCIe switch", "nvlink": "NVLink island", "numa": "NUMA node"}


def spoken(level: str) -> str:
    """The name of a level in a sentence."""
    return _NAMES.get(level, level)
