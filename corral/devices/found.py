"""Why: every vendor's discovery answers in the same shape: devices, the links between them, and why there are none."""

from __future__ import annotations

from dataclasses import dataclass

from corral.model.inventory import Device
from corral.spec.links import Matrix


@dataclass(frozen=True)
class Found:
    """What one vendor's discovery saw; `links` is empty or len(devices) squared."""

    devices: tuple[Device, ...] = ()
    links: Matrix = ()
    note: str = ""
    """Why nothing was found, where there is something to say."""
