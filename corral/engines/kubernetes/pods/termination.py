"""End attempts' pods and report each end once, after the log is complete, also for pods that vanished unseen."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final

from corral.engines.base import ExecSession
from corral.engines.kubernetes.logs.copier import LogCopier
from corral.engines.kubernetes.pods.attempt_records import Ledger, Record
from corral.engines.kubernetes.pods.calls import CALL_SECONDS, PodCalls
from corral.engines.kubernetes.pods.exit_codes import explained
from corral.engines.kubernetes.pods.labels import KILL_AT
from corral.engines.kubernetes.watch.cluster_state import ClusterView
from corral.kernel.errors import Conflict, CorralError, NotFound
from corral.kernel.ids import AttemptId
from corral.model.launch import EngineEvent, Exited

_log = logging.getLogger(__name__)
_SWEEP_SECONDS: Final = 1.0
_FORCED_SECONDS: Final = 10.0
"""Seconds between attempts to force a pod's deletion."""
_UNSEEN_SECONDS: Final = 5.0
_SENT: Final = "sent"


class PodTerminator:
    """Stops attempts and reports their ends."""

    def __init__(
        self,
        ledger: Ledger,
        pods: PodCalls,
        logs: LogCopier,
        view: ClusterView,
        *,
        report: Callable[[EngineEvent], None],
        execute: Callable[[AttemptId, Sequence[str]], Awaitable[ExecSession]],
        wall: Callable[[], float],
    ) -> None:
        self._ledger, self._pods, self._logs, self._view = ledger, pods, logs, view
        self._report, self._exec, self._wall = report, execute, wall
        self._deleting: set[tuple[str, bool]] = set()
        """Deletions under way, by UID and whether forced: on a slow cluster no second one queues behind them."""

    async def delete(self, attempt: AttemptId, uid: str, *, force: bool = False) -> None:
        """Delete a useless pod, or with `force` remove it at once. After a failure the next call tries again."""
        which = (uid, force)
        if which in self._deleting:
            return
        self._deleting.add(which)
        try:
            await self._pods.delete(attempt, uid, 1, force=force)
        except CorralError as error:
            _log.warning("the pod of %s could not be deleted: %s", attempt, error.message)
        finally:
            self._deleting.discard(which)

    async def stop(self, record: Record, grace_seconds: float, signal: str) -> None:
        """End an attempt by deletion: TERM, then KILL after the grace. Another signal is sent first.

        The deadline is stored on the pod, so that the next server continues. A repeated call can only bring it forward.
        It sends the signal again if the first try had no effect.
        """
        record.stopping = True
        if signal.removeprefix("SIG") == "TERM" or record.started is None:
            await self._pods.delete(record.attempt, record.uid, grace_seconds)
            return
        kill_at = math.ceil(self._wall() + grace_seconds)
        if record.kill_at is None or kill_at < record.kill_at:
            try:
                await self._pods.label(record.attempt, record.uid, {KILL_AT: str(kill_at)})
            except (Conflict, NotFound):
                return
            record.kill_at = kill_at
        if not record.signalled:
            if not await self._send(record.attempt, signal):
                await self._pods.delete(record.attempt, record.uid, grace_seconds)
            record.signalled = True

    async def _send(self, attempt: AttemptId, signal: str) -> bool:
        """Send a signal to all processes of the pod except PID 1, which is not the task's.

        Return whether it was sent. The command says so itself, because the cluster may report success for another end.
        A shell around it would get the signal too.
        """
        command = ["/bin/sh", "-c", f'kill -s "$1" -- -1 && echo {_SENT}', "sh", signal.removeprefix("SIG")]
        try:
            async with asyncio.timeout(CALL_SECONDS):
                session = await self._exec(attempt, command)
                try:
                    said = b"".join([data async for data in session.output()])
                    return _SENT.encode() in said.splitlines()
                finally:
                    await session.close()
        except (CorralError, TimeoutError) as error:
            _log.warning("%s could not be sent to %s: %s", signal, attempt, error)
            return False

    async def close(self, record: Record) -> None:
        """Complete the log of an ended attempt and report its end."""
        end, begun = record.end, record.started
        assert end is not None
        log_bytes = 0
        if begun is not None:
            try:
                log_bytes = await self._logs.finish(record.attempt, readable=not record.gone, sidecar=record.sidecar)
            except OSError as error:
                _log.error("the log of %s could not be completed: %s", record.attempt, error.strerror)
            if record.patterns:
                end = explained(end, self._logs.tail(record.attempt), block=record.error_block)
        at = max(end.at or self._wall(), begun.at if begun is not None else 0.0)
        record.exited = Exited(record.attempt, at, end.code, end.signal, end.reason, log_bytes)
        self._view.touch(record.node)
        self._report(record.exited)

    async def sweep(self, spawn: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        """Until cancelled, delete pods whose deadline passed, and end attempts whose pods vanished while unwatched."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            for record in list(self._ledger.records.values()):
                if record.end is None and record.kill_at is not None and record.kill_at <= self._wall():
                    spawn(self.delete(record.attempt, record.uid))
                if record.end is None and record.forced_at is not None and record.forced_at <= self._wall():
                    _log.warning("the pod of %s has not ended in its time and is given up", record.attempt)
                    record.forced_at += _FORCED_SECONDS
                    spawn(self.delete(record.attempt, record.uid, force=True))
            if self._view.trouble is None:
                await self._miss(spawn)

    async def _miss(self, spawn: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        now = asyncio.get_running_loop().time()
        for record in list(self._ledger.records.values()):
            young = now - record.since < _UNSEEN_SECONDS
            if record.end is not None or not record.uid or young or self._view.has_pod(record.uid):
                continue
            try:
                found = await self._pods.find(record.attempt)
            except CorralError:
                return
            if (found is None or found.metadata.uid != record.uid) and record.end is None:
                self._ledger.vanished(record)
                spawn(self.close(record))
