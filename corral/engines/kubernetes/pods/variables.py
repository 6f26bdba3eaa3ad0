"""The environment variables by which a task learns of its job, node, devices and ports, as on every engine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from corral.kernel.ids import parse_attempt_id
from corral.model.launch import TaskLaunch

_NOT_NAME: Final = re.compile(r"[^A-Z0-9]+")


def task_variables(launch: TaskLaunch, ports: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """Return Corral's variables of a task. Devices are numbered from 0, as the task sees them."""
    key = parse_attempt_id(launch.attempt)
    told = {
        "CORRAL_JOB_ID": key.job,
        "CORRAL_ATTEMPT": launch.attempt,
        "CORRAL_ROLE": key.role,
        "CORRAL_TASK_INDEX": str(key.index),
        "CORRAL_NODE": launch.node,
        "CORRAL_DEVICES": ",".join(str(at) for at in range(len(launch.devices))),
    }
    for name, numbers in ports.items():
        variable = _NOT_NAME.sub("_", name.upper()).strip("_")
        told[f"CORRAL_PORT_{variable}"] = ",".join(map(str, numbers))
    return told
