"""Translate FrameworkController's barrier, an init container, to Corral's own barrier.

That container polls the API server until every task has an address. Corral starts the command then, and leaves the same
files (`injector.sh`, `framework.json`) in the same folder. Source: FrameworkController, pkg/barrier.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from corral.spec.dialects.field_reader import Fields

FOLDER: Final = "/mnt/frameworkbarrier"
"""Folder in which the barrier's container leaves its files."""
_IMAGE: Final = re.compile(r"(?:.*/)?frameworkbarrier(?:[:@].*)?")
_SECONDS: Final = re.compile("[0-9]{1,4}")
_TIMEOUT: Final = "BARRIER_CHECK_TIMEOUT_SEC"
_KNOWN: Final = frozenset({_TIMEOUT, "BARRIER_CHECK_INTERVAL_SEC", "KUBE_APISERVER_ADDRESS", "KUBECONFIG"})


@dataclass(frozen=True)
class Barrier:
    """Timeout (seconds) and folder of a role's barrier."""

    timeout: int
    folder: str
    """Folder of the files in the task; "" when the task does not mount them."""


def is_barrier(container: Fields) -> bool:
    """Whether an init container is FrameworkController's barrier."""
    image = container.data.get("image")
    return isinstance(image, str) and _IMAGE.fullmatch(image) is not None


def barrier_of(container: Fields, task: Fields) -> Barrier:
    """The barrier that an init container describes, for the container of the task."""
    timeout = 600
    for at, variable in enumerate(container.items("env")):
        name, value = variable.text("name", None), variable.text("value")
        variable.ignore(("valueFrom",))
        if name not in _KNOWN:
            container.problem(("env", at), f"the barrier knows no variable {name}")
        if name == _TIMEOUT:
            timeout = int(value) if _SECONDS.fullmatch(value) and 60 <= int(value) <= 1200 else 0
            if not timeout:
                variable.problem(("value",), "expected seconds from 60 to 1200")
    return Barrier(timeout or 600, _shared(container, task))


def _shared(container: Fields, task: Fields) -> str:
    """The task's mount path of the volume that the barrier writes to."""
    volumes = {
        str(mount.get("name")) for mount in _mounts(container) if str(mount.get("mountPath", "")).rstrip("/") == FOLDER
    }
    return next((str(mount.get("mountPath")) for mount in _mounts(task) if mount.get("name") in volumes), "")


def _mounts(container: Fields) -> list[dict[str, object]]:
    mounts = container.data.get("volumeMounts")
    return [each for each in mounts if isinstance(each, dict)] if isinstance(mounts, list) else []
