"""Probe each node with devices in a small container of its own: YARN counts devices, and tells neither names nor links.

The answers are kept in one file in HDFS, so that a new server does not probe again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote

import msgspec

from corral.engines.yarn.hadoop_rest import HadoopRest
from corral.engines.yarn.inventory import NodeFacts
from corral.engines.yarn.node_devices import ProbedNode, probed_node
from corral.engines.yarn.service_spec import SlotShape, component_name, service_prefix
from corral.engines.yarn.services import Services
from corral.engines.yarn.settings import YarnSettings
from corral.engines.yarn.slot_messages import ProbeReport
from corral.engines.yarn.slots import Service
from corral.kernel.errors import CorralError, NotFound
from corral.kernel.ids import JobId

_log = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 2.0
_AGAIN_SECONDS: Final = 600.0
"""Seconds after which a node is probed again that gave no answer."""
_ANSWER_SECONDS: Final = 180.0
"""Seconds that the probes of a round may take until all have answered."""
_MOST_AT_ONCE: Final = 50
_MEMORY: Final = 256 * 2**20


class DeviceProbe:
    """What is known of the nodes' devices, and the probes under way."""

    def __init__(
        self,
        settings: YarnSettings,
        services: Services,
        files: HadoopRest,
        nodes: Callable[[], Mapping[str, NodeFacts]],
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`nodes` returns the nodes as last seen, by name."""
        self._settings, self._services, self._files, self._nodes, self._wall = settings, services, files, nodes, wall
        self._file = f"/webhdfs/v1{quote(f'{settings.folder}/{settings.server}/devices.json')}"
        self._tried: dict[str, float] = {}
        """When each node was probed last by this server."""
        self._service: Service | None = None
        self._awaited: set[str] = set()
        """The nodes whose probes have not answered."""
        self._answered = asyncio.Event()
        self.found: dict[str, ProbedNode] = {}
        """By node, what its probe told."""

    async def open(self) -> None:
        """Read what earlier servers learned. A file that cannot be read counts as none. Raises Unavailable."""
        try:
            self.found |= msgspec.json.decode(await self._files.read_file(self._file), type=dict[str, ProbedNode])
        except NotFound:
            return
        except msgspec.DecodeError as error:
            _log.warning("the devices that earlier probes found are not read: %s", error)

    async def run(self) -> None:
        """Probe nodes as they come, and again when their answers are old."""
        while self._settings.probe_seconds:
            await asyncio.sleep(_LOOK_SECONDS)
            due = self._due()
            if not due:
                continue
            try:
                await self._round(due)
            except CorralError as error:
                _log.warning("nodes cannot be probed for their devices: %s", error.message)

    def take(self, service: str, instance: str, report: ProbeReport) -> None:
        """Take over the report of one probe. Raises NotFound, InvalidInput."""
        shape = None
        if self._service is not None and self._service.name == service:
            shape = self._service.components.get(instance.rpartition("-")[0])
        if shape is None or shape.node not in self._awaited:
            raise NotFound("no-probe", "There is no such probe.")
        self._awaited.discard(shape.node)
        if not self._awaited:
            self._answered.set()
        if report.trouble:
            _log.warning("the devices of %s are only counted: %s", shape.node, report.trouble)
            return
        try:
            self.found[shape.node] = probed_node(report, self._wall())
        except CorralError as error:
            _log.warning("the devices of %s are only counted: %s", shape.node, error.message)
            raise

    def _due(self) -> list[str]:
        """The nodes that are to be probed now."""
        now = self._wall()
        due = []
        for name, node in self._nodes().items():
            known = self.found.get(name)
            fresh = known is not None and now - known.at < self._settings.probe_seconds
            same = known is not None and len(known.devices) == node.devices
            tried = now - self._tried.get(name, 0.0) < _AGAIN_SECONDS
            if node.pinned and node.devices and not tried and not (fresh and same):
                due.append(name)
        return sorted(due)[:_MOST_AT_ONCE]

    async def _round(self, names: list[str]) -> None:
        """Probe some nodes by one service, and keep what they tell. Raises a CorralError."""
        nodes = self._nodes()
        shapes = [SlotShape("probe", name, 1000, _MEMORY, 0, (), nodes[name].partition) for name in names]
        components = {component_name(shape, number): shape for number, shape in enumerate(shapes)}
        name = f"{service_prefix(self._settings)}probe-{int(self._wall())}"
        user, queue = self._settings.user, self._settings.queue
        service = Service(name, JobId("probe"), user, queue, components, dict.fromkeys(components, 1))
        self._tried |= dict.fromkeys(names, self._wall())
        self._service, self._awaited = service, set(names)
        self._answered.clear()
        try:
            await self._services.make(service, probe=True)
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await self._answered.wait()
            except TimeoutError:
                _log.warning("%d nodes did not answer a probe in %.0f s", len(self._awaited), _ANSWER_SECONDS)
            known = msgspec.json.encode(self.found)
            await self._files.put_file(self._file, known, permission="600", overwrite="true")
        finally:
            self._service, self._awaited = None, set()
            await self._services.delete(service)
