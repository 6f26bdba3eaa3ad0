"""Why: volumes are followed beside nodes where Corral may see them, and a claim is told its node before its pod is made.

A pod that is made with its node skips kube-scheduler, and so what kube-scheduler says to storage: where a claim without a
volume is to get one. A server that may not list volumes works as before, and knows of no volume that it is elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final

import msgspec

from corral.engines.kubernetes.following import why_not
from corral.engines.kubernetes.podcalls import PodCalls
from corral.engines.kubernetes.reflector import Reflector
from corral.engines.kubernetes.resources import PERSISTENT_VOLUMES, VOLUME_CLAIMS, Call
from corral.engines.kubernetes.source import Source
from corral.engines.kubernetes.transport import MERGE_PATCH
from corral.engines.kubernetes.volumes import RESERVED, SELECTED_NODE, Volume, VolumeClaim, Volumes
from corral.kernel.errors import Forbidden

_log = logging.getLogger(__name__)
_OPEN_SECONDS: Final = 60.0
_BOUND_SECONDS: Final = 60.0
"""A claim that has its volume keeps it; it is looked at again after so long, should another of its name come."""
_CLAIM: Final = msgspec.json.Decoder(VolumeClaim)


class VolumeView:
    """Which claims of the namespace which nodes cannot reach, followed while `run` runs."""

    def __init__(self, source: Source, namespace: str, *, changed: Callable[[], None], seed: int | str = 0) -> None:
        """`changed` hears when nodes reach other claims than before."""
        self._source, self._changed, self._seed = source, changed, seed
        self._objects = Reflector(source, PERSISTENT_VOLUMES, Volume, seed=seed)
        self._volumes = Volumes(namespace)
        self._asked = asyncio.Event()
        self.absent = ""
        """Why volumes cannot be seen; "" where they can."""

    def out_of_reach(self, labels: Mapping[str, str], node: str) -> dict[str, str]:
        """The labels that tell which claims a node cannot reach."""
        return self._volumes.out_of_reach(labels, node)

    async def run(self) -> None:
        """Follow the cluster's volumes until cancelled, if they can be seen."""
        self.absent = await why_not(self._source, (PERSISTENT_VOLUMES,), self._seed)
        self._asked.set()
        if self.absent:
            _log.warning("volumes' zones are not known: %s", self.absent)
        else:
            await self._objects.run()

    async def fill(self) -> None:
        """Wait for a whole copy and take it in; a cluster that does not answer is said by those who follow its pods."""
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
        """What takes in every change; to be run after `fill`."""
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
    """Has the claims of pods get their volumes where the pods are."""

    def __init__(self, calls: PodCalls, namespace: str) -> None:
        self._calls, self._namespace = calls, namespace
        self._bound: dict[str, float] = {}

    async def prepare(self, claims: Iterable[str], node: str) -> str:
        """Tell claims without a volume that it is wanted on `node`; why a pod cannot begin there now, "" if it can.

        Raises Forbidden for a claim that is not for jobs, NotFound for one that does not exist, and what else the
        cluster refuses.
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
                # The version: should somebody else choose a node meanwhile, this is refused, and tried again.
                metadata = {"annotations": {SELECTED_NODE: node}, "resourceVersion": claim.metadata.resource_version}
                patch = Call("patch", VOLUME_CLAIMS, self._namespace, name)
                await self._calls.ask(patch, {"metadata": metadata}, content=MERGE_PATCH)
        return ""
