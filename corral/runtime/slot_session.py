"""A session beside an attempt in a slot: a command, or a connection to one of the attempt's ports.

Output goes to the server in frames: one byte of kind (`o` bytes, `x` the exit code as text), four bytes of length, the
content. Input comes as lines of JSON: `{"data": BASE64}`, `{"eof": true}`, `{"resize": [ROWS, COLUMNS]}` or
`{"close": true}`.
"""

from __future__ import annotations

import base64
import contextlib
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
NOT_RUNNING = 125
"""The exit code of a session whose attempt does not run, or whose command cannot be started."""


def serve_session(calls: SlotCalls, order: dict[str, Any], attempt: Attempt | None) -> None:
    """Run a session to its end."""
    with contextlib.suppress(OSError, Refused):  # the server or its client is gone: so is the session
        try:
            if attempt is None or attempt.state()["state"] != "running":
                raise ProcessLookupError("the attempt does not run")
            end = _connection(order) if order.get("port") else _command(order, attempt)
        except OSError as error:
            text = str(error.strerror or error).encode()
            calls.send_output(order["session"], iter([frame(b"o", text + b"\n"), frame(b"x", b"%d" % NOT_RUNNING)]))
            return
        threading.Thread(target=_feed, args=(calls, order["session"], end), daemon=True).start()
        try:
            calls.send_output(order["session"], end.frames())
        finally:
            end.close()


def frame(kind: bytes, content: bytes) -> bytes:
    """One frame of output."""
    return kind + struct.pack(">I", len(content)) + content


class _End:
    """The near end of a session: what is read from it, and how to write to it."""

    def __init__(self, reads: int, writes: int, wait: Callable[[], int], close: Callable[[], None]) -> None:
        self._reads, self._writes, self._wait, self.close = reads, writes, wait, close

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
        """Close the input."""
        if self._writes != self._reads:
            os.close(self._writes)
        else:
            self.write(b"\x04")

    def resize(self, rows: int, columns: int) -> None:
        """Set the terminal's size."""
        fcntl.ioctl(self._writes, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _command(order: dict[str, Any], attempt: Attempt) -> _End:
    if order.get("tty"):
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            order["argv"], env=attempt.environment, cwd=attempt.directory, stdin=theirs, stdout=theirs, stderr=theirs,
            start_new_session=True, preexec_fn=_take_terminal,
        )  # fmt: skip
        os.close(theirs)
        return _End(ours, ours, lambda: _code(process), lambda: _end(process))
    process = subprocess.Popen(
        order["argv"], env=attempt.environment, cwd=attempt.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    return _End(
        os.dup(process.stdout.fileno()), os.dup(process.stdin.fileno()), lambda: _code(process), lambda: _end(process)
    )


def _connection(order: dict[str, Any]) -> _End:
    opened = socket.create_connection(("127.0.0.1", order["port"]), 30)
    opened.settimeout(None)
    return _End(opened.fileno(), opened.fileno(), lambda: 0, opened.close)


def _feed(calls: SlotCalls, session: str, end: _End) -> None:
    """Write the server's input into the session, until either ends."""
    with contextlib.suppress(OSError, Refused):
        for line in calls.input(session):
            said = json.loads(line)
            if "data" in said:
                end.write(base64.b64decode(said["data"]))
            elif said.get("eof"):
                end.finish()
            elif "resize" in said:
                end.resize(*said["resize"])
            elif said.get("close"):
                break
    end.close()


def _code(process: subprocess.Popen[bytes]) -> int:
    code = process.wait()
    return code if code >= 0 else 128 - code


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
