"""Answer PyTorch's profiler, which asks a daemon every few seconds whether a trace is wanted.

An unmodified PyTorch 2 asks the datagram socket `dynolog` in $KINETO_IPC_SOCKET_DIR if KINETO_USE_DAEMON is set. Each
message has a size, a name of 32 bytes and a body: `ctxt` registers a process and gets a number, `req` gets the text of
the trace's configuration, which is empty if none is wanted. `corral profile` writes that text to the file `asked`.
"""

from __future__ import annotations

import os
import pkgutil
import shutil
import struct
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from corral.runtime import torch_recorder

if TYPE_CHECKING:
    import socket

VARIABLE = "KINETO_IPC_SOCKET_DIR"
ASKED, GIVEN = "asked", "given-"
"""The file with the wanted configuration, and the beginning of the names of files that tell which process has it."""
WHERE = "/tmp"
"""Where the folder must be, whatever $TMPDIR says: PyTorch 2.15 writes traces that are asked for nowhere else."""
_HEAD = struct.Struct("<Q32s")
_REQUEST = struct.Struct("<iiqi")
_MOST_MESSAGE = 64 * 1024
_MOST_ASKED = 4096
_RECORDED = "2000"
"""Collectives that a flight recorder remembers."""
_LEAD_SECONDS = 3.0
"""PyTorch looks at a configuration a second after it came, and ignores one whose start has passed then."""


@contextmanager
def armed(env: dict[str, str], *, apart: bool = False) -> Iterator[dict[str, str]]:
    """Answer while the block runs, in a folder that only this user can read; the command's environment for it.

    Where the command runs `apart`, in a container of its own, nothing is answered, and one sentence says so.
    """
    if apart:
        print("corral: PyTorch's traces are not offered: its container has other folders.", file=sys.stderr, flush=True)
        yield env
        return
    import socket
    import threading

    folder = ""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
        try:
            folder = tempfile.mkdtemp(prefix="corral-torch-", dir=WHERE)
            bound.bind(os.path.join(folder, "dynolog"))
        except OSError as error:
            print(f"corral: PyTorch's traces are not offered: {error.strerror}.", file=sys.stderr, flush=True)
            yield env
            return
        threading.Thread(target=serve, args=(bound, folder), daemon=True).start()
        try:
            yield {**env, **offered(folder, env)}
        finally:
            bound.shutdown(socket.SHUT_RDWR)
            shutil.rmtree(folder, ignore_errors=True)


def answer_beside(folder: str) -> None:
    """Answer until this process ends, in a folder that the command's container has at the same path. Raises OSError.

    The command may run as any user, so its whole container may use the folder. What it puts there is never followed.
    """
    import socket
    import threading

    with suppress(FileExistsError):  # this process was started again
        os.mkdir(folder)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    inside = f"/proc/self/fd/{handle}"
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    before = os.umask(0)
    try:
        if os.fstat(handle).st_mode & 0o777 != 0o777:
            os.fchmod(handle, 0o777)
        with suppress(FileNotFoundError):
            os.unlink(f"{inside}/dynolog")
        # By its own name: PyTorch ends its program when an answer comes from a socket outside the folder that it knows.
        bound.bind(os.path.join(folder, "dynolog"))
    finally:
        os.umask(before)
    threading.Thread(target=serve, args=(bound, inside), daemon=True).start()


def offered(folder: str, env: Mapping[str, str]) -> dict[str, str]:
    """The variables by which PyTorch asks in `folder` for traces and keeps its last collectives."""
    return {"KINETO_USE_DAEMON": "1", VARIABLE: folder, **recorders(folder, env)}


def recorders(folder: str, env: Mapping[str, str]) -> dict[str, str]:
    """The variables with which PyTorch records its last collectives, and gives them in `folder` when it is asked.

    NCCL's recorder is asked by a pipe, and gloo's by the server that `torch_recorder` starts. What the job's own
    environment says stays.
    """
    offered = {
        "PYTHONPATH": _with_module(folder, env.get("PYTHONPATH", "")),
        torch_recorder.VARIABLE: folder,
        "TORCH_FR_BUFFER_SIZE": _RECORDED,
        "TORCH_NCCL_TRACE_BUFFER_SIZE": _RECORDED,
        "TORCH_FR_DUMP_TEMP_FILE": os.path.join(folder, "dump-"),
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": os.path.join(folder, "dump-"),
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": os.path.join(folder, "recorder-"),
    }
    return {name: value for name, value in offered.items() if name not in env or name == "PYTHONPATH"}


def _with_module(folder: str, path: str) -> str:
    """Write `torch_recorder` as a package that PyTorch finds by its entry point; the path with it, or as it was."""
    site = os.path.join(folder, "python")
    package = os.path.join(site, "corral_recorder-1.dist-info")
    files = {
        os.path.join(site, "corral_recorder.py"): pkgutil.get_data("corral.runtime", "torch_recorder.py") or b"",
        os.path.join(package, "METADATA"): b"Metadata-Version: 2.1\nName: corral-recorder\nVersion: 1\n",
        os.path.join(package, "entry_points.txt"): b"[torch.backends]\ncorral_recorder = corral_recorder:begin\n",
    }
    try:
        os.makedirs(package)
        for name, content in files.items():
            with open(name, "wb") as file:
                file.write(content)
    except OSError as error:
        print(f"corral: gloo's flight recorder is not offered: {error.strerror}.", file=sys.stderr, flush=True)
        return path
    return f"{path}{os.pathsep}{site}" if path else site


def serve(bound: socket.socket, folder: str) -> None:
    """Answer every message until the socket is shut down."""
    while True:
        try:
            message, _, _, sender = bound.recvmsg(_MOST_MESSAGE)
        except OSError:
            return
        if not message and not sender:
            return
        reply = answer(message, folder)
        if reply and sender:
            with suppress(OSError):  # who asked has ended
                bound.sendto(reply, sender)


def answer(message: bytes, folder: str) -> bytes:
    """The reply to one message; none to what is no message of PyTorch's."""
    if len(message) < _HEAD.size:
        return b""
    _, name = _HEAD.unpack_from(message)
    kind, body = name.rstrip(b"\0"), message[_HEAD.size :]
    if kind == b"ctxt":
        return _HEAD.pack(4, kind) + struct.pack("<i", 1)
    if kind != b"req" or len(body) < _REQUEST.size:
        return b""
    pid = _REQUEST.unpack_from(body)[3]
    text = wanted(folder)
    if text:
        try:
            os.close(os.open(os.path.join(folder, f"{GIVEN}{pid}"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError:  # it has the configuration, or the folder is gone
            text = b""
    return _HEAD.pack(len(text), kind) + text


def wanted(folder: str) -> bytes:
    """The configuration that is asked for, if its time to start is still to come."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(os.path.join(folder, ASKED), flags), "rb") as file:
            text = file.read(_MOST_ASKED)
        start = int(dict(line.partition(b"=")[::2] for line in text.splitlines())[b"PROFILE_START_TIME"])
    except (OSError, ValueError, KeyError):
        return b""
    return text if start > (time.time() + _LEAD_SECONDS) * 1000 else b""
