"""Keep front and control running: restart either if it dies or hangs, and end both with the server.

It runs as `python -m corral.supervisor`, with the standard library only (about 10 MB), and gets its orders as JSON in
`CORRAL_SUPERVISE`. It owns the listening socket, so no connection is refused while front restarts.

`corral up` forks the first front and control from itself, with the modules that both load, and only then becomes their
supervisor: so it holds none of those modules. A restarted child is a new interpreter, which never mixes modules of before
and after an upgrade.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from corral.forking import ENDING, ForkedProcess, fork, load_shared, set_title
from corral.kernel.errors import Conflict, CorralError, InvalidInput, Unavailable
from corral.rotation import DEFAULT_LOG_BYTES, Rotation
from corral.runtime.process import Identity, identity_of

ORDERS: Final = "CORRAL_SUPERVISE"
READY_FD: Final = "CORRAL_READY_FD"
LISTEN_FD: Final = "CORRAL_LISTEN_FD"
PULSE_FD: Final = "CORRAL_PULSE_FD"
NEW: Final = "CORRAL_NEW"
"""Set if the server starts anew next to an earlier server's data: a lost key is then replaced."""
PULSE_SECONDS: Final = 2.0
"""Seconds between two heartbeats, which a child's event loop writes to the pipe in `CORRAL_PULSE_FD`."""
_USAGE, _REFUSED = 2, 4
"""The command line's exit codes, for a server in the foreground."""
PARENT: Final = "CORRAL_PARENT"
_PR_SET_PDEATHSIG: Final = 1
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 5.0
_CALM_SECONDS: Final = 10.0
_STOP_SECONDS: Final = 15.0
_LETTING_GO_SECONDS: Final = 5.0
_HUNG_SECONDS: Final = 20.0
"""Seconds without a heartbeat after which a ready child is killed and restarted."""
_BEGIN_SECONDS: Final = 300.0
"""The same before a child is ready, while it migrates the store or reads all jobs."""
_OWN_LATENESS: Final = 5.0
"""Delay of the supervisor itself, in seconds, above which it extends the children's limits.

A suspended machine causes such a delay.
"""
_DISK_SECONDS: Final = 5.0
"""Seconds by which the limit is extended while a child waits for the disk, which no signal interrupts."""
_START_TRIES: Final = 4
"""Exits of a child before its first readiness after which it is given up."""


@dataclass
class Child:
    """One of the two child processes, and the state of its present run."""

    name: str
    process: subprocess.Popen[bytes] | ForkedProcess | None = None
    ready_fd: int = -1
    pulse_fd: int = -1
    pid_fd: int = -1
    started: float = 0.0
    hangs_at: float = 0.0
    why: str = ""
    """Why the supervisor killed it; empty if it ended by itself."""
    pause: float = _FIRST_PAUSE
    restart_at: float | None = None
    tries: int = 0
    ready: dict[str, Any] | None = None
    buffer: bytes = field(default=b"", repr=False)

    @property
    def pipes(self) -> list[int]:
        """The open descriptors of its pipes."""
        return [each for each in (self.ready_fd, self.pulse_fd) if each >= 0]


def _say(what: str) -> None:
    """Write to the supervisor's log; a full disk must not end the server."""
    with contextlib.suppress(OSError):
        print(f"corral: {what}", file=sys.stderr, flush=True)


def listen(host: str, port: int) -> socket.socket:
    """Open the socket that front serves.

    Raises Conflict if the port is taken, InvalidInput if the host is not an address of this machine.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except socket.gaierror as error:
        raise InvalidInput("bad-host", f"{host!r} cannot be listened on ({error.strerror}); change --host.") from None
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise InvalidInput(
                "bad-host", f"{host} is not an address of this machine; choose one with --host."
            ) from None
        raise Conflict(
            "port-in-use",
            f"Cannot listen on {host}:{port} ({error.strerror}); choose another with --port, or stop what uses it.",
        ) from None
    listener.listen(2048)
    return listener


class Supervisor:
    """Keeps front and control running until a signal ends it."""

    def __init__(self, orders: dict[str, Any], *, forks: bool = False) -> None:
        """`forks`: this process forks its children; it must have one thread."""
        self.orders = orders
        self.forks = forks
        self.lock = -1
        self.data = Path(orders["data_folder"])
        self.children = [Child("control"), Child("front")]
        self.selector = selectors.DefaultSelector()
        self.ending = False
        self.announced = False
        self.started_at, self.looked = time.time(), time.monotonic()
        limit = int(orders["environment"].get("CORRAL_SERVER_LOG_BYTES", DEFAULT_LOG_BYTES))
        self.log = Rotation(self.data / "logs" / "supervisor.log", limit)
        self.replaced: dict[str, dict[str, Any]] = {}
        """By child that was restarted: how often, when last and why."""

    def run(self) -> int:
        """Supervise until SIGTERM or SIGINT; the exit code."""
        begun = self.orders.pop("begun", None)
        if begun is None:
            self._open()
        else:
            self._adopt(begun)
        woken = self._catch_signals()
        try:
            for child in self.children:
                if child.process is None:
                    self._start(child)
            while not self.ending:
                self._wait(woken)
        finally:
            self._end_children()
            with contextlib.suppress(FileNotFoundError):
                (self.data / "run" / "supervisor.json").unlink()
            self.listener.close()
            os.close(self.lock)
        return 0

    def begin(self) -> dict[str, Any]:
        """Fork front and control; the state for the program that this process then becomes.

        Signals that end the server wait until that program handles them. Raises CorralError if the server cannot start.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        self._open()
        try:
            load_shared()
            for child in self.children:
                self._start(child)
        except Exception as error:  # the children that the program starts itself report the cause in their logs
            _say(f"front and control are started apart, because they cannot be forked ({error!r})")
        forked = [child for child in self.children if child.process is not None]
        listener = self.listener.detach()
        for handle in (self.lock, listener, *(each for child in forked for each in child.pipes)):
            os.set_inheritable(handle, True)
        children = {child.name: [child.process.pid, *child.pipes] for child in forked if child.process is not None}
        return {"lock": self.lock, "listener": listener, "children": children}

    def _adopt(self, begun: dict[str, Any]) -> None:
        """Take over what `begin` has opened and forked in this very process, before it became this program."""
        self.lock, self.listener = begun["lock"], socket.socket(fileno=begun["listener"])
        self.url = self._url()
        for child in self.children:
            if child.name in begun["children"]:
                pid, *pipes = begun["children"][child.name]
                child.process, child.pid_fd = ForkedProcess(pid), os.pidfd_open(pid)
                self._watch(child, *pipes)
        for handle in (self.lock, self.listener.fileno(), *(each for child in self.children for each in child.pipes)):
            os.set_inheritable(handle, False)

    def _open(self) -> None:
        """Take the data folder's lock, open the socket and record both.

        Raises Conflict if another server has either, InvalidInput if the address is not usable.
        """
        self.lock = self._locked()
        self.listener = self._listen()
        self.url = self._url()
        self._write_record()

    def _listen(self) -> socket.socket:
        """Open the socket for front, with retries if a killed supervisor's front may still hold it."""
        was_killed = (self.data / "run" / "supervisor.json").exists()
        patience = time.monotonic() + (_LETTING_GO_SECONDS if was_killed else 0)
        while True:
            try:
                return listen(self.orders["host"], self.orders["port"])
            except Conflict:
                if time.monotonic() >= patience:
                    raise
                time.sleep(0.05)

    def _locked(self) -> int:
        path = self.data / "run" / "supervisor.lock"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise Conflict(
                "already-running",
                f"Corral already runs on the data folder {self.data}; end it with `corral down`, or use --data.",
            ) from None
        return handle

    def _url(self) -> str:
        host, port = self.listener.getsockname()[:2]
        shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
        return f"{self.orders['scheme']}://{shown}:{port}"

    def _write_record(self) -> None:
        me = identity_of(os.getpid()).as_dict()
        record = {"url": self.url, "started_at": self.started_at, "replaced": self.replaced, **me}
        path = self.data / "run" / "supervisor.json"
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(record))
        temporary.chmod(0o600)
        temporary.replace(path)

    def _catch_signals(self) -> socket.socket:
        receiver, sender = socket.socketpair()
        sender.setblocking(False)
        receiver.setblocking(False)
        signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        self._sender = sender
        for number in ENDING:
            signal.signal(number, self._asked_to_end)
        self.selector.register(receiver, selectors.EVENT_READ, None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        return receiver

    def _asked_to_end(self, *_: object) -> None:
        self.ending = True

    def _start(self, child: Child) -> None:
        pipes = (os.pipe(), os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC))
        (reading, writing), (feeling, beating) = pipes
        passed = [writing, beating]
        environment = {**os.environ, **self.orders["environment"], READY_FD: str(writing), PULSE_FD: str(beating)}
        environment["CORRAL_LISTENING_URL"] = self.url
        environment.pop(ORDERS, None)
        if child.name == "front":
            passed.append(self.listener.fileno())
            environment[LISTEN_FD] = str(self.listener.fileno())
        try:
            child.process = self._begin(child, passed, environment)
            child.pid_fd = os.pidfd_open(child.process.pid)
        except OSError:
            os.close(reading)
            os.close(feeling)
            if child.process is not None:  # its end would go unnoticed, and a second one be started
                child.process.kill()
                child.process.wait()
                child.process = None
            raise
        finally:
            os.close(writing)
            os.close(beating)
        self._watch(child, reading, feeling)

    def _watch(self, child: Child, reading: int, feeling: int) -> None:
        """Wait for the readiness, the heartbeats and the end of a child that has just begun."""
        child.started, child.restart_at, child.ready, child.buffer = time.monotonic(), None, None, b""
        child.hangs_at, child.why = child.started + _BEGIN_SECONDS, ""
        child.ready_fd, child.pulse_fd = reading, feeling
        self.selector.register(reading, selectors.EVENT_READ, ("ready", child))
        self.selector.register(feeling, selectors.EVENT_READ, ("pulse", child))
        self.selector.register(child.pid_fd, selectors.EVENT_READ, ("ended", child))

    def _begin(
        self, child: Child, passed: list[int], environment: dict[str, str]
    ) -> subprocess.Popen[bytes] | ForkedProcess:
        """Start a child's process."""
        me = os.getpid()

        def live() -> int:
            end_with_parent(me)
            set_title("corral", child.name)
            from corral.app import serve

            return serve(child.name)

        with open(self.data / "logs" / f"{child.name}.log", "ab") as log:
            if self.forks:
                handle = log.fileno()
                return fork(live, output=handle, errors=handle, passed=passed, environment=environment)
            return subprocess.Popen(
                [sys.executable, "-m", "corral.app", child.name],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=passed,
                env={**environment, PARENT: str(me)},
                start_new_session=True,
            )

    def _wait(self, woken: socket.socket) -> None:
        due = [child.restart_at for child in self.children if child.restart_at is not None]
        timeout = min(PULSE_SECONDS, max(0.0, min(due) - time.monotonic())) if due else PULSE_SECONDS
        for key, _ in self.selector.select(timeout):
            if key.data is None:
                with contextlib.suppress(BlockingIOError):
                    woken.recv(64)
                continue
            what, child = key.data
            if what == "ready":
                self._read_ready(child)
            elif what == "pulse":
                self._feel(child)
            else:
                self._ended(child)
        self._end_hanging()
        self.log.look()
        for child in self.children:
            if child.restart_at is not None and child.restart_at <= time.monotonic() and not self.ending:
                self._start_again(child)

    def _feel(self, child: Child) -> None:
        """Record a heartbeat of a child."""
        if child.pulse_fd < 0:
            return
        if not os.read(child.pulse_fd, 4096):
            self._close_pulse(child)  # the child is ending: its pidfd reports that
            return
        until = time.monotonic() + _HUNG_SECONDS
        child.hangs_at = until if child.ready is not None else max(child.hangs_at, until)

    def _close_pulse(self, child: Child) -> None:
        if child.pulse_fd >= 0:
            self.selector.unregister(child.pulse_fd)
            os.close(child.pulse_fd)
            child.pulse_fd = -1

    def _end_hanging(self) -> None:
        """Kill a child whose event loop has not run for too long; its exit is then handled like any other."""
        now = time.monotonic()
        late, self.looked = now - self.looked - PULSE_SECONDS, now
        for child in self.children:
            if late > _OWN_LATENESS:
                child.hangs_at += late
            if child.process is None or child.why or now < child.hangs_at or self.ending:
                continue
            if _waits_for_the_disk(child.process.pid):
                child.hangs_at = now + _DISK_SECONDS
                continue
            patience = _BEGIN_SECONDS if child.ready is None else _HUNG_SECONDS
            child.why = f"it gave no sign of life for {patience:.0f} s"
            _say(f"{child.name} is ended: {child.why}")
            child.process.kill()

    def _start_again(self, child: Child) -> None:
        """Restart a child that has ended; if the machine lacks resources, try again after a pause."""
        try:
            self._start(child)
        except OSError as error:
            child.pause = min(child.pause * 2, _LONGEST_PAUSE)
            child.restart_at = time.monotonic() + child.pause
            _say(f"{child.name} cannot be started ({error.strerror}); trying again")

    def _read_ready(self, child: Child) -> None:
        if child.ready_fd < 0:
            return
        read = os.read(child.ready_fd, 65536)
        child.buffer += read
        if read and not child.buffer.endswith(b"\n"):
            return
        self._close_ready(child)
        said = json.loads(child.buffer) if child.buffer.endswith(b"\n") else {"code": ""}
        if "code" not in said:  # a refusal is reported when the child has ended
            child.ready = said
            child.hangs_at = time.monotonic() + _HUNG_SECONDS
            self._announce()

    def _close_ready(self, child: Child) -> None:
        if child.ready_fd >= 0:
            self.selector.unregister(child.ready_fd)
            os.close(child.ready_fd)
            child.ready_fd = -1

    def _announce(self) -> None:
        if self.announced or any(child.ready is None for child in self.children):
            return
        self.announced = True
        os.environ.pop(NEW, None)  # a restarted child finds what this start has made
        facts: dict[str, Any] = {"url": self.url, "pid": os.getpid()}
        for child in self.children:
            facts |= child.ready or {}
        print(_for_people(facts) if self.orders.get("foreground") else json.dumps(facts), flush=True)

    def _ended(self, child: Child) -> None:
        assert child.process is not None
        code = child.process.wait()
        if child.ready_fd >= 0 and select.select([child.ready_fd], [], [], 0)[0]:
            self._read_ready(child)
        self._close_ready(child)
        self._close_pulse(child)
        self.selector.unregister(child.pid_fd)
        os.close(child.pid_fd)
        lived = time.monotonic() - child.started
        child.tries += 1
        if not self.announced and (code == 78 or child.tries == _START_TRIES):
            self._refused(child)
        child.pause = _FIRST_PAUSE if lived > _CALM_SECONDS else min(child.pause * 2, _LONGEST_PAUSE)
        child.restart_at = time.monotonic() + child.pause
        child.process = None
        _say(f"{child.name} ended with {code} after {lived:.1f} s; starting it again")
        self._note_replaced(child, child.why or f"it ended with {code}")

    def _note_replaced(self, child: Child, why: str) -> None:
        """Record a restart for `corral doctor`."""
        times = self.replaced.get(child.name, {}).get("times", 0) + 1
        self.replaced[child.name] = {"times": times, "at": time.time(), "why": why}
        with contextlib.suppress(OSError):
            self._write_record()

    def _refused(self, child: Child) -> None:
        """Raise the error of a child that cannot start, mostly from its ready line (exit code 78, EX_CONFIG)."""
        refusal = json.loads(child.buffer) if child.buffer.endswith(b"\n") else {}
        error = CorralError(
            refusal.get("code", "cannot-start"),
            refusal.get("message", f"{child.name} cannot start; see {self.data}/logs/{child.name}.log."),
        )
        error.status = refusal.get("status", error.status)
        raise error

    def _end_children(self) -> None:
        """End front first, then control, so that no caller sees control missing."""
        for child in reversed(self.children):
            if child.process is None or child.process.poll() is not None:
                continue
            child.process.terminate()
            try:
                child.process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                child.process.kill()
                child.process.wait()


def _waits_for_the_disk(pid: int) -> bool:
    """Whether a process is in uninterruptible sleep."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "D"
    except (OSError, IndexError):
        return False


def _for_people(facts: dict[str, Any]) -> str:
    lines = [f"Corral is ready: {facts['url']}"]
    if facts.get("link"):
        lines += [f"Sign in (once, within 15 minutes): {facts['link']}"]
    if facts.get("note"):
        lines += [f"Note: {facts['note']}"]
    return "\n".join([*lines, "Ctrl-C ends the server; jobs go on and are taken over by the next start."])


def running(data_folder: Path) -> dict[str, Any] | None:
    """The record of the supervisor that runs on this data folder; None if there is none."""
    try:
        record: dict[str, Any] = json.loads((data_folder / "run" / "supervisor.json").read_text())
        identity = Identity.from_dict(record)
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError):
        return None
    return record if identity.is_alive() else None


def children_of(pid: int) -> dict[str, int]:
    """The pids of a supervisor's children by name."""
    found: dict[str, int] = {}
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{child}/cmdline").read_text().split("\0")
                found |= {name: int(child) for name in ("front", "control") if name in words}
    return found


def stop(data_folder: Path, seconds: float = 2 * _STOP_SECONDS + 5) -> bool:
    """Stop the supervisor of this data folder and wait for it; False if none runs.

    Raises Unavailable if it has not ended after `seconds`.
    """
    record = running(data_folder)
    if record is None:
        return False
    pid_fd = os.pidfd_open(record["pid"])
    try:
        signal.pidfd_send_signal(pid_fd, signal.SIGTERM)
        with selectors.DefaultSelector() as selector:
            selector.register(pid_fd, selectors.EVENT_READ)
            if not selector.select(seconds):
                raise Unavailable(
                    "still-running", f"The server (pid {record['pid']}) has not ended in {seconds:.0f} s."
                )
    finally:
        os.close(pid_fd)
    return True


def end_with_parent(parent: int) -> None:
    """Let the kernel send SIGTERM to this process when its parent ends, even by `kill -9`."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def become(orders: dict[str, Any], *, forks: bool) -> int:
    """Let this process become the supervisor; the exit code if the server cannot start.

    `forks`: fork the first front and control before that, from this process, which must have one thread.
    """
    begun = {}
    if forks:
        try:
            begun = {"begun": Supervisor(orders, forks=True).begin()}
        except CorralError as error:
            return _refuse(orders, error)
    environment = {**os.environ, ORDERS: json.dumps(orders | begun)}
    os.execve(sys.executable, [sys.executable, "-m", "corral.supervisor"], environment)


def _refuse(orders: dict[str, Any], error: CorralError) -> int:
    """Print why the server cannot start, in the background as JSON for `corral up`; the exit code."""
    if orders.get("foreground"):
        print(f"Error: {error.message}", file=sys.stderr)
        return _USAGE if error.status in (400, 413) else _REFUSED
    print(json.dumps({"code": error.code, "message": error.message, "status": error.status}), flush=True)
    return 78


def main() -> int:
    """Run the supervisor; exit code 0, or 78 if the server cannot start (in the foreground 2 or 4)."""
    orders = json.loads(os.environ[ORDERS])
    try:
        return Supervisor(orders).run()
    except CorralError as error:
        return _refuse(orders, error)
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
