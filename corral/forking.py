"""Fork a server process from one that has loaded its modules already, which saves their time and memory.

The parent must have one thread and no event loop: a lock that another thread holds at the moment of the fork is never
released in the child, and a loop's descriptors would be shared.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import io
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NoReturn

SHARED: Final = (
    "corral.app",
    "corral.frameworks",
    "corral.frameworks.runnable_job",
    "corral.model.cluster_use",
    "corral.model.device_timeline",
    "corral.model.estimate_views",
    "corral.model.hangs.patience",
    "corral.model.hangs.records",
    "corral.model.hangs.scores",
    "corral.model.idle.records",
    "corral.model.job_edits",
    "corral.model.messages",
    "corral.model.metrics.job_figures",
    "corral.model.metrics.told_scalars",
    "corral.model.notifications.destinations",
    "corral.model.policy_shadow",
    "corral.model.queue_views",
    "corral.model.request_builder",
    "corral.model.start_estimates",
    "corral.model.views",
    "corral.model.virtual_clusters",
    "corral.model.what_if_progress",
    "corral.service.health",
    "corral.service.http_ticks",
    "corral.service.metrics.process",
    "corral.service.mutual_tls",
    "corral.service.secret_box",
    "corral.service.tls_acceptor",
    "corral.service.watched_socket",
    "corral.spec.configuration_file",
    "corral.spec.document_splitter",
    "corral.spec.job_reader",
    "corral.spec.short_form_writer",
    "corral.spec.templates",
    "corral.storage.code_archives",
    "corral.storage.hdfs",
    "corral.storage.log_sources",
    "corral.store",
    "corral.systemclock",
    "corral.workers.pool",
    "encodings.idna",
    "starlette.applications",
    "uvicorn",
    "uvicorn.protocols.http.httptools_impl",
    "uvicorn.protocols.websockets.websockets_sansio_impl",
    "uvloop",
)
"""Modules that both front and control load at their start; what they import comes along."""
_PR_SET_NAME: Final = 15
ENDING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""The signals that end a server."""


def load_shared() -> None:
    """Load what front and control share, and let garbage collections leave those pages alone.

    Nothing is collected before: modules leave next to no garbage, and a look through all of them takes 60 ms, for which
    both processes would wait.

    Raises what a module raises that cannot be loaded.
    """
    for name in SHARED:
        with contextlib.suppress(ModuleNotFoundError) if name == "uvloop" else contextlib.nullcontext():
            importlib.import_module(name)
    gc.freeze()


def has_one_thread() -> bool:
    """Whether this process has no other thread, in Python or in a library, so that it may be forked."""
    return len(os.listdir("/proc/self/task")) == 1


class ForkedProcess:
    """A forked child: the part of `subprocess.Popen` that its parent uses."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while the child runs."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; the exit code.

        Raises subprocess.TimeoutExpired if the child still runs after `timeout` seconds.
        """
        if self._code is None and timeout is not None:
            self._wait_at_most(timeout)
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._code

    def _wait_at_most(self, seconds: float) -> None:
        pid_fd = os.pidfd_open(self.pid)
        try:
            if not select.select([pid_fd], [], [], seconds)[0]:
                raise subprocess.TimeoutExpired(f"pid {self.pid}", seconds)
        finally:
            os.close(pid_fd)

    def terminate(self) -> None:
        """Send SIGTERM, unless the child has ended."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL, unless the child has ended."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def fork(
    run: Callable[[], int],
    *,
    output: int,
    errors: int,
    passed: Iterable[int] = (),
    environment: Mapping[str, str] | None = None,
) -> ForkedProcess:
    """Fork a child that calls `run` and exits with its result.

    As after the start of a program, the child leads a session of its own, has the signal handlers of a new interpreter,
    and no descriptor but an empty standard input, `output`, `errors` and those `passed`. It never returns into the
    caller's frames, which hold on to objects whose descriptors the child has closed.

    Raises OSError if no process can be started.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # the parent's handlers must not run in the child
    try:
        pid = os.fork()
        if pid == 0:
            _live(run, output, errors, passed, environment)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
    return ForkedProcess(pid)


def _live(
    run: Callable[[], int],
    output: int,
    errors: int,
    passed: Iterable[int],
    environment: Mapping[str, str] | None,
) -> NoReturn:
    """The whole life of the child."""
    code = 1
    gc.freeze()  # a file of the parent that only a cycle holds must not be closed later, under another one's number
    try:
        os.setsid()
        _keep_descriptors(output, errors, passed)
        _reset_signals()
        if environment is not None:
            os.environ.clear()
            os.environ.update(environment)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        code = run()
    except BaseException:  # as the interpreter itself would report it
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(code)


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _keep_descriptors(output: int, errors: int, passed: Iterable[int]) -> None:
    """Put the standard streams in place and close every other descriptor, so that no lock or pipe end is shared."""
    output, errors = os.dup(output), os.dup(errors)  # either may be a standard stream that is replaced first
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, handle in enumerate((nothing, output, errors)):
        os.dup2(handle, number)
    kept = {0, 1, 2, *passed}
    for handle in {int(name) for name in os.listdir("/proc/self/fd")} - kept:
        with contextlib.suppress(OSError):  # the one that listed the folder is closed
            os.close(handle)
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(
        io.FileIO(2, "w", closefd=False), errors="backslashreplace", line_buffering=True, write_through=True
    )


def set_title(*words: str) -> None:
    """Show `words` as this process' name and command line in `ps`.

    A forked process would be shown under its parent's. The command line is as long as the program's own at most.
    """
    ctypes.CDLL(None).prctl(_PR_SET_NAME, "-".join(words).encode(), 0, 0, 0)
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    if 0 < start < end:  # 0 where the kernel hides addresses
        text = b"\0".join(word.encode() for word in words)[: end - start - 1]
        ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)
