"""A session beside an attempt in a slot: a command, or a connection to one of the attempt's ports.

Output goes to the server in frames: one byte of kind (`o` bytes, `x` the exit code as text, `r` the number of the
system's error where a port refuses), four bytes of length, the content. Input comes as lines of JSON:
`{"data": BASE64}`, `{"eof": true}`, `{"resize": [ROWS, COLUMNS]}` or `{"close": true}`.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import fcntl
import json
import os
import pty
import signal
import socket
import struct
import subprocess
import termios
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from corral.runtime.peers import Refused

if TYPE_CHECKING:
    from corral.runtime.slot_attempt import Attempt
    from corral.runtime.slot_calls import SlotCalls

_PIECE = 64 * 1024
_CONNECT_SECONDS = 30
_LAST_INPUT_SECONDS = 10.0
"""Seconds in which what a client sent is still written after it left."""
NOT_RUNNING = 125
"""The exit code of a session whose attempt does not run, or whose command cannot be started."""


class SessionEnd:
    """Ends a session at the server's word, also one that has not begun.

    A line of input is not read while what came before it waits for a command that takes no input. What was sent before
    is still written for `_LAST_INPUT_SECONDS`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stop: Callable[[], None] | None = None
        self._is_due = False
        self._timer = threading.Timer(_LAST_INPUT_SECONDS, self._end)
        self._timer.daemon = True

    def ask(self) -> None:
        """End the session soon; no effect on one that is over. To be called once."""
        self._timer.start()

    def begin(self, stop: Callable[[], None]) -> None:
        """Note how the session is ended from now on."""
        with self._lock:
            self._stop = stop
            if self._is_due:
                stop()

    def over(self) -> None:
        """Note that the session has ended."""
        self._timer.cancel()
        with self._lock:
            self._stop = None

    def _end(self) -> None:
        with self._lock:
            self._is_due = True
            if self._stop is not None:
                self._stop()


def serve_session(
    calls: SlotCalls, order: dict[str, Any], attempt: Attempt | None, ending: SessionEnd | None = None
) -> None:
    """Run a session to its end."""
    with contextlib.suppress(OSError, Refused):  # the server or its client is gone: so is the session
        try:
            if attempt is None or attempt.state()["state"] != "running":
                raise ProcessLookupError(errno.ESRCH, "the attempt does not run")
            end = _connection(order["port"], attempt) if order.get("port") else _command(order, attempt)
        except OSError as error:
            calls.send_output(order["session"], iter(_refusal(order, error)))
            return
        feeding = threading.Thread(target=_feed, args=(calls, order["session"], end), daemon=True)
        feeding.start()
        ending = ending or SessionEnd()
        ending.begin(end.stop)
        try:
            calls.send_output(order["session"], end.frames())
        finally:
            ending.over()
            end.stop()
            feeding.join()  # the server ends the input with the session
            end.close()


def frame(kind: bytes, content: bytes) -> bytes:
    """One frame of output."""
    return kind + struct.pack(">I", len(content)) + content


def _refusal(order: dict[str, Any], error: OSError) -> list[bytes]:
    """The frames of a session that cannot begin: a connection's client would take a text for the service's own."""
    if order.get("port"):
        number = error.errno or errno.ETIMEDOUT
        return [frame(b"r", b"%d" % (number if number > 0 else errno.EHOSTUNREACH))]  # a name's errors are below 0
    return [frame(b"o", str(error.strerror or error).encode() + b"\n"), frame(b"x", b"%d" % NOT_RUNNING)]


class _End:
    """The near end of a session: its descriptors, and how it ends.

    `close` is called when no thread uses the descriptors any more: their numbers are then given to other sessions.
    """

    def __init__(
        self,
        reads: int,
        writes: int,
        *,
        wait: Callable[[], int],
        finish: Callable[[], None],
        stop: Callable[[], None],
        close: Callable[[], None],
    ) -> None:
        self._reads, self._writes = reads, writes
        self._wait, self._finish, self._stop, self.close = wait, finish, stop, close

    def frames(self) -> Iterator[bytes]:
        """The output until its end, then the exit code."""
        with contextlib.suppress(OSError):  # a terminal whose command has ended gives EIO
            while data := os.read(self._reads, _PIECE):
                yield frame(b"o", data)
        yield frame(b"x", b"%d" % self._wait())

    def write(self, data: bytes) -> None:
        """Write all bytes."""
        while data:
            data = data[os.write(self._writes, data) :]

    def finish(self) -> None:
        """End the input."""
        self._finish()
        if self._writes != self._reads:
            self._writes = -1  # its number may be another session's now

    def resize(self, rows: int, columns: int) -> None:
        """Set the terminal's size."""
        fcntl.ioctl(self._writes, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def stop(self) -> None:
        """End the command or the connection, so that nobody waits for its output."""
        with contextlib.suppress(OSError):
            self._stop()


def _command(order: dict[str, Any], attempt: Attempt) -> _End:
    if order.get("tty"):
        ours, theirs = pty.openpty()
        try:
            process = subprocess.Popen(
                order["argv"], env=attempt.environment, cwd=attempt.directory, stdin=theirs, stdout=theirs,
                stderr=theirs, start_new_session=True, preexec_fn=_take_terminal,
            )  # fmt: skip
        except OSError:
            os.close(ours)
            raise
        finally:
            os.close(theirs)

        def end_input() -> None:
            os.write(ours, b"\x04")

        return _End(
            ours,
            ours,
            wait=lambda: _code(process),
            finish=end_input,
            stop=lambda: _end(process),
            close=lambda: os.close(ours),
        )
    process = subprocess.Popen(
        order["argv"], env=attempt.environment, cwd=attempt.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    given, said = process.stdin, process.stdout

    def close() -> None:
        given.close()
        said.close()

    return _End(
        said.fileno(),
        given.fileno(),
        wait=lambda: _code(process),
        finish=given.close,
        stop=lambda: _end(process),
        close=close,
    )


def _connection(port: int, attempt: Attempt) -> _End:
    """Connect to the task's port on loopback, or else at the task's own address."""
    try:
        opened = socket.create_connection(("127.0.0.1", port), _CONNECT_SECONDS)
    except ConnectionRefusedError:
        own = attempt.environment.get("CORRAL_HOST")
        if not own:
            raise
        opened = socket.create_connection((own, port), _CONNECT_SECONDS)
    opened.settimeout(None)
    return _End(
        opened.fileno(),
        opened.fileno(),
        wait=lambda: 0,
        finish=lambda: opened.shutdown(socket.SHUT_WR),
        stop=lambda: opened.shutdown(socket.SHUT_RDWR),
        close=opened.close,
    )


def _feed(calls: SlotCalls, session: str, end: _End) -> None:
    """Write the server's input into the session, until either ends."""
    with contextlib.suppress(OSError, Refused):
        for line in calls.input(session):
            said = json.loads(line)
            if said.get("close"):
                break
            with contextlib.suppress(OSError):  # what takes no input any more may still have output
                _pass_on(said, end)
    end.stop()


def _pass_on(said: dict[str, Any], end: _End) -> None:
    if "data" in said:
        end.write(base64.b64decode(said["data"]))
    elif said.get("eof"):
        end.finish()
    elif "resize" in said:
        end.resize(*said["resize"])


def _code(process: subprocess.Popen[bytes]) -> int:
    code = process.wait()
    return code if code >= 0 else 128 - code


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
