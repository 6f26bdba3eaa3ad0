"""End the calls of a policy's installed parts that take too long, so that they cannot hold up control.

A thread looks at the call that runs, a few times a second. When the calls of one plan have used up their time, it sends a
signal to the main thread, whose handler raises TookTooLong within the call. Code that never returns to Python's
interpreter, such as a long computation of a C library, is ended only when it does.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, ParamSpec, TypeVar

from corral.scheduler.policy.call_guard import CallGuard, TookTooLong, install_guard

PROCESSOR_SECONDS: Final = 2.0
"""The processor time that all calls of one plan may take together."""
WALL_SECONDS: Final = 10.0
"""The time that they may take together, whatever they wait for."""
_LOOK_SECONDS: Final = 0.1
_SIGNAL: Final = signal.SIGPROF
P = ParamSpec("P")
R = TypeVar("R")


class PartTimeLimit:
    """A guard for the main thread's calls; those of other threads are not limited."""

    def __init__(self, processor_seconds: float = PROCESSOR_SECONDS, wall_seconds: float = WALL_SECONDS) -> None:
        self._most = (processor_seconds, wall_seconds)
        self._used = [0.0, 0.0]
        self._inside: tuple[float, float] | None = None
        """Processor and wall time at which the present call began; None between calls."""
        self._main = threading.main_thread().ident or 0
        self._clock = time.pthread_getcpuclockid(self._main)
        self._closed = threading.Event()
        self._watcher: threading.Thread | None = None
        self._handler_before: Any = None
        self._guard_before: CallGuard | None = None

    def install(self) -> None:
        """Guard the calls of this process; call it in the main thread."""
        self._handler_before = signal.signal(_SIGNAL, self._interrupt)
        self._guard_before = install_guard(self)

    def close(self) -> None:
        """Guard no more calls."""
        self._closed.set()
        if self._watcher is not None:
            self._watcher.join()
        if self._guard_before is not None:
            install_guard(self._guard_before)
            signal.signal(_SIGNAL, self._handler_before)
            self._guard_before = None

    def begin_plan(self) -> None:
        """Give the calls of the next plan their whole time."""
        self._used = [0.0, 0.0]

    def run(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what the call returns; raises TookTooLong when the time of the plan's calls is used up."""
        if threading.get_ident() != self._main:
            return call(*args, **kwargs)
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, name="part-time-limit", daemon=True)
            self._watcher.start()
        began = (time.thread_time(), time.monotonic())
        if self._is_used_up(0.0, 0.0):
            raise TookTooLong
        try:
            self._inside = began
            return call(*args, **kwargs)
        finally:
            self._inside = None
            self._used[0] += time.thread_time() - began[0]
            self._used[1] += time.monotonic() - began[1]

    def _is_used_up(self, processor: float, wall: float) -> bool:
        return self._used[0] + processor > self._most[0] or self._used[1] + wall > self._most[1]

    def _watch(self) -> None:
        while not self._closed.wait(_LOOK_SECONDS):
            if self._is_late():
                signal.pthread_kill(self._main, _SIGNAL)

    def _is_late(self) -> bool:
        inside = self._inside
        if inside is None:
            return False
        return self._is_used_up(time.clock_gettime(self._clock) - inside[0], time.monotonic() - inside[1])

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Raise TookTooLong where the main thread is, if that is still in the late call."""
        if self._is_late():
            raise TookTooLong
