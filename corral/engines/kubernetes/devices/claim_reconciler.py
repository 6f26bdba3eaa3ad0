"""Reconcile this server's claims after failed calls, crashes and changes by others.

A claim without allocation or a pod's reservation gets it. A claim that no pod uses is deleted. A claim with other
devices than planned can never be used: its tasks end as a conflict and are retried with another claim. Changes by
others are logged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from corral.engines.kubernetes.api.resources import CLAIMS, EVENTS, PODS, Call
from corral.engines.kubernetes.api.transport import MERGE_PATCH
from corral.engines.kubernetes.devices.claim_allocation import ClaimAllocator
from corral.engines.kubernetes.devices.claim_manifest import FINALIZER
from corral.engines.kubernetes.devices.claim_state import ClaimBook, OwnClaim
from corral.engines.kubernetes.devices.structs import ResourceClaim
from corral.engines.kubernetes.pods.calls import POD, PodCalls
from corral.engines.kubernetes.pods.exit_codes import PodExit
from corral.engines.kubernetes.pods.manifest import pod_name
from corral.engines.kubernetes.pods.nudge import NUDGE, NudgeQueue, StuckPod
from corral.engines.kubernetes.watch.node_structs import Event
from corral.engines.kubernetes.watch.object_copy import Change
from corral.engines.kubernetes.watch.pod_structs import Pod
from corral.engines.kubernetes.watch.reflector import Reflector
from corral.engines.kubernetes.watch.watch_source import Source
from corral.kernel.errors import Conflict, CorralError, NotFound
from corral.kernel.ids import AttemptId

CLAIM_LOST: Final = 251
"""The exit table's code for a conflict over resources: retried after a growing wait."""
_LOOK_SECONDS: Final = 0.25
_MISS_SECONDS: Final = 5.0
_FAILED: Final = "FailedPrepareDynamicResources"
_AT_ONCE: Final = 16
_log = logging.getLogger(__name__)


class ClaimReconciler:
    """Keeps the claims of one server correct while `run` runs."""

    def __init__(
        self,
        calls: PodCalls,
        book: ClaimBook,
        claim_allocator: ClaimAllocator,
        *,
        namespace: str,
        fail: Callable[[AttemptId, PodExit], None],
        pods: Callable[[], frozenset[str]],
    ) -> None:
        """`fail` ends an attempt that cannot start; `pods` returns the UIDs of all existing pods, as last seen."""
        self._calls, self._book, self._claim_allocator = calls, book, claim_allocator
        self._namespace, self._fail, self._pods = namespace, fail, pods
        self._nudges = NudgeQueue()
        self.nudged = 0
        """The number of nudges written."""

    def pod_changed(self, change: Change[Pod]) -> None:
        """Fold the change of a pod of this server."""
        now = asyncio.get_running_loop().time()
        self._book.fold_pod(change, now)
        self._nudges.fold(change, now)

    async def hear(self, source: Source) -> None:
        """Until cancelled, follow kubelets' Events about devices that they could not prepare."""
        said = Reflector(source, EVENTS, Event, namespace=self._namespace, fields=f"reason={_FAILED}")
        async with asyncio.TaskGroup() as group:
            group.create_task(said.run())
            while True:
                for change in await said.take():
                    self._nudges.failed(change.object.involved_object.uid, asyncio.get_running_loop().time())

    async def run(self) -> None:
        """Reconcile all claims until cancelled. Failures are retried."""
        loop = asyncio.get_running_loop()
        since = loop.time()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            now = loop.time()
            missing: dict[str, str] = {}
            if now - since > _MISS_SECONDS:
                since, missing = now, self._book.missing(self._pods(), now)
            work: list[Coroutine[Any, Any, None]] = [self._look_for(*each) for each in list(missing.items())[:_AT_ONCE]]
            work += [*self._settling(now), *self._collecting(now), *self._nudging(now)]
            for first in range(0, len(work), _AT_ONCE):
                await asyncio.gather(*work[first : first + _AT_ONCE])

    async def _look_for(self, uid: str, name: str) -> None:
        """Ask for a pod that is not followed: the claims of one that a busy cluster tells late must stay."""
        try:
            pod = POD.decode(await self._calls.ask(Call("get", PODS, self._namespace, name)))
        except NotFound:
            self._book.forget(uid)
        except CorralError as error:
            _log.warning("it is not known whether pod %s is there: %s", name, error.message)
        else:
            if pod.metadata.uid == uid:
                self._book.still_there(uid, asyncio.get_running_loop().time())
            else:
                self._book.forget(uid)

    def _settling(self, now: float) -> list[Coroutine[Any, Any, None]]:
        touched, self._book.touched = self._book.touched, set()
        found = [self._book.own_claims[name] for name in touched if name in self._book.own_claims]
        work = []
        for each in found:
            if each.wrongly_allocated and each.live:
                self._give_up(each, "somebody else gave its claim {} other devices")
            elif each.claim is None and each.live and not each.busy:
                self._give_up(each, "somebody deleted its claim {}")
            elif each.unsettled and now < each.not_before:
                self._book.touched.add(each.name)
            elif each.unsettled:
                work.append(self._settle(each))
            elif each.claim is not None and each.claim.metadata.deletion_timestamp and each.live and not each.reported:
                each.reported = True
                _log.warning("somebody asked for the deletion of claim %s: it stays until its tasks end", each.name)
        return work

    def _give_up(self, claim: OwnClaim, why: str) -> None:
        reason = why.format(claim.name)
        if not claim.reported:
            claim.reported = True
            _log.warning("%s cannot be used: %s", claim.name, reason.format(claim.name))
        self._book.touched.add(claim.name)
        for name in claim.live.values():
            self._fail(AttemptId(name.removeprefix(pod_name(AttemptId("")))), PodExit(CLAIM_LOST, reason))

    async def _settle(self, claim: OwnClaim) -> None:
        _log.info("claim %s is given to %d pods again", claim.name, len(claim.live))
        try:
            await self._claim_allocator.settle(claim)
        except CorralError as error:
            _log.warning("claim %s could not be given to its pods: %s", claim.name, error.message)
            self._book.touched.add(claim.name)
            claim.refused(asyncio.get_running_loop().time())
        else:
            claim.pause = 0.0

    def _collecting(self, now: float) -> list[Coroutine[Any, Any, None]]:
        return [self._collect(each) for each in self._book.unused_claims(now)]

    async def _collect(self, own: OwnClaim) -> None:
        """Delete a claim, after removing the finalizer that protects it while in use."""
        assert own.claim is not None
        own.leaving = True
        claim: ResourceClaim = own.claim
        others = [name for name in claim.metadata.finalizers if name != FINALIZER]
        about = {"uid": claim.metadata.uid}
        try:
            call = Call("patch", CLAIMS, self._namespace, own.name)
            body: dict[str, Any] = {"metadata": {**about, "finalizers": others or None}}
            await self._calls.ask(call, body, repeatable=True, content=MERGE_PATCH)
            options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": about}
            await self._calls.ask(Call("delete", CLAIMS, self._namespace, own.name), options, repeatable=True)
        except (NotFound, Conflict):
            return
        except CorralError as error:
            own.leaving = False
            own.refused(asyncio.get_running_loop().time())
            _log.warning("claim %s could not be deleted: %s", own.name, error.message)

    def _nudging(self, now: float) -> list[Coroutine[Any, Any, None]]:
        return [self._nudge(uid, stuck) for uid, stuck in self._nudges.due(now, self._in_hand)]

    def _in_hand(self, stuck: StuckPod) -> bool:
        """Return whether the pod's claims are about to be written, so that a nudge would be too early."""
        claims = [self._book.own_claims[name] for name in stuck.claims if name in self._book.own_claims]
        return not stuck.leaving and any(claim.busy or claim.unsettled for claim in claims)

    async def _nudge(self, uid: str, stuck: StuckPod) -> None:
        body = {"metadata": {"uid": uid, "annotations": {NUDGE: str(stuck.times)}}}
        try:
            call = Call("patch", PODS, self._namespace, stuck.name)
            await self._calls.ask(call, body, repeatable=True, content=MERGE_PATCH)
            self.nudged += 1
        except (NotFound, Conflict):
            self._nudges.drop(uid)
        except CorralError as error:
            _log.warning("pod %s could not be nudged: %s", stuck.name, error.message)
