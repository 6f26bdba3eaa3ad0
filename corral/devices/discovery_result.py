"""The result of a vendor's device discovery."""

from __future__ import annotations

from dataclasses import dataclass

from corral.model.inventory import Device
from corral.spec.link_quality import Matrix


@dataclass(frozen=True)
class Found:
    """Devices that one vendor's discovery found. `links` is empty or a len(devices) × len(devices) matrix."""

    devices: tuple[Device, ...] = ()
    links: Matrix = ()
    note: str = ""
    """Why no device was found, if known."""
