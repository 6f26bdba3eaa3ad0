"""The task's end of a channel of SSH: a command with its three streams apart, or a connection to a port of the task.

The server sends this program over the input of a command in the task (`corral.api.ssh.task_program`), so a task needs
nothing but Python 3.7. Input and output are frames: one byte of kind, four bytes of length, the content.

Inwards: `i` input, `e` its end, `s` the name of a signal. Outwards: `c` connected, `f` why it failed, `o` output, `r`
errors, `z` the end of a connection's output, `a` how many bytes of input were taken, `x` the exit code as text.
"""

from __future__ import annotations

import os
import queue
import signal
import socket
import struct
import subprocess
import threading
from typing import Any

_PIECE = 64 * 1024
_LONGEST = 1024 * 1024
_HANGUP_SECONDS = 3.0
_writing = threading.Lock()


def main(order: dict[str, Any]) -> None:
    """Serve one channel: `order` has the `command` with its `env`, or the `port`."""
    if "port" in order:
        _connect(int(order["port"]))
    else:
        _command(order["command"], order.get("env") or {})


def say(kind: bytes, content: bytes = b"") -> None:
    """Write one frame."""
    data = kind + struct.pack(">I", len(content)) + content
    with _writing:
        while data:
            data = data[os.write(1, data) :]


def read_exactly(size: int) -> bytes:
    """Read so many bytes of input.

    Raises EOFError.
    """
    pieces = []
    while size:
        piece = os.read(0, min(size, _PIECE))
        if not piece:
            raise EOFError
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _next_frame() -> tuple[bytes, bytes]:
    head = read_exactly(5)
    size = struct.unpack(">I", head[1:])[0]
    if size > _LONGEST:
        raise EOFError
    return head[:1], read_exactly(size)


def _command(words: list[str], env: dict[str, str]) -> None:
    try:
        process = subprocess.Popen(
            words, env={**os.environ, **env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, bufsize=0,
        )  # fmt: skip
    except OSError as error:
        say(b"r", (f"corral: {words[0]} cannot be started: {error.strerror}\n").encode())
        say(b"x", b"127")
        return
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    waiting: queue.Queue[bytes | None] = queue.Queue()
    threading.Thread(target=_serve_input, args=(process, waiting), daemon=True).start()
    threading.Thread(
        target=_write_all, args=(waiting, process.stdin.fileno(), process.stdin.close), daemon=True
    ).start()
    readers = [
        threading.Thread(target=_copy, args=(process.stdout.fileno(), b"o"), daemon=True),
        threading.Thread(target=_copy, args=(process.stderr.fileno(), b"r"), daemon=True),
    ]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    code = process.wait()
    say(b"x", b"%d" % (code if code >= 0 else 128 - code))


def _serve_input(process: subprocess.Popen[bytes], waiting: queue.Queue[bytes | None]) -> None:
    """Take frames until the server has gone, then hang up on the command."""
    try:
        while True:
            kind, content = _next_frame()
            if kind == b"i":
                waiting.put(content)
            elif kind == b"e":
                waiting.put(None)
            elif kind == b"s":
                number = getattr(signal, "SIG" + content.decode("ascii", "replace"), None)
                if isinstance(number, signal.Signals):
                    _signal(process, number)
    except (EOFError, OSError):
        _signal(process, signal.SIGHUP)
        try:
            process.wait(_HANGUP_SECONDS)
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)
        os._exit(0)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _write_all(waiting: queue.Queue[bytes | None], handle: int, finish: Any) -> None:
    """Write the input that was taken; what a closed pipe does not take is dropped, as by a shell's pipe."""
    broken = False
    while True:
        data = waiting.get()
        if data is None:
            break
        size = len(data)
        try:
            while data and not broken:
                data = data[os.write(handle, data) :]
        except OSError:
            broken = True
        say(b"a", b"%d" % size)
    try:
        finish()
    except OSError:
        return


def _copy(handle: int, kind: bytes) -> None:
    try:
        while True:
            data = os.read(handle, _PIECE)
            if not data:
                return
            say(kind, data)
    except OSError:
        os._exit(0)


def _connect(port: int) -> None:
    try:
        reached = _reached(port)
    except OSError as error:
        say(b"f", str(error.strerror or error).encode())
        return
    say(b"c")
    waiting: queue.Queue[bytes | None] = queue.Queue()

    def finish() -> None:
        reached.shutdown(socket.SHUT_WR)

    threading.Thread(target=_write_all, args=(waiting, reached.fileno(), finish), daemon=True).start()

    def copy() -> None:
        _copy(reached.fileno(), b"o")
        say(b"z")

    threading.Thread(target=copy, daemon=True).start()
    try:
        while True:
            kind, content = _next_frame()
            if kind == b"i":
                waiting.put(content)
            elif kind == b"e":
                waiting.put(None)
    except (EOFError, OSError):
        os._exit(0)


def _reached(port: int) -> socket.socket:
    """Connect to a port of this task's loopback, of whichever version of IP."""
    try:
        reached = socket.create_connection(("127.0.0.1", port), 30)
    except OSError:
        try:
            reached = socket.create_connection(("::1", port), 30)
        except OSError:
            reached = socket.create_connection(("127.0.0.1", port), 30)  # its error is the one that people know
    reached.settimeout(None)
    return reached
