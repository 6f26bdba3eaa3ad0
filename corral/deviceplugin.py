"""Run the device plugin, a small server on each node.

It reads the description again when its file changes (or on SIGHUP), checks device files every few seconds, and
publishes the result. Prepared claims stay prepared, whatever the description says later.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from corral import logs
from corral.devices.dra.cdi import CdiFolder
from corral.devices.dra.device_groups import node_devices, read_devices, slice_contents
from corral.devices.dra.driver import ClaimAllocation, Driver, Look
from corral.devices.dra.kubelet_server import Server, Sockets
from corral.devices.dra.prepared_claims import AllocatedDevice, Ledger
from corral.engines.kubernetes.api.access import Access, kubeconfig_access, service_account_access
from corral.engines.kubernetes.api.resources import CLAIMS, Call
from corral.engines.kubernetes.api.transport import ConnectionLimits, Transport
from corral.engines.kubernetes.devices.slice_publisher import Publisher, decoded
from corral.engines.kubernetes.devices.structs import ResourceClaim
from corral.kernel.errors import CorralError, InvalidInput
from corral.runtime.process import boot_id
from corral.spec.devices_document import DevicesDocument

log = structlog.get_logger()
LOOK_SECONDS: Final = 2.0
"""Seconds between two checks of the description and the device files."""
_CLAIM_SECONDS: Final = 20.0
"""Timeout in seconds for reading a claim; the kubelet waits 45 s for a prepared claim."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one device plugin."""

    describe: Path
    node: str
    kubelet_root: Path = Path("/var/lib/kubelet")
    cdi_folder: Path = Path("/var/run/cdi")
    kubeconfig: str = ""
    context: str = ""
    log_level: str = "info"


def run(options: Options) -> int:
    """Serve until SIGTERM or SIGINT; raises CorralError if it cannot start."""
    logs.configure(options.log_level)
    document = read_devices(options.describe)
    asyncio.run(_serve(options, document))
    return 0


async def _serve(options: Options, document: DevicesDocument) -> None:
    sockets = Sockets(options.kubelet_root, document.driver)
    transport = Transport(_access(options), ConnectionLimits(connections=8, streams=2), seed=options.node)
    await transport.open()
    try:
        ledger = Ledger(sockets.folder)
        try:
            await _serve_with(options, document, sockets, transport, ledger)
        finally:
            ledger.close()
    finally:
        await transport.close()


async def _serve_with(
    options: Options, document: DevicesDocument, sockets: Sockets, transport: Transport, ledger: Ledger
) -> None:
    cdi = CdiFolder(options.cdi_folder, document.driver)
    look = claims_of(transport, document.driver)
    driver = Driver(document.driver, options.node, ledger, cdi, look, boot=boot_id())
    driver.recover()
    publisher = Publisher(transport, document.driver, options.node)
    description = Description(options.describe, options.node, document, driver, publisher)
    description.take()
    server = Server(sockets, document.driver, driver, publisher.look_again)
    server.ready = lambda: server.registered and publisher.published
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    loop.add_signal_handler(signal.SIGHUP, description.look_now)
    await server.start()
    log.info("the device plugin runs", driver=document.driver, node=options.node, devices=len(driver.devices))
    _tell_systemd("READY=1")
    works = [asyncio.create_task(publisher.run()), asyncio.create_task(description.follow())]
    try:
        ending = asyncio.create_task(ended.wait())
        done, _ = await asyncio.wait([ending, *works], return_when=asyncio.FIRST_COMPLETED)
        for work in done - {ending}:
            work.result()
    finally:
        _tell_systemd("STOPPING=1")
        await server.stop()
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)
        log.info("the device plugin ended")


class Description:
    """The description file, whose changes are passed to the driver and the published slices."""

    def __init__(self, path: Path, node: str, document: DevicesDocument, driver: Driver, publisher: Publisher) -> None:
        self._path, self._node, self._document = path, node, document
        self._driver, self._publisher = driver, publisher
        self._seen = _mark(path)
        self._now = asyncio.Event()
        self._taken = False

    def look_now(self) -> None:
        """Read the file at once."""
        self._seen = None
        self._now.set()

    def take(self) -> None:
        """Check the devices, and publish them if they changed."""
        devices = node_devices(self._document, self._node)
        if self._taken and devices == self._driver.devices:
            return
        self._taken = True
        for device in devices.values():
            if device.broken and getattr(self._driver.devices.get(device.name), "broken", "") != device.broken:
                log.warning("device broken", device=device.name, reason=device.broken)
        self._driver.devices = devices
        self._publisher.publish(slice_contents(list(devices.values())))

    async def follow(self) -> None:
        """Follow changes until cancelled; if the description is unreadable, the previous one stays in force."""
        while True:
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._now.wait()
            except TimeoutError:
                pass
            self._now.clear()
            try:
                self._read_again()
                self.take()
            except CorralError as error:
                log.error("description not taken", file=str(self._path), reason=error.message)

    def _read_again(self) -> None:
        mark = _mark(self._path)
        if mark == self._seen:
            return
        self._seen = mark
        document = read_devices(self._path)
        if document.driver != self._document.driver:
            sentence = f"The driver's name is {self._document.driver} until the device plugin restarts."
            raise InvalidInput("driver-renamed", sentence)
        self._document = document
        log.info("description read", file=str(self._path))


def claims_of(transport: Transport, driver: str) -> Look:
    """The function by which the driver reads a claim's allocation from the cluster."""

    async def look(namespace: str, name: str) -> ClaimAllocation:
        call = Call("get", CLAIMS, namespace, name)
        claim = decoded(call, await transport.ask(call, deadline=_CLAIM_SECONDS), ResourceClaim)
        allocation = claim.status.allocation
        if allocation is None:
            return ClaimAllocation(claim.metadata.uid, None)
        mine = (result for result in allocation.devices.results if result.driver == driver)
        given = tuple(AllocatedDevice(each.request, each.pool, each.device, bool(each.admin_access)) for each in mine)
        return ClaimAllocation(claim.metadata.uid, given)

    return look


def node_name() -> str:
    """The node of this process: NODE_NAME, as a DaemonSet sets it, or else the machine's name."""
    return os.environ.get("NODE_NAME") or socket.gethostname().lower()


def _access(options: Options) -> Access:
    if options.kubeconfig:
        return kubeconfig_access(options.kubeconfig, options.context)
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return service_account_access()
    raise InvalidInput("no-cluster", "Outside a pod the device plugin needs --kubeconfig to publish the slices.")


def _mark(path: Path) -> tuple[int, int, int] | None:
    """A mark that changes with the file; it follows links, which a ConfigMap's files are."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _tell_systemd(state: str) -> None:
    """Report the state to systemd if it started this process as `Type=notify`."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        try:
            told.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)
        except OSError as error:
            log.warning("systemd was not told", state=state, reason=error.strerror)
