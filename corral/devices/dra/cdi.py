"""Write the CDI documents by which a container runtime gives containers their devices.

Each claim has one document while it is prepared. Source: the Container Device Interface, version 0.6.0. A document has
one CDI device per request of the claim. If several CDI ids set the same variable, the last value wins, so a variable
that lists devices must list those of the whole request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from corral.devices.dra.device_groups import Known
from corral.devices.dra.prepared_claims import Given, checked_uid, write_whole

VERSION: Final = "0.6.0"
_CLASS: Final = "claim"


class CdiFolder:
    """The folder where the container runtime finds this driver's CDI documents.

    Their names begin with the driver's name.
    """

    def __init__(self, folder: Path, driver: str) -> None:
        self._folder, self._driver = folder, driver

    def document(self, uid: str, given: Iterable[Given], known: Mapping[str, Known]) -> dict[str, Any]:
        """Build the CDI document of a claim with these devices."""
        requests: dict[str, list[Known]] = {}
        for each in given:
            requests.setdefault(base_request(each.request), []).append(known[each.device])
        devices = [
            {"name": self._device(uid, request), "containerEdits": _edits(request, devices)}
            for request, devices in requests.items()
        ]
        return {"cdiVersion": VERSION, "kind": f"{self._driver}/{_CLASS}", "devices": devices}

    def id(self, uid: str, request: str) -> str:
        """Return the CDI id of a request's devices."""
        return f"{self._driver}/{_CLASS}={self._device(uid, base_request(request))}"

    def write(self, uid: str, document: Mapping[str, Any]) -> None:
        """Write the document atomically. Creates a missing folder."""
        self._folder.mkdir(parents=True, exist_ok=True)
        write_whole(self._path(uid), json.dumps(document).encode(), 0o644)

    def has(self, uid: str) -> bool:
        """Return whether the claim's document exists."""
        return self._path(uid).is_file()

    def remove(self, uid: str) -> None:
        """Remove the claim's document."""
        self._path(uid).unlink(missing_ok=True)

    def sweep(self, uids: Iterable[str]) -> list[str]:
        """Remove this driver's documents of all other claims, and unfinished files. Return their file names."""
        if not self._folder.is_dir():
            return []
        kept = {self._path(uid).name for uid in uids}
        begins = self._path("").name.removesuffix(".json")
        strays = [path for path in self._folder.iterdir() if path.name.lstrip(".").startswith(begins)]
        gone = [path for path in strays if path.name not in kept]
        for path in gone:
            path.unlink(missing_ok=True)
        return [path.name for path in gone]

    def _path(self, uid: str) -> Path:
        return self._folder / f"{self._driver}-{_CLASS}-{checked_uid(uid) if uid else ''}.json"

    def _device(self, uid: str, request: str) -> str:
        return f"{checked_uid(uid)}_{request}"


def base_request(request: str) -> str:
    """Return the request of an allocation result; for `REQUEST/CHOICE` of a prioritized list, `REQUEST`."""
    return request.partition("/")[0]


def _edits(request: str, devices: list[Known]) -> dict[str, Any]:
    numbers = ",".join(str(device.index) for device in devices)
    env = {"CORRAL_DEVICES": numbers, f"CORRAL_REQUEST_{_word(request)}": numbers}
    for device in devices:
        env[f"CORRAL_DEVICE_{_word(device.name)}"] = device.name
        env |= dict(device.gives.env)
        if device.gives.visible:
            same = [each for each in devices if each.gives.visible == device.gives.visible]
            env[device.gives.visible] = ",".join(str(each.index) for each in same)
    nodes = {node for device in devices for node in device.gives.device_nodes}
    mounts = {mount for device in devices for mount in device.gives.mounts}
    edits: dict[str, Any] = {"env": [f"{name}={value}" for name, value in env.items()]}
    if nodes:
        edits["deviceNodes"] = [
            {"path": path, "hostPath": host, "permissions": permissions} for path, host, permissions in sorted(nodes)
        ]
    if mounts:
        edits["mounts"] = [
            {"hostPath": host, "containerPath": path, "options": ["rbind", "nosuid", "ro" if read_only else "rw"]}
            for host, path, read_only in sorted(mounts)
        ]
    return edits


def _word(name: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", name.upper())
