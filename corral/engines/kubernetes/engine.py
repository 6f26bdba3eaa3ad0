"""The Kubernetes engine: starts, stops and watches pods for control. The work is in the package's other modules.

An attempt's pod is created once (its name is the lock) and known by its UID. An end is reported when the pod's
containers have ended or the pod is gone. After a crash the state is rebuilt from the pods themselves.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from corral.engines.base import OF_API, OF_REGISTRY, ExecSession
from corral.engines.kubernetes.api.backoff import Backoff
from corral.engines.kubernetes.api.resources import NODES, PODS, Call
from corral.engines.kubernetes.api.server_version import server_version
from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.devices.claim_allocation import ClaimAllocator
from corral.engines.kubernetes.devices.claim_reconciler import ClaimReconciler
from corral.engines.kubernetes.logs.copier import LogCopier
from corral.engines.kubernetes.objects.job_objects import KubernetesDocuments
from corral.engines.kubernetes.pods.attempt_records import Action, Ledger, Record
from corral.engines.kubernetes.pods.calls import CALL_SECONDS, PodCalls
from corral.engines.kubernetes.pods.creation import PodCreator, StartResult
from corral.engines.kubernetes.pods.exec_session import open_session
from corral.engines.kubernetes.pods.exit_codes import PodExit
from corral.engines.kubernetes.pods.forwarding import open_connection
from corral.engines.kubernetes.pods.owned_objects import OwnedObjects
from corral.engines.kubernetes.pods.runtime import Runtimes
from corral.engines.kubernetes.pods.termination import PodTerminator
from corral.engines.kubernetes.pods.warning_events import PodEvents
from corral.engines.kubernetes.settings import KubernetesSettings
from corral.engines.kubernetes.watch.cluster_state import ClusterView
from corral.engines.kubernetes.watch.object_copy import Change
from corral.engines.kubernetes.watch.pod_structs import Pod
from corral.engines.kubernetes.watch.registry_certificate import RegistryCertificate
from corral.kernel.errors import Conflict, CorralError, NotFound, Unavailable
from corral.kernel.ids import AttemptId, parse_attempt_id
from corral.model.exits import NODE_LOST
from corral.model.inventory import Inventory
from corral.model.kubernetes_objects import ObjectAddress
from corral.model.launch import EngineEvent, TaskLaunch
from corral.storage.code_archives import BlobStore
from corral.storage.log_archiver import LogArchiver
from corral.storage.log_files import LogStore

_log = logging.getLogger(__name__)
_ARCHIVED_SECONDS = 600.0
"""Seconds that an ended pod waits for an unavailable blob store."""


class KubernetesEngine:
    """Runs tasks as pods of one cluster."""

    def __init__(
        self,
        transport: Transport,
        settings: KubernetesSettings,
        *,
        logs: LogStore,
        blobs: BlobStore | None = None,
        archiver: LogArchiver | None = None,
        seed: int | str = 0,
        wall: Callable[[], float] = time.time,
        lease_left: Callable[[], float] = lambda: CALL_SECONDS,
    ) -> None:
        """`blobs` holds code; `archiver` copies logs for all replicas; `wall` returns seconds since 1970.

        `seed` seeds the random waits. `lease_left` returns the seconds for which this server may still act.
        """
        self.name = settings.name
        self._transport, self._settings, self._lease_left = transport, settings, lease_left
        self._pods = PodCalls(transport, settings.server, settings.namespace, lease_left)
        self._log_store, self._archiver = logs, archiver
        self._logs = LogCopier(
            transport, settings.namespace, logs, settings.log_copying, archiver, limit=settings.log_limit_bytes
        )
        if archiver is not None:
            archiver.growing = self._logs.growing
        self._ledger = Ledger(wall)
        self._events: asyncio.Queue[EngineEvent | CorralError] = asyncio.Queue()
        self._view = ClusterView(
            transport,
            settings,
            ours=self._pod_changed,
            devices_on=self._ledger.devices_on,
            report=self._events.put_nowait,
            seed=seed,
        )
        book = self._view.devices.book
        self._claim_allocator = ClaimAllocator(self._pods, book, server=settings.server, namespace=settings.namespace)
        self._claim_reconciler = ClaimReconciler(
            self._pods,
            book,
            self._claim_allocator,
            namespace=settings.namespace,
            fail=self._cannot_start,
            pods=self._view.pod_uids,
        )
        runtimes = Runtimes(blobs, image=settings.runtime_image, places=settings.storage_places)
        self._owned_objects = OwnedObjects(self._pods, settings, runtimes, self.attempts)
        self._pod_creator = PodCreator(self._pods, settings, self._claim_allocator, runtimes, self._owned_objects)
        self._terminator = PodTerminator(
            self._ledger,
            self._pods,
            self._logs,
            self._view,
            report=self._events.put_nowait,
            execute=partial(open_session, transport, settings.namespace, tty=False, reports=False),
            wall=wall,
        )
        self._noted = PodEvents(
            transport,
            settings.namespace,
            known=lambda attempt: attempt in self._ledger.records,
            report=self._events.put_nowait,
            seed=seed,
        )
        at = settings.registry
        self._registry_certificate = RegistryCertificate(*at) if at is not None else None
        self._tasks: set[asyncio.Task[None]] = set()

    async def listed_objects(self, kind: str, namespace: str = "") -> bytes:
        """Return the cluster's nodes or pods as the API server's JSON.

        Raises a CorralError; Forbidden where Corral may not look.
        """
        resource = {"nodes": NODES, "pods": PODS}[kind]
        return await self._pods.ask(Call("list", resource, namespace if resource.namespaced else ""))

    async def version(self) -> str:
        """Return the version of the API server. Raises a CorralError."""
        return await server_version(self._transport)

    def documents(self, kinds: Iterable[ObjectAddress]) -> KubernetesDocuments:
        """Return the objects of some kinds on this cluster, read over the engine's own connections."""
        return KubernetesDocuments(
            self._transport,
            kinds,
            seed=self._settings.server,
            lease_left=self._lease_left,
            set_external_jobs=self._view.set_external_jobs,
        )

    async def open(self) -> None:
        """Find attempts that still run. Afterwards `watch` reports every attempt that was not forgotten.

        Raises a CorralError when the cluster cannot be read.
        """
        self._log_store.open()
        try:
            await self._transport.open()
            self._keep(self._transport.wait_for_failure(), *self._view.loops())
            await self._view.fill()
        except BaseException:
            await self.close()
            raise
        self._keep(*self._view.followers(), self._terminator.sweep(self._spawn), self._claim_reconciler.run())
        if not self._view.devices.absent:
            self._keep(self._claim_reconciler.hear(self._transport))
        self._keep(self._noted.keep(), self._noted.follow())
        if self._registry_certificate is not None:
            self._spawn(self._registry_certificate.follow())
        self._spawn(self._owned_objects.sweep(self._transport))

    async def close(self) -> None:
        """Release all resources without ending a task."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._claim_allocator.close()
        await self._logs.close()
        await self._transport.close()

    def attempts(self) -> frozenset[AttemptId]:
        """Return every attempt that has a pod here, or an end that was not forgotten."""
        return frozenset(self._ledger.records)

    async def inventory(self) -> Inventory:
        """Return all nodes as last seen. Raises Unavailable when the cluster has not answered for long."""
        return self._view.inventory()

    async def start(self, launch: TaskLaunch) -> None:
        """Create the attempt's pod unless it was created before.

        Raises Unavailable when it is unknown whether the pod exists.
        """
        if launch.attempt in self._ledger.records:
            return
        node = launch.node.removeprefix(f"{self.name}/")
        devices = frozenset(device.index for device in launch.devices)
        record = self._ledger.expect(launch.attempt, node, devices, self._now())
        self._view.touch(node)
        try:
            result = StartResult(end=PodExit(NODE_LOST, f"the cluster has no node {node} any more"))
            if self._view.has_node(node):
                self._logs.begun(launch.attempt)
                result = await self._pod_creator.create(
                    launch, node, self._view.device_access(node), self._view.rdma(node)
                )
            if result.pod is not None:
                record.uid = record.uid or result.pod.metadata.uid
            if result.end is not None and record.uid:
                self._give_up(record, result.end)
            elif result.end is not None:
                record.end, record.gone = result.end, True
                await self._terminator.close(record)
        finally:
            if not record.uid and record.end is None:
                self._ledger.forget(launch.attempt)
                self._spawn(self._owned_objects.collect(parse_attempt_id(launch.attempt).job))

    async def stop(self, attempt: AttemptId, *, grace_seconds: float, signal: str = "TERM") -> None:
        """End the attempt's pod: `signal`, then KILL after the grace.

        Without a pod the attempt ends at once, for good.
        """
        if attempt not in self._ledger.records:
            pod = await self._pods.find(attempt)
            if pod is None:
                await self._terminator.close(self._ledger.bury(attempt, self._now()))
                return
            self._pod_changed(attempt, Change(pod))
        record = self._ledger.records[attempt]
        if record.end is None and not record.uid:
            raise Unavailable("start-under-way", f"{attempt} is just being started.")
        if record.end is None:
            await self._terminator.stop(record, grace_seconds, signal)

    async def forget(self, attempts: Sequence[AttemptId]) -> None:
        """Delete the pods and records of ended attempts; with an archive, once it has their logs.

        Raises Conflict when one of them still runs.
        """
        for attempt in attempts:
            record = self._ledger.records.get(attempt)
            if record is None:
                continue
            if record.exited is None:
                raise Conflict("still-running", f"{attempt} still runs; stop it before it can be forgotten.")
            if self._archiver is not None:
                self._archive(record, self._archiver)
                continue
            if record.uid and not record.gone:
                await self._pods.delete(attempt, record.uid, 1)
            await self._owned_objects.forget(attempt)
            self._ledger.forget(attempt)
        for job in {parse_attempt_id(attempt).job for attempt in attempts}:
            self._spawn(self._owned_objects.collect(job))

    def _archive(self, record: Record, archiver: LogArchiver) -> None:
        """Forget an ended attempt in the background, once its log is in the archive."""

        async def work() -> None:
            if not await archiver.settle(record.attempt, _ARCHIVED_SECONDS):
                _log.warning("the pod of %s is deleted before its log is archived, which goes on", record.attempt)
            backoff = Backoff(low=1.0, high=60.0, seed=record.attempt, ids=("forget",))
            while record.uid and not record.gone:
                try:
                    await self._pods.delete(record.attempt, record.uid, 1)
                    break
                except Unavailable:
                    await asyncio.sleep(backoff.next())
                except CorralError as error:
                    _log.warning("the pod of %s could not be deleted: %s", record.attempt, error.message)
                    break
            await self._owned_objects.forget(record.attempt)
            self._ledger.forget(record.attempt)
            await self._owned_objects.collect(parse_attempt_id(record.attempt).job)

        if not record.forgetting:
            record.forgetting = True
            self._spawn(work())

    async def watch(self) -> AsyncIterator[EngineEvent]:
        """Yield events from now on. One reader at a time.

        Raises CorralError when a part of the engine has failed: open another one.
        """
        while True:
            event = await self._events.get()
            if isinstance(event, CorralError):
                raise event
            yield event

    async def exec(self, attempt: AttemptId, argv: Sequence[str], *, tty: bool) -> ExecSession:
        """Run a command in the task's container.

        Raises NotFound when the attempt is not running here.
        """
        record = self._ledger.records.get(attempt)
        if record is None or record.started is None or record.end is not None:
            raise NotFound("not-running", f"{attempt} is not running on this cluster.")
        return await open_session(self._transport, self._settings.namespace, attempt, argv, tty=tty)

    @property
    def certificate_ends(self) -> Mapping[str, float]:
        """When the certificates of the API and of the cluster's own registry end.

        kubeadm renews that of the API with all others of a control plane, and `corral deploy up` all of the registry.
        """
        of_registry = self._registry_certificate.ends if self._registry_certificate is not None else None
        seen = {OF_API: self._transport.certificate_ends, OF_REGISTRY: of_registry}
        return {of: ends for of, ends in seen.items() if ends is not None}

    async def connect(self, attempt: AttemptId, port: int) -> ExecSession:
        """Open a TCP connection to one of the task's ports.

        Raises NotFound when the attempt is not running here, or has no such port.
        """
        record = self._ledger.records.get(attempt)
        if record is None or record.started is None or record.end is not None:
            raise NotFound("not-running", f"{attempt} is not running on this cluster.")
        if not any(port in numbers for numbers in record.started.ports.values()):
            raise NotFound("no-such-port", f"{attempt} was not given port {port}.")
        return await open_connection(self._transport, self._settings.namespace, attempt, port)

    # ---- events of the cluster

    def _pod_changed(self, attempt: AttemptId, change: Change[Pod]) -> None:
        self._claim_reconciler.pod_changed(change)
        record, actions = self._ledger.fold(attempt, change, self._now())
        for action in actions:
            if action is Action.REMOVE:
                _log.warning("a second pod of %s is deleted", attempt)
                self._spawn(self._terminator.delete(attempt, change.object.metadata.uid))
            elif record is None:
                continue
            elif action is Action.REPORT_START and record.started is not None:
                self._events.put_nowait(record.started)
                self._logs.follow(attempt, record.node)
            elif action is Action.DELETE:
                self._spawn(self._terminator.delete(attempt, record.uid))
            elif action is Action.CLOSE:
                self._spawn(self._terminator.close(record))

    def _cannot_start(self, attempt: AttemptId, why: PodExit) -> None:
        """End an attempt that waits for something that cannot come."""
        record = self._ledger.records.get(attempt)
        if record is not None and record.uid and record.started is None:
            self._give_up(record, why)

    def _give_up(self, record: Record, why: PodExit) -> None:
        """End an attempt that has a pod. `why` is reported as its end when the pod is gone."""
        if record.end is None:
            record.verdict = record.verdict or why
            self._spawn(self._terminator.delete(record.attempt, record.uid))

    def _spawn(self, *work: Coroutine[Any, Any, None]) -> None:
        """Run the work in the background."""
        for each in work:
            self._begin(each).add_done_callback(_say_failure)

    def _keep(self, *loops: Coroutine[Any, Any, None]) -> None:
        """Run loops until `close`. If one fails, `watch` raises, because without it the engine misses events."""
        for each in loops:
            self._begin(each).add_done_callback(self._stands_still)

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _stands_still(self, task: asyncio.Task[None]) -> None:
        if (error := _say_failure(task)) is not None:
            name = getattr(task.get_coro(), "__qualname__", "a part of it")
            message = f"The engine {self.name} cannot go on: {name} failed with {type(error).__name__}, see the log."
            self._events.put_nowait(CorralError("engine-failed", message))

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def _say_failure(task: asyncio.Task[None]) -> BaseException | None:
    """Log the exception of an ended task, if any, and return it."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _log.error("%s failed", getattr(task.get_coro(), "__qualname__", task.get_name()), exc_info=error)
    return error
