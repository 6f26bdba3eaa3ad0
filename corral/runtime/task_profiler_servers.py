"""Trace the JAX or TensorFlow processes of the task by the profiler servers that their programs opened.

A server is found among the ports on which a process listens that has loaded the library; a port that the job declares as
`profiler` is asked first. Needs Python 3.8 alone.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import tempfile
import threading
import zlib
from typing import Any

from corral.runtime.profiler_server import NoProfilerServer, ask, profile_request
from corral.runtime.task_processes import command_of, lives, python_processes, read, say, variables
from corral.runtime.xplane import BadXSpace, chrome_trace

_LIBRARIES = {"jax": b"/jaxlib/", "tensorflow": b"/tensorflow/"}
_STARTS = {"jax": "jax.profiler.start_server(port)", "tensorflow": "tf.profiler.experimental.server.start(port)"}
_DECLARED = b"CORRAL_PORT_PROFILER="
_WRITE_SECONDS = 60.0
"""Seconds that a server has to write its trace."""
_MOST_FILE = 256 * 1024 * 1024
_MOST_PORTS = 16
_PIECE = 512 * 1024
_LISTENING = b"0A"


def trace_servers(request: dict[str, Any]) -> int:
    """Trace each process with the library, all at the same time; how many were left out."""
    library = str(request["what"])
    found = [pid for pid in python_processes() if _LIBRARIES[library] in read(pid, "maps")]
    if not found:
        name = {"jax": "JAX", "tensorflow": "TensorFlow"}[library]
        say(process=0, problem=f"no process of this task has loaded {name}.")
        return 0
    most = int(request["processes"])
    threads = [threading.Thread(target=_trace, args=(pid, library, request)) for pid in found[:most]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(0, len(found) - most)


def _trace(pid: int, library: str, request: dict[str, Any]) -> None:
    """Have one process trace itself, and send its trace or why there is none."""
    folder = tempfile.mkdtemp(prefix="corral-profile-")
    try:
        path = _traced(pid, folder, float(request["seconds"]))
        if path:
            _send(pid, path, int(request["bytes"]))
        elif not lives(pid):
            say(process=pid, problem=f"process {pid} ended meanwhile.")
        else:
            say(process=pid, command=command_of(pid), problem=f"{_missing(pid, library)}")
    except (OSError, BadXSpace) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no XSpace"
        say(process=pid, problem=f"the trace of process {pid} could not be read: {why}.")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _missing(pid: int, library: str) -> str:
    if not listening(pid):
        return f"process {pid} opened no profiler server: its program has to call {_STARTS[library]}."
    return (
        f"no port of process {pid} gave a trace: its program has to call {_STARTS[library]}, and no other trace may be "
        "being taken."
    )


def _traced(pid: int, folder: str, seconds: float) -> str:
    """Ask the ports of a process one after the other; the file that its profiler server wrote, or "" ."""
    for number, port in enumerate(listening(pid)[:_MOST_PORTS]):
        session = f"port{number}"
        try:
            ask(port, profile_request(folder, session, seconds), seconds + _WRITE_SECONDS)
        except (NoProfilerServer, OSError):
            continue
        written = os.path.join(folder, session)
        names = sorted(os.listdir(written)) if os.path.isdir(written) else []
        for name in names:
            if name.endswith(".xplane.pb"):
                return os.path.join(written, name)
    return ""


def listening(pid: int) -> list[int]:
    """The ports on which a process listens, the declared one first."""
    sockets, ports = set(), set()
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
                sockets.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    except OSError:  # of another user, or ended
        return []
    for name in ("net/tcp", "net/tcp6"):
        for line in read(pid, name).splitlines()[1:]:
            words = line.split()
            if len(words) > 9 and words[3] == _LISTENING and f"socket:[{words[9].decode()}]" in sockets:
                ports.add(int(words[1].rpartition(b":")[2], 16))
    declared = {line[len(_DECLARED) :].decode() for line in variables(pid) if line.startswith(_DECLARED)}
    return sorted(ports, key=lambda port: (str(port) not in declared, port))


def _send(pid: int, path: str, most: int) -> None:
    """Send a trace as a Chrome trace, compressed, up to `most` bytes of it."""
    if os.path.getsize(path) > _MOST_FILE:
        say(
            process=pid, problem=f"the trace of process {pid} is longer than {_MOST_FILE >> 20} MiB; ask for less time."
        )
        return
    with open(path, "rb") as file:
        data = file.read()
    packed, cut, pieces = zlib.compressobj(1, wbits=31), False, []
    for piece in chrome_trace(data, most):
        cut = not piece
        pieces.append(packed.compress(piece))
    pieces.append(packed.flush())
    whole = b"".join(pieces)
    with _sending:  # pieces of two traces must not mix
        for at in range(0, len(whole), _PIECE):
            say(trace=base64.b64encode(whole[at : at + _PIECE]).decode(), of=pid)
        say(process=pid, command=command_of(pid), text="", cut=cut)


_sending = threading.Lock()
