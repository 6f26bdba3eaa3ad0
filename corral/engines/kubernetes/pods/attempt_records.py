"""The attempts' records: derive events to report and actions from pod changes, without waiting for any call.

At most one instance of an attempt runs. Its pod name is taken once and the UID of that pod is recorded; any other pod
of that name is not the attempt. An end is reported only when the pod's phase says that its containers have ended for
good, or when the pod is gone. A requested deletion is not an end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from corral.engines.kubernetes.pods.exit_codes import PodExit, pod_exit, start_failure
from corral.engines.kubernetes.pods.labels import EXIT_PATTERNS, devices_of, forced_at_of, kill_at_of, ports_of
from corral.engines.kubernetes.pods.sidecar import CONTAINER, OUTPUTS
from corral.engines.kubernetes.pods.template import TASK
from corral.engines.kubernetes.watch.object_copy import Change
from corral.engines.kubernetes.watch.pod_structs import Meta, Pod, seconds
from corral.kernel.ids import AttemptId
from corral.model.exits import EXTERNALLY_DELETED, STOP_REQUESTED
from corral.model.launch import Exited, Started

NEVER_STARTED: Final = "it was stopped before it started"
VANISHED: Final = "the pod was deleted outside Corral, and its end was not seen"
DELETED: Final = "the pod was deleted outside Corral while it ran"


class Action(Enum):
    """An action after a pod changed."""

    REPORT_START = "report-start"
    """`started` is new: report it."""
    DELETE = "delete"
    """The pod can never start: delete it."""
    REMOVE = "remove"
    """The pod is a second one of the attempt's name, created by others: delete it."""
    CLOSE = "close"
    """`end` is known: complete the log and report it."""


@dataclass(slots=True)
class Record:
    """One attempt that is not forgotten."""

    attempt: AttemptId
    uid: str = ""
    """The UID of its pod; "" while the pod is being created, or when it never had one."""
    node: str = ""
    devices: frozenset[int] = frozenset()
    since: float = 0.0
    """When it was first known here, by the loop's clock."""
    started: Started | None = None
    stopping: bool = False
    """Whether this engine requested its deletion."""
    kill_at: float | None = None
    """When to delete the pod after a signal, in seconds since 1970."""
    signalled: bool = False
    """Whether this server sent the signal, or deleted the pod instead."""
    forced_at: float | None = None
    """When to force the pod's deletion, if its job sets a limit; seconds since 1970."""
    patterns: bool = False
    """Whether the end of its log is searched for known faults."""
    error_block: bool = False
    """Whether its failure is also reported as an error block."""
    sidecar: str = ""
    """The container that goes on after the task's has ended."""
    verdict: PodExit | None = None
    """Why this engine ended it. It overrides the exit of its containers."""
    end: PodExit | None = None
    gone: bool = False
    """Whether its pod no longer exists."""
    exited: Exited | None = None
    """The end as reported to control."""
    forgetting: bool = False
    """Whether it is forgotten as soon as its log is archived."""


class Ledger:
    """All attempts that are not forgotten."""

    def __init__(self, wall: Callable[[], float]) -> None:
        """`wall` returns seconds since 1970, for events without a time."""
        self._wall = wall
        self.records: dict[AttemptId, Record] = {}
        self._forgotten: set[str] = set()
        self._on_node: dict[str, set[AttemptId]] = {}

    def expect(self, attempt: AttemptId, node: str, devices: frozenset[int], now: float) -> Record:
        """Add the record of an attempt that is about to be created."""
        record = Record(attempt, node=node, devices=devices, since=now)
        self._add(record)
        return record

    def bury(self, attempt: AttemptId, now: float) -> Record:
        """Add the record of an attempt that must never start."""
        record = Record(attempt, since=now, stopping=True, gone=True, end=PodExit(STOP_REQUESTED, NEVER_STARTED))
        self._add(record)
        return record

    def forget(self, attempt: AttemptId) -> None:
        """Forget the attempt."""
        record = self.records.pop(attempt)
        self._on_node.get(record.node, set()).discard(attempt)
        if record.uid and not record.gone:
            self._forgotten.add(record.uid)

    def devices_on(self, node: str) -> frozenset[int]:
        """Return the device indexes of a node that running attempts hold."""
        records = (self.records[attempt] for attempt in self._on_node.get(node, ()))
        return frozenset().union(*(record.devices for record in records if record.end is None))

    def fold(self, attempt: AttemptId, change: Change[Pod], now: float) -> tuple[Record | None, list[Action]]:
        """Fold the change of an attempt's pod. The record is None for a forgotten attempt or a second pod."""
        pod = change.object
        uid = pod.metadata.uid
        if uid in self._forgotten:
            if change.gone:
                self._forgotten.discard(uid)
            return None, []
        record = self.records.get(attempt)
        if record is None:
            if change.gone:
                return None, []
            record = self.expect(attempt, pod.spec.node_name, devices_of(pod), now)
            record.kill_at = kill_at_of(pod)
            record.stopping = record.kill_at is not None
        if not record.uid and not record.gone:
            record.uid = uid
        if record.uid != uid:
            return None, [] if change.gone else [Action.REMOVE]
        record.gone = record.gone or change.gone
        record.forced_at = forced_at_of(pod)
        record.patterns = EXIT_PATTERNS in pod.metadata.labels
        record.error_block = pod.metadata.labels.get(EXIT_PATTERNS, "true") != "true"
        record.sidecar = CONTAINER if OUTPUTS in pod.metadata.labels else ""
        return record, list(self._actions(record, change))

    def vanished(self, record: Record) -> None:
        """Record that the pod no longer exists and its end was not seen."""
        record.gone = True
        code = STOP_REQUESTED if record.stopping and record.started is None else EXTERNALLY_DELETED
        record.end = record.verdict or PodExit(code, NEVER_STARTED if code == STOP_REQUESTED else VANISHED)

    def _actions(self, record: Record, change: Change[Pod]) -> Iterator[Action]:
        pod = change.object
        if record.end is not None:
            return
        if record.started is None and (begun := _begun(pod)) is not None:
            record.started = Started(
                record.attempt, begun or self._wall(), pod.status.pod_ip, ports_of(pod), record.uid
            )
            yield Action.REPORT_START
        record.end = self._end(record, change)
        if record.end is not None:
            yield Action.CLOSE
            return
        failure = start_failure(pod)
        if record.verdict is None and failure is not None and failure.certain and record.started is None:
            record.verdict = PodExit(failure.code, failure.reason)
        if record.verdict is not None and not pod.metadata.deletion_timestamp:
            yield Action.DELETE

    def _end(self, record: Record, change: Change[Pod]) -> PodExit | None:
        pod = change.object
        end = pod_exit(pod, gone=change.gone)
        if end is None:
            return None
        if record.verdict is not None:
            return record.verdict
        if record.stopping and record.started is None:
            return PodExit(STOP_REQUESTED, NEVER_STARTED)
        if record.stopping and end.code == EXTERNALLY_DELETED:
            return PodExit(137, "", 9)
        if end.code > 0 and not record.stopping and _killed_by_deletion(pod.metadata, end):
            return PodExit(EXTERNALLY_DELETED, DELETED, at=end.at)
        return end

    def _add(self, record: Record) -> None:
        self.records[record.attempt] = record
        if record.node:
            self._on_node.setdefault(record.node, set()).add(record.attempt)


def _begun(pod: Pod) -> float | None:
    """Return when the task's container started, 0 if unknown, None if it has not."""
    for container in pod.status.container_statuses:
        if container.name == TASK:
            state = container.state
            if state.running is not None:
                return seconds(state.running.started_at) or 0.0
            if state.terminated is not None:
                return seconds(state.terminated.started_at) or None
    return None


def _killed_by_deletion(meta: Meta, end: PodExit) -> bool:
    """Return whether the containers ended after the pod's deletion was requested."""
    over_at = seconds(meta.deletion_timestamp)
    if over_at is None:
        return False
    return end.at is None or end.at >= over_at - (meta.deletion_grace_period_seconds or 0)
