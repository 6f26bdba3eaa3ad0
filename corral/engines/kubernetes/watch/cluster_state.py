"""Follow the cluster's pods and nodes, and derive attempts' states and nodes' free resources from one copy.

Pods of this server go to the engine; all others count against their nodes. A cluster that is silent for long is
reported as lost, once, and as changed when it answers again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from typing import Any, Final

from corral.engines.kubernetes.api.resources import NODES, PODS
from corral.engines.kubernetes.devices.device_state import DeviceView
from corral.engines.kubernetes.devices.managed_nodes import Given
from corral.engines.kubernetes.inventory import Nodes
from corral.engines.kubernetes.pods.labels import attempt_of
from corral.engines.kubernetes.settings import KubernetesSettings
from corral.engines.kubernetes.volumes.volume_state import VolumeView
from corral.engines.kubernetes.watch import node_structs as kubernetes
from corral.engines.kubernetes.watch.foreign_pods import Others
from corral.engines.kubernetes.watch.object_copy import Change
from corral.engines.kubernetes.watch.pod_structs import Pod
from corral.engines.kubernetes.watch.reflector import Reflector
from corral.engines.kubernetes.watch.watch_source import Source
from corral.kernel.errors import CorralError, Forbidden, Unavailable
from corral.kernel.ids import AttemptId
from corral.model.inventory import Inventory
from corral.model.launch import EngineEvent, EngineLost, InventoryChanged

_log = logging.getLogger(__name__)
OPEN_SECONDS: Final = 60.0
LOST_SECONDS: Final = 20.0
"""Seconds without an answer after which the cluster's state counts as unknown."""
_GATHER_SECONDS: Final = 0.5
"""Seconds in which node changes are gathered into one report."""
_LOOK_SECONDS: Final = 1.0


class ClusterView:
    """The pods and nodes of one cluster, followed while its loops run."""

    def __init__(
        self,
        source: Source,
        settings: KubernetesSettings,
        *,
        ours: Callable[[AttemptId, Change[Pod]], None],
        devices_on: Callable[[str], frozenset[int]],
        tell: Callable[[EngineEvent], None],
        seed: int | str = 0,
    ) -> None:
        """`ours` gets changes of this server's pods, `tell` events for control.

        `devices_on` returns a node's held devices.
        """
        self._settings, self._ours, self._devices_on, self._tell = settings, ours, devices_on, tell
        self._pods = Reflector(source, PODS, Pod, seed=seed)
        self._node_objects = Reflector(source, NODES, kubernetes.Node, seed=seed)
        self.devices = DeviceView(source, settings, touch=self._node_touched, seed=seed)
        self._volumes = VolumeView(source, settings.namespace, changed=self._all_touched, seed=seed)
        self._others = Others()
        self._nodes = Nodes(settings, self.devices.named, self._volumes.out_of_reach)
        self._changed = asyncio.Event()
        self._lost = ""

    @property
    def trouble(self) -> CorralError | None:
        """Why the cluster cannot be read at present; None while it can."""
        return self._pods.trouble or self._node_objects.trouble

    def has_node(self, name: str) -> bool:
        """Return whether the node exists."""
        return name in self._nodes

    def has_pod(self, uid: str) -> bool:
        """Return whether a pod of this UID exists, as last seen."""
        return uid in self._pods.items

    def pod_uids(self) -> frozenset[str]:
        """Return the UIDs of all pods, as last seen."""
        return frozenset(self._pods.items)

    def given(self, node: str) -> Given:
        """Return how a node's named devices are given to pods."""
        return self._nodes.given(node)

    def rdma(self, node: str) -> tuple[str, ...]:
        """Return the resources by which a pod on the node gets a network with RDMA."""
        return self._nodes.rdma(node)

    def touch(self, node: str) -> None:
        """Record that attempts hold other devices of a node now."""
        self._nodes.touch(node)

    def run_elsewhere(self, uids: Collection[str]) -> None:
        """Set the external jobs: those that hold places here while their own controllers run them."""
        if nodes := self._others.run_elsewhere(uids):
            for node in nodes:
                self._nodes.touch(node)
            self._changed.set()

    def inventory(self) -> Inventory:
        """Return all nodes as last seen, less resources held by others.

        Raises Unavailable while the cluster is lost.
        """
        if self._lost:
            raise Unavailable("kubernetes-lost", self._lost)
        return self._nodes.inventory(self._others, self._devices_on)

    def loops(self) -> tuple[Coroutine[Any, Any, None], ...]:
        """Return the coroutines that keep the copy up to date. Run them before `fill`."""
        return self._pods.run(), self._node_objects.run(), self.devices.run(), self._volumes.run()

    async def fill(self) -> None:
        """Wait for a complete copy and fold it. Raises CorralError if there is none within a minute."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + OPEN_SECONDS
        for reflector in (self._pods, self._node_objects):
            while not reflector.synced.is_set():
                if isinstance(reflector.trouble, Forbidden) or loop.time() >= ends:
                    raise reflector.trouble or Unavailable("kubernetes-silent", "The cluster does not answer.")
                try:
                    async with asyncio.timeout(0.2):
                        await reflector.synced.wait()
                except TimeoutError:
                    continue
        await self.devices.fill()
        await self._volumes.fill()
        unseen = set(self._pods.items)
        while unseen:
            for change in await self._pods.take():
                self.pod_changed(change)
                unseen.discard(change.object.key)
        for node in self._node_objects.items.values():
            self._nodes.put(node)

    def followers(self) -> tuple[Coroutine[Any, Any, None], ...]:
        """Return the coroutines that fold and report every change. Run them after `fill`."""
        more = *self.devices.followers(), *self._volumes.followers()
        return self._follow_pods(), self._follow_nodes(), self._tell_changes(), self._look(), *more

    def pod_changed(self, change: Change[Pod]) -> None:
        """Fold one pod's change. A pod that raises is logged and does not affect others."""
        meta = change.object.metadata
        try:
            attempt = attempt_of(change.object, self._settings.server)
            if attempt is not None and meta.namespace == self._settings.namespace:
                self._ours(attempt, change)
            elif node := self._others.fold(change):
                self._nodes.touch(node)
                self._changed.set()
        except Exception:
            _log.exception("what happened to pod %s in namespace %s was not taken in", meta.name, meta.namespace)

    def _node_touched(self, node: str) -> None:
        self._nodes.touch(node)
        self._changed.set()

    def _all_touched(self) -> None:
        self._nodes.touch_all()
        self._changed.set()

    async def _follow_pods(self) -> None:
        while True:
            for change in await self._pods.take():
                self.pod_changed(change)

    async def _follow_nodes(self) -> None:
        while True:
            for change in await self._node_objects.take():
                if change.gone:
                    self._nodes.drop(change.object.metadata.name)
                    self.devices.forget(change.object.metadata.name)
                else:
                    self._nodes.put(change.object)
            self._changed.set()

    async def _tell_changes(self) -> None:
        told: Inventory | None = None
        while True:
            await self._changed.wait()
            await asyncio.sleep(_GATHER_SECONDS)
            self._changed.clear()
            if not self._lost and (seen := self.inventory()) is not told:
                told = seen
                self._tell(InventoryChanged(self._settings.name))

    async def _look(self) -> None:
        """Report when the cluster is lost, and when it is back."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            heard = min(self._pods.heard_at, self._node_objects.heard_at)
            trouble = self.trouble
            if trouble is not None and loop.time() - heard >= LOST_SECONDS and not self._lost:
                self._lost = trouble.message
                self._tell(EngineLost(self._settings.name, self._lost))
            elif trouble is None and self._lost:
                self._lost = ""
                self._tell(InventoryChanged(self._settings.name))
