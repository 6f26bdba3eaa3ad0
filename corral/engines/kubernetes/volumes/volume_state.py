"""Follow volumes where Corral may read them, and choose the node of an unbound claim before its pod is created.

A pod created with its node skips kube-scheduler, which would choose the node for a claim without a volume. A server
that may not list volumes works as before, but knows no volume's location.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final

import msgspec

from corral.engines.kubernetes.api.resources import PERSISTENT_VOLUMES, VOLUME_CLAIMS, Call
from corral.engines.kubernetes.api.transport import MERGE_PATCH
from corral.engines.kubernetes.pods.calls import PodCalls
from corral.engines.kubernetes.volumes.reachability import RESERVED, SELECTED_NODE, Volume, VolumeClaim, Volumes
from corral.engines.kubernetes.watch.optional_resources import why_not
from corral.engines.kubernetes.watch.reflector import Reflector
from corral.engines.kubernetes.watch.watch_source import Source
from corral.kernel.errors import Forbidden

_log = logging.getLogger(__name__)
_OPEN_SECONDS: Final = 60.0
_BOUND_SECONDS: Final = 60.0
"""Seconds for which a bound claim is not read again. Another claim of its name may replace it."""
_CLAIM: Final = msgspec.json.Decoder(VolumeClaim)


class VolumeView:
    """The claims of the namespace that each node cannot reach, followed while `run` runs."""

    def __init__(self, source: Source, namespace: str, *, changed: Callable[[], None], seed: int | str = 0) -> None:
        """`changed` is called when nodes reach other claims than before."""
        self._source, self._changed, self._seed = source, changed, seed
        self._objects = Reflector(source, PERSISTENT_VOLUMES, Volume, seed=seed)
        self._volumes = Volumes(namespace)
        self._asked = asyncio.Event()
        self.absent = ""
        """Why volumes cannot be read; "" where they can."""

    def out_of_reach(self, labels: Mapping[str, str], node: str) -> dict[str, str]:
        """Return the labels of a node for the claims that it cannot reach."""
        return self._volumes.out_of_reach(labels, node)

    async def run(self) -> None:
        """Follow the cluster's volumes until cancelled, if they can be read."""
        self.absent = await why_not(self._source, (PERSISTENT_VOLUMES,), self._seed)
        self._asked.set()
        if self.absent:
            _log.warning("volumes' zones are not known: %s", self.absent)
        else:
            await self._objects.run()

    async def fill(self) -> None:
        """Wait for a complete copy and fold it.

        On timeout return: the followers of pods report an unreachable cluster.
        """
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                await self._asked.wait()
                if self.absent:
                    return
                await self._objects.synced.wait()
        except TimeoutError:
            return
        for volume in self._objects.items.values():
            self._volumes.put(volume)

    def followers(self) -> tuple[Coroutine[Any, Any, None], ...]:
        """Return the coroutines that fold every change. Run them after `fill`."""
        return (self._follow(),)

    async def _follow(self) -> None:
        while True:
            news = False
            for change in await self._objects.take():
                put = self._volumes.drop if change.gone else self._volumes.put
                news = put(change.object) or news
            if news:
                self._changed()


class Mounting:
    """Makes pods' claims get their volumes on the pods' nodes."""

    def __init__(self, calls: PodCalls, namespace: str) -> None:
        self._calls, self._namespace = calls, namespace
        self._bound: dict[str, float] = {}

    async def prepare(self, claims: Iterable[str], node: str) -> str:
        """Request volumes on `node` for claims without one. Return why a pod cannot start there now, "" if it can.

        Raises Forbidden for a claim that jobs may not mount, NotFound for a missing one, and the cluster's other
        refusals.
        """
        now = asyncio.get_running_loop().time()
        for name in claims:
            if now - self._bound.get(name, -_BOUND_SECONDS) < _BOUND_SECONDS:
                continue
            call = Call("get", VOLUME_CLAIMS, self._namespace, name)
            claim = _CLAIM.decode(await self._calls.ask(call))
            if claim.metadata.labels.get(RESERVED) == "true":
                message = f"No job may mount the volume claim {name}: it is reserved (label {RESERVED}: true)."
                raise Forbidden("claim-reserved", message)
            chosen = claim.metadata.annotations.get(SELECTED_NODE, "")
            if claim.status.phase == "Lost":
                return f"the volume of claim {name} is lost"
            if claim.spec.volume_name:
                self._bound[name] = now
            elif chosen not in ("", node):
                return f"claim {name} is just getting its volume on node {chosen}"
            elif not chosen:
                # With the version the patch is refused, and retried, if somebody else chose a node meanwhile.
                metadata = {"annotations": {SELECTED_NODE: node}, "resourceVersion": claim.metadata.resource_version}
                patch = Call("patch", VOLUME_CLAIMS, self._namespace, name)
                await self._calls.ask(patch, {"metadata": metadata}, content=MERGE_PATCH)
        return ""
