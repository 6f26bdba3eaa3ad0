"""Create and allocate the ResourceClaims that give pods their devices.

The order of writes: claim, pod, then the claim's status, with allocation and reservation in one write. Tasks of one job
that start together on one node share a claim if each has one device. Such a device can be used again in the same claim
when its task has ended and others of the claim run on. Kubelets prepare all devices of a claim together, so a task with
several devices has a claim of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from corral.engines.kubernetes.api.resources import CLAIMS, Call
from corral.engines.kubernetes.api.transport import MERGE_PATCH
from corral.engines.kubernetes.devices.claim_manifest import (
    MOST,
    Plan,
    as_planned,
    claim_manifest,
    grants_for,
    plan_of,
    status_patch,
)
from corral.engines.kubernetes.devices.claim_state import ClaimBook, OwnClaim
from corral.engines.kubernetes.devices.resource_slices import ClaimDevice
from corral.engines.kubernetes.devices.structs import ResourceClaim
from corral.engines.kubernetes.pods.calls import PodCalls
from corral.engines.kubernetes.pods.manifest import SERVER_LABEL, pod_name
from corral.engines.kubernetes.pods.manifest_inputs import ClaimedDevice
from corral.engines.kubernetes.watch.pod_structs import Pod
from corral.kernel.errors import Conflict, InvalidInput, Unavailable
from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.model.launch import TaskLaunch

GATHER_SECONDS: Final = 0.02
"""Seconds to wait, after the last start joined, for another start that could share the claim."""
_CLAIM: Final = msgspec.json.Decoder(ResourceClaim)

Post = Callable[[Sequence[ClaimedDevice]], Awaitable[Pod]]
"""Creates the pod that uses these claims."""
_Key = tuple[str, str]


class _Batch:
    """Starts that share one claim."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.members: dict[AttemptId, tuple[ClaimDevice, ...]] = {}
        self.joined = asyncio.Event()
        self.claimed: asyncio.Future[OwnClaim] = loop.create_future()
        self.left = 0
        self.posted = asyncio.Event()
        self.settled: asyncio.Future[None] = loop.create_future()


class ClaimAllocator:
    """Creates the claims of one server in one namespace."""

    def __init__(self, calls: PodCalls, book: ClaimBook, *, server: str, namespace: str, share: bool = True) -> None:
        """`share`: whether tasks of a job share claims."""
        self._calls, self._book = calls, book
        self._server, self._namespace, self._share = server, namespace, share
        self._open: dict[_Key, _Batch] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Cancel unfinished writes; the next start resumes them."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def start(self, launch: TaskLaunch, node: str, devices: Sequence[ClaimDevice], post: Post) -> Pod:
        """Create the pod of an attempt with these devices of a node, usable once this returns.

        Raises errors of the calls, and Conflict for a device that another pod uses. A repeated call resumes the start.
        """
        attempt, more = launch.attempt, launch.beside
        used, rest = self._divided(devices, pod_name(attempt), part=launch.share is not None)
        there = [self._book.own_claims[name] for name in used]
        for claim in there:
            claim.busy += 1
        try:
            claimed = [_claimed(claim, used[claim.name]) for claim in there]
            if rest:
                pod = await self._with_new(attempt, node, tuple(rest), more, lambda new: post([*claimed, new]))
            else:
                pod = await post(claimed)
            self._book.use(pod, self._now())
            for claim in there:
                await self.settle(claim)
            return pod
        finally:
            for claim in there:
                claim.busy -= 1
                self._book.touched.add(claim.name)

    def _divided(
        self, devices: Sequence[ClaimDevice], pod: str, *, part: bool
    ) -> tuple[dict[str, list[ClaimDevice]], list[ClaimDevice]]:
        """Split the devices into those of existing claims, by claim, and the rest.

        `part`: the task may share its device.
        """
        used: dict[str, list[ClaimDevice]] = {}
        rest = []
        for device in devices:
            claim = self._book.claim_of(device)
            if claim is None:
                rest.append(device)
                continue
            request = claim.plan.request_of(device)
            alone = request or set(devices) >= claim.plan.devices
            user = claim.user_of(request, other_than=pod)
            if not alone or (user and not part):
                raise Conflict("device-in-use", f"Device {device.device} is in use, in claim {claim.name}, by {user}.")
            used.setdefault(claim.name, []).append(device)
        return used, rest

    async def settle(self, claim: OwnClaim) -> None:
        """Write the claim's status: allocation and reservations. Raises CorralError.

        A claim to which somebody else allocated other devices stays unchanged; `ClaimBook` reports it.
        """
        allocate = claim.claim is None or claim.claim.status.allocation is None
        uid = claim.claim.metadata.uid if claim.claim is not None else ""
        body = status_patch(uid, claim.plan, claim.live, allocate=allocate)
        call = Call("patch", CLAIMS, self._namespace, claim.name, "status")
        try:
            answer = await self._calls.ask(call, body, repeatable=True, content=MERGE_PATCH)
        except InvalidInput:
            answer = await self._calls.ask(Call("get", CLAIMS, self._namespace, claim.name))
            if as_planned(_CLAIM.decode(answer), claim.plan):
                raise
        claim.claim = _CLAIM.decode(answer)

    async def _with_new(
        self,
        attempt: AttemptId,
        node: str,
        devices: tuple[ClaimDevice, ...],
        more: int,
        post: Callable[[ClaimedDevice], Awaitable[Pod]],
    ) -> Pod:
        """Create the pod with devices of a new claim, shared with starts that join its batch."""
        batch = self._batch(attempt, node, devices, more)
        try:
            own = await asyncio.shield(batch.claimed)
            pod = await post(_claimed(own, devices))
            self._book.use(pod, self._now())
        finally:
            batch.left -= 1
            if not batch.left:
                batch.posted.set()
        await asyncio.shield(batch.settled)
        return pod

    def _batch(self, attempt: AttemptId, node: str, devices: tuple[ClaimDevice, ...], more: int) -> _Batch:
        key = (parse_attempt_id(attempt).job, node)
        shares = self._share and more > 0 and len(devices) == 1
        batch = self._open.get(key) if shares else None
        if batch is None:
            batch = _Batch()
            if shares:
                self._open[key] = batch
            task = asyncio.get_running_loop().create_task(self._carry(key if shares else None, batch, node, more + 1))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        batch.members[attempt] = devices
        batch.left += 1
        batch.joined.set()
        if shares and len(batch.members) >= min(more + 1, MOST):
            self._open.pop(key, None)
        return batch

    async def _carry(self, key: _Key | None, batch: _Batch, node: str, most: int) -> None:
        """Create the claim of a batch, wait for its pods, and reserve it for them."""
        try:
            if key is not None:
                await self._gather(key, batch, min(most, MOST))
            own = await self._make(batch, node)
        except BaseException as error:
            self._fail(batch.claimed, error)
            self._fail(batch.settled, error)
            return
        own.busy += 1
        batch.claimed.set_result(own)
        try:
            await batch.posted.wait()
            if own.live:
                await self.settle(own)
            batch.settled.set_result(None)
        except BaseException as error:
            self._fail(batch.settled, error)
        finally:
            own.busy -= 1
            self._book.touched.add(own.name)

    async def _gather(self, key: _Key, batch: _Batch, most: int) -> None:
        """Wait for further starts to share the claim, until it is full or none joins in time."""
        try:
            while len(batch.members) < most:
                batch.joined.clear()
                async with asyncio.timeout(GATHER_SECONDS):
                    await batch.joined.wait()
        except TimeoutError:
            pass
        finally:
            if self._open.get(key) is batch:
                del self._open[key]

    async def _make(self, batch: _Batch, node: str) -> OwnClaim:
        first = next(iter(batch.members))
        grants = grants_for(batch.members.values())
        plan = Plan(node, tuple(grant for each in grants for grant in each))
        manifest = claim_manifest(first, self._server, plan)
        own = self._book.expect(pod_name(first), plan, self._now())
        if own.leaving:
            raise Unavailable("claim-leaving", f"An earlier claim {own.name} is not gone yet.")
        own.busy += 1
        try:
            own.claim = await self._post(manifest, plan)
        finally:
            own.busy -= 1
            self._book.drop_if_gone(own)
        return own

    async def _post(self, manifest: dict[str, object], plan: Plan) -> ResourceClaim:
        try:
            return _CLAIM.decode(
                await self._calls.ask(Call("create", CLAIMS, self._namespace), manifest, repeatable=True)
            )
        except Conflict as error:
            if error.code != "kubernetes-exists":
                raise
        name = str(manifest["metadata"]["name"])  # type: ignore[index]
        claim = _CLAIM.decode(await self._calls.ask(Call("get", CLAIMS, self._namespace, name)))
        if claim.metadata.labels.get(SERVER_LABEL) != self._server:
            message = f"There is a claim {name} in namespace {self._namespace} already that is not Corral's."
            raise Conflict("claim-name-taken", message)
        if plan_of(claim) != plan or claim.metadata.deletion_timestamp:
            raise Unavailable("claim-leaving", f"An earlier claim {name} is not gone yet.")
        return claim

    @staticmethod
    def _fail(
        future: asyncio.Future[object] | asyncio.Future[OwnClaim] | asyncio.Future[None], error: BaseException
    ) -> None:
        if future.done():
            return
        if isinstance(error, asyncio.CancelledError):
            future.cancel()
            return
        future.set_exception(error)
        future.exception()  # mark it as retrieved: nobody may be waiting any more

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def _claimed(claim: OwnClaim, devices: Sequence[ClaimDevice]) -> ClaimedDevice:
    """Return the pod's reference to the claim, with the requests of these devices."""
    wanted = set(devices)
    requests = tuple(grant.request for grant in claim.plan.grants if wanted >= set(grant.devices))
    return ClaimedDevice(claim.name, () if len(requests) == len(claim.plan.grants) else requests)
