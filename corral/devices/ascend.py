"""Why: Huawei's NPUs show as device files; their number is what a task is confined by, and all they tell without tools."""

from __future__ import annotations

import re
from pathlib import Path

from corral.devices.found import Found
from corral.model.inventory import Device

DEV = Path("/dev")
_NAME = re.compile(r"davinci(\d+)")


def discover(dev: Path = DEV) -> Found:
    """The Ascend NPUs of this machine by number; a gap in the numbers keeps its place empty."""
    try:
        numbers = sorted(int(match[1]) for path in dev.iterdir() if (match := _NAME.fullmatch(path.name)))
    except OSError:
        numbers = []
    return Found(tuple(Device(index=number, id=f"davinci{number}", kind="npu", model="Ascend") for number in numbers))
