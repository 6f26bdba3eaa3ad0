"""One node with four NPUs and a driver, which stops and starts; the cluster is a dictionary of claims."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from corral.devices.dra.cdi import CdiFolder
from corral.devices.dra.device_groups import known_devices
from corral.devices.dra.driver import Allocated, Driver
from corral.devices.dra.kubelet_server import Server, Sockets
from corral.devices.dra.prepared_claims import Given, Ledger
from corral.kernel.errors import NotFound
from corral.spec.devices_document import load_devices

DRIVER = "npu.example.com"
DOCUMENT = f"""
driver: {DRIVER}
devices:
- kind: npu
  count: 4
  visible: NPU_VISIBLE_DEVICES
  env: {{NPU_$(index)_SLOT: "s$(number)"}}
"""


def given(*devices: str, request: str = "r", pool: str = "n1", shared: bool = False) -> tuple[Given, ...]:
    return tuple(Given(request, pool, device, shared) for device in devices)


class Cluster:
    """The claims by name; `waits` delays answers."""

    def __init__(self) -> None:
        self.claims: dict[str, Allocated] = {}
        self.asked: list[str] = []
        self.waits: asyncio.Event | None = None

    def allocate(self, name: str, devices: tuple[Given, ...] | None, uid: str = "") -> None:
        self.claims[name] = Allocated(uid or name, devices)

    async def look(self, namespace: str, name: str) -> Allocated:
        assert namespace == "x"
        self.asked.append(name)
        if self.waits is not None:
            await self.waits.wait()
        if name not in self.claims:
            raise NotFound("kubernetes-not-found", f"there is no claim {name}")
        return self.claims[name]


class Node:
    """A driver on folders that outlive it."""

    def __init__(self, root: Path, cluster: Cluster, *, boot: str = "boot-1", document: str = DOCUMENT) -> None:
        self.root, self.cluster, self.boot = root, cluster, boot
        self.document = load_devices(document)
        self.cdi = root / "cdi"
        self.sockets = Sockets(root, self.document.driver)
        self.announced = 0
        self.start()

    def start(self) -> None:
        """Start the driver on the present disk state."""
        self.ledger = Ledger(self.sockets.folder)
        folder = CdiFolder(self.cdi, self.document.driver)
        self.driver = Driver(self.document.driver, "n1", self.ledger, folder, self.cluster.look, boot=self.boot)
        self.driver.known = known_devices(self.document, "n1")
        self.driver.recover()
        self.server = Server(self.sockets, self.document.driver, self.driver, self._announce)

    def restart(self, boot: str = "") -> None:
        """Stop and start, after a reboot if `boot` is given."""
        self.ledger.close()
        self.boot = boot or self.boot
        self.start()

    def _announce(self) -> None:
        self.announced += 1

    def documents(self) -> dict[str, Any]:
        """The CDI documents by the UID in their name."""
        found = self.cdi.glob(f"{DRIVER}-claim-*.json") if self.cdi.is_dir() else ()
        return {path.stem.removeprefix(f"{DRIVER}-claim-"): json.loads(path.read_text()) for path in found}

    def held(self) -> dict[str, list[str]]:
        """The devices of each claim in the ledger's files."""
        files = (self.sockets.folder / "claims").glob("*.json")
        return {path.stem: [each["device"] for each in json.loads(path.read_text())["given"]] for path in files}


def environment(document: dict[str, Any], *cdi_ids: str) -> dict[str, str]:
    """The environment of a container with these CDI ids, in the order in which a runtime applies them."""
    devices = {f"{document['kind']}={device['name']}": device["containerEdits"] for device in document["devices"]}
    found: dict[str, str] = {}
    for cdi_id in cdi_ids:
        found |= dict(line.split("=", 1) for line in devices[cdi_id]["env"])
    return found
