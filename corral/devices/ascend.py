"""Discover Huawei Ascend NPUs by their device files.

Without vendor tools only the number is known; a task is confined by that number.
"""

from __future__ import annotations

import re
from pathlib import Path

from corral.devices.discovery_result import Found
from corral.model.inventory import Device

DEV = Path("/dev")
_NAME = re.compile(r"davinci(\d+)")


def discover(dev: Path = DEV) -> Found:
    """Return the Ascend NPUs of this machine by number. A gap in the numbers stays a gap in the indexes."""
    try:
        numbers = sorted(int(match[1]) for path in dev.iterdir() if (match := _NAME.fullmatch(path.name)))
    except OSError:
        numbers = []
    return Found(tuple(Device(index=number, id=f"davinci{number}", kind="npu", model="Ascend") for number in numbers))
