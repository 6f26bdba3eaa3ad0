"""The engine's state of a live attempt in memory: an index of its folder, from which it can be rebuilt."""

from __future__ import annotations

import asyncio
import os
import signal as signals
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from corral.engines.local import processes, reaper
from corral.engines.local.attempt_folder import AttemptFolder, EndRecord, LaunchRecord, StopRecord
from corral.engines.local.processes import boot_id
from corral.engines.local.shim import NOT_OWNER
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId
from corral.model.exits import EXTERNALLY_DELETED, NODE_LOST, START_FAILED_TRANSIENTLY
from corral.model.launch import Exited, Started
from corral.runtime.process import Identity

SHIM_KILLED = "the shim was killed; what was left of the task's processes has been ended"
GROUP_KILLED = "the whole process group was killed, shim and task together"
NOT_RECORDED = "the shim could not write its record; look at the space left on the disk"
OUTSIDE = "it could not enter its control group, which limits what it may take, and was not begun"
MACHINE_RESTARTED = "the machine restarted while the task ran"
NEVER_STARTED = "it was stopped before it started"
MEMORY_OVER = "it was killed for taking more memory than its limit"
FOLDER_FULL = "its working folder held more than {:,.3g} GiB (folder_limit_bytes); put large results on a storage"
FOLDER_GONE = "its folder was removed while it ran, with the engine's record of it; what ran of it has been ended"
GRACE_OVER = "it did not end within its grace period and was killed"


class Phase(Enum):
    """The phase of an attempt on this machine."""

    RUNNING = "running"
    """Its shim lives. -> CLOSING"""
    CLOSING = "closing"
    """Its shim is gone; its remaining processes are being ended. -> ENDED"""
    ENDED = "ended"
    """None of its processes is left and its end was reported. -> (forgotten)"""


@dataclass(slots=True)
class LiveAttempt:
    """One attempt that is not forgotten."""

    attempt: AttemptId
    folder: AttemptFolder
    record: LaunchRecord
    process: Identity | None = None
    phase: Phase = Phase.RUNNING
    own: bool = False
    """Whether the shim is this server's child: then its pid cannot be reused until it is reaped."""
    handle: int = -1
    """The shim's pidfd while it runs."""
    stop: StopRecord | None = None
    end: EndRecord | None = None
    timer: asyncio.TimerHandle | None = None
    started_at: float = 0.0
    sessions: set[int] = field(default_factory=set)
    """The pids of commands that run beside it."""
    shim_code: int | None = None
    """The shim's own exit code, if it was our child and was not killed."""

    def started(self, host: str) -> Started:
        """Return the event that reports its start."""
        return Started(
            attempt=self.attempt,
            at=self.started_at,
            host=host,
            ports=dict(self.record.ports),
            process=str(self.process or ""),
        )

    def environment(self) -> dict[str, str]:
        """Return the environment of the task's command, or the shim's before the command runs."""
        assert self.process is not None
        pid, env = self.process.pid, processes.environment(self.process.pid)
        for _ in range(2 if self.record.runtime else 1):
            pid = processes.first_child(pid)
            env = (processes.environment(pid) if pid else {}) or env
        return env

    def find_shim(self) -> bool:
        """Return whether its shim runs, of whichever server it is the child. If so, sets `handle` to its pidfd."""
        if self.process is None or self.process.boot_id != boot_id():
            return False
        try:
            handle = os.pidfd_open(self.process.pid)
        except ProcessLookupError:
            return False
        now = processes.stat(self.process.pid)
        if now is None or now.start != self.process.start_time:
            os.close(handle)
            return False
        self.handle = handle
        return True

    def group_left(self, everything: Iterable[processes.Stat]) -> bool:
        """Return whether its process group still has members.

        `everything` lists all processes; unused for our own child.
        """
        if self.process is None or self.process.boot_id != boot_id():
            return False
        if self.own:
            return processes.kill_group(self.process.pid, 0)
        return bool(reaper.survivors(self.process.pid, self.process.start_time, everything))


def verdict(live: LiveAttempt, code: int | None, *, survivors: bool) -> EndRecord:
    """Return an attempt's end, from its shim's recorded exit code (None: none) and whether processes outlived it."""
    if live.end is not None:
        use_code = code is not None and live.end.reason == GRACE_OVER  # it may still have ended by itself
        return EndRecord(code or 0, live.end.reason, signal_of(code or 0)) if use_code else live.end
    if code is not None:
        return EndRecord(code, "", signal_of(code))
    if live.process is not None and live.process.boot_id != boot_id():
        return EndRecord(NODE_LOST, MACHINE_RESTARTED)
    if live.folder.outside():
        return EndRecord(START_FAILED_TRANSIENTLY, OUTSIDE)
    if live.shim_code is not None:
        return _shim_verdict(live.shim_code)
    if live.stop is not None:
        return EndRecord(128 + live.stop.signal, NEVER_STARTED, live.stop.signal)
    return EndRecord(EXTERNALLY_DELETED, SHIM_KILLED if survivors else GROUP_KILLED, 9)


def signal_of(code: int) -> int:
    """Return the signal of a shell's exit code, 0 for none."""
    return code - 128 if 128 < code <= 128 + 64 else 0


def signal_named(name: str) -> int:
    """Return the number of a signal. Raises InvalidInput for an unknown name."""
    try:
        number = signals.Signals[name if name.startswith("SIG") else f"SIG{name}"]
    except KeyError:
        raise InvalidInput("unknown-signal", f"There is no signal {name}; TERM, INT and USR1 are usual.") from None
    return int(number)


def exited(live: LiveAttempt, end: EndRecord, at: float, log_bytes: int) -> Exited:
    """Return the event that reports its end."""
    return Exited(
        attempt=live.attempt,
        at=max(at, live.started_at),
        code=end.code,
        signal=end.signal,
        reason=end.reason,
        log_bytes=log_bytes,
    )


def _shim_verdict(code: int) -> EndRecord:
    """Return the end of a shim that exited without a record: its disk was full, or it did not own the attempt."""
    if code == NOT_OWNER:
        return EndRecord(START_FAILED_TRANSIENTLY, NOT_RECORDED)
    return EndRecord(code, "", signal_of(code))
