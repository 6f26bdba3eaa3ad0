"""Tell the files of devices that a task opens, and the groups whose members may."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from corral.devices.visibility import vendor
from corral.model.inventory import Device

ASCEND_SHARED = ("dev/davinci_manager", "dev/devmm_svm", "dev/hisi_hdc")
"""The files that all Ascend NPUs of a machine share, below the root folder."""


def groups(devices: Sequence[Device], root: Path = Path("/")) -> tuple[int, ...]:
    """Return the groups that a process needs to open its AMD GPUs or Ascend NPUs, sorted.

    Their drivers let a group in (`render`, `video`, `HwHiAiUser`), NVIDIA's everybody. Root's group is never given.
    """
    found = {_group(root / name) for device in devices if not device.described for name in _files(device, root)}
    return tuple(sorted(found - {0}))


def _files(device: Device, root: Path) -> Iterable[str]:
    """A device's files below `root`. A GPU of AMD's is reached by the one of them all, and by a renderer's."""
    name = vendor(device)
    if name == "amd":
        return ("dev/kfd", *(str(path.relative_to(root)) for path in (root / "dev/dri").glob("renderD*")))
    return (f"dev/davinci{device.index}", *ASCEND_SHARED) if name == "ascend" else ()


def _group(path: Path) -> int:
    """The group that may read and write a file where others may not; 0 where everybody may, or nobody of a group."""
    try:
        found = os.stat(path)
    except OSError:
        return 0
    everybody, group = stat.S_IROTH | stat.S_IWOTH, stat.S_IRGRP | stat.S_IWGRP
    if found.st_mode & everybody == everybody or found.st_mode & group != group:
        return 0
    return found.st_gid
