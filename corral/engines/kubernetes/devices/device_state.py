"""Follow ResourceSlices and ResourceClaims, where the cluster serves them and Corral may read them.

Without `resource.k8s.io/v1`, or without permission to read it, there are no devices by claims. Everything else works.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from corral.engines.kubernetes.api.resources import CLAIMS, SLICES
from corral.engines.kubernetes.devices.claim_state import ClaimBook
from corral.engines.kubernetes.devices.managed_nodes import NamedDevices
from corral.engines.kubernetes.devices.resource_slices import Slices
from corral.engines.kubernetes.devices.structs import ResourceClaim, ResourceSlice
from corral.engines.kubernetes.settings import KubernetesSettings
from corral.engines.kubernetes.watch.optional_resources import why_not
from corral.engines.kubernetes.watch.reflector import Reflector
from corral.engines.kubernetes.watch.watch_source import Source

_log = logging.getLogger(__name__)
_OPEN_SECONDS: Final = 60.0


class DeviceView:
    """The devices that drivers publish and the claims that hold them, followed while `run` runs."""

    def __init__(
        self, source: Source, settings: KubernetesSettings, *, touch: Callable[[str], None], seed: int | str = 0
    ) -> None:
        """`touch` is called with each node whose devices may have changed."""
        self._source, self._touch, self._seed = source, touch, seed
        self._slice_objects = Reflector(source, SLICES, ResourceSlice, seed=seed)
        self._claim_objects = Reflector(source, CLAIMS, ResourceClaim, seed=seed)
        self._slices = Slices()
        self.book = ClaimBook(settings.server, settings.namespace)
        self.named = NamedDevices(self._slices, self.book)
        self._asked = asyncio.Event()
        self.absent = ""
        """Why there are no devices by claims; "" where there may be."""

    async def run(self) -> None:
        """Follow slices and claims until cancelled, if the cluster serves them."""
        self.absent = await why_not(self._source, (SLICES, CLAIMS), self._seed)
        self._asked.set()
        if self.absent:
            _log.warning("no devices by claims on this cluster: %s", self.absent)
        else:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._slice_objects.run())
                group.create_task(self._claim_objects.run())

    async def fill(self) -> None:
        """Wait for a complete copy and fold it.

        On timeout return: the followers of pods report an unreachable cluster.
        """
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                await self._asked.wait()
                if self.absent:
                    return
                await self._slice_objects.synced.wait()
                await self._claim_objects.synced.wait()
        except TimeoutError:
            return
        for found in self._slice_objects.items.values():
            self._slices.put(found)
        unseen = set(self._claim_objects.items)
        while unseen:
            unseen -= await self._take_claims()

    def followers(self) -> tuple[Coroutine[Any, Any, None], ...]:
        """Return the coroutines that fold every change. Run them after `fill`."""
        return self._follow_slices(), self._follow_claims()

    def forget(self, node: str) -> None:
        """Forget a node that is gone."""
        self._slices.forget(node)

    async def _follow_slices(self) -> None:
        while True:
            for change in await self._slice_objects.take():
                put = self._slices.drop if change.gone else self._slices.put
                if node := put(change.object):
                    self._touch(node)

    async def _follow_claims(self) -> None:
        while True:
            await self._take_claims()

    async def _take_claims(self) -> set[str]:
        """Fold the changes of claims and return their keys."""
        changes = await self._claim_objects.take()
        now = asyncio.get_running_loop().time()
        for change in changes:
            for device in self.book.fold_claim(change, now):
                if node := self._slices.node_of(device):
                    self._touch(node)
        return {change.object.key for change in changes}
