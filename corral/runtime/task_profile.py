"""Take a profile of the task in which this program runs: stacks of its Python processes with py-spy, or traces.

A client sends this text, with that of the modules that it imports, to a command in the task, as `corral exec` runs one on
every engine. So it needs only the standard library of Python 3.8. The first line of standard input is the request. Answers
are lines of JSON: `process` for one process with `text` or `problem`, `trace` for pieces of a file before it, `need` for a
program that the client may send, and `done` at the end.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import sys
import threading
import time
import zlib
from typing import Any

from corral.runtime.task_memory import watch_memory
from corral.runtime.task_processes import (
    ancestors,
    command_of,
    lives,
    python_processes,
    read,
    say,
    task_processes,
    variables,
)
from corral.runtime.task_profiler_servers import trace_servers
from corral.runtime.task_stacks import find_program, look_at_all, looked
from corral.runtime.task_system import watch_system


def main() -> None:
    """Answer the one request on standard input."""
    request = json.loads(sys.stdin.buffer.readline(64 * 1024))
    os.nice(5)
    if request["what"] == "torch":
        trace_all(request)
        say(done=True, left_out=0)
        return
    if request["what"] in ("jax", "tensorflow"):
        say(done=True, left_out=trace_servers(request))
        return
    if request["what"] == "hang":
        look_twice(request)
        return
    if request["what"] == "memory":
        watch_memory(request)
        return
    if request["what"] == "system":
        watch_system(request)
        return
    found = python_processes()
    most = int(request["processes"])
    if found:
        program = find_program()
        if program:
            look_at_all(program, found[:most], request)
    say(done=True, left_out=max(0, len(found) - most))


# -- a gang that is silent: two looks at each process, and what its flight recorder has

_BETWEEN_PIECES = 1024 * 1024
_RECORDER = b"CORRAL_FLIGHT_RECORDER="
_MOST_DUMP = 16 * 1024 * 1024
_DUMP_SECONDS = 5.0
"""Seconds that a server of a flight recorder has to answer."""
_NCCL_SECONDS = 10.0
"""Seconds that NCCL's recorders have to write their dumps."""


def look_twice(request: dict[str, Any]) -> None:
    """Look at each process of the task twice, `seconds` apart: its state, its processor time, its files and its stacks."""
    found = python_processes()
    most = int(request["processes"])
    pids = found[:most] or sorted(task_processes() - set(ancestors()))[:most]
    program = find_program() if found else ""
    first = _look_at_each(program, pids, request)
    time.sleep(float(request["seconds"]))
    second = _look_at_each(program, pids, request)
    for pid in pids:
        looks = [each for each in (first.get(pid), second.get(pid)) if each is not None]
        gone = {} if len(looks) == 2 else {"problem": f"process {pid} ended meanwhile."}
        say(process=pid, command=command_of(pid), looks=looks, **gone)
    send_recorders(found[:most], int(request["recorder_bytes"]))
    say(done=True, left_out=max(0, len(found) - most))


def _look_at_each(program: str, pids: list[int], request: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """One look at each process that is still there, all at the same time."""
    looks: dict[int, dict[str, Any]] = {}

    def look(pid: int) -> None:
        fields = read(pid, "stat").rpartition(b")")[2].split()
        if len(fields) < 15 or fields[0] in (b"Z", b"X"):
            return
        ticks = sum(int(each) for each in fields[11:15])
        found: dict[str, Any] = {
            "at": time.monotonic(),
            "state": fields[0].decode(),
            "cpu": ticks / os.sysconf("SC_CLK_TCK"),
            "io": _transferred(pid),
        }
        if program:
            try:
                found.update(looked(program, pid, {**request, "what": "stacks"}))
            except OSError as error:
                found["problem"] = f"py-spy could not be run: {error.strerror}."
        looks[pid] = found

    threads = [threading.Thread(target=look, args=(pid,)) for pid in pids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return looks


def _transferred(pid: int) -> int:
    """Bytes that a process has read and written, by files and pipes."""
    lines = dict(line.partition(b": ")[::2] for line in read(pid, "io").splitlines())
    return int(lines.get(b"rchar", b"0")) + int(lines.get(b"wchar", b"0"))


def send_recorders(pids: list[int], most: int) -> None:
    """Have the flight recorders of PyTorch's processes written, and send them; at most `most` bytes in all."""
    folders: dict[bytes, list[int]] = {}
    for pid in pids:
        for line in variables(pid):
            if line.startswith(_RECORDER):
                folders.setdefault(line[len(_RECORDER) :], []).append(pid)
    for folder, those in sorted(folders.items()):
        path = os.fsdecode(folder)
        try:
            _ask_servers(path, pids)
            _ask_recorders(path)
            names = sorted(name for name in os.listdir(path) if name.startswith("dump"))
        except OSError:
            continue
        for name in names:
            most -= _send_file(os.path.join(path, name), _with_process(name, those), most)


def _with_process(name: str, pids: list[int]) -> str:
    """The name of a dump with its process: NCCL's recorder names its file by the rank, `dump-3`."""
    rank = name[len("dump-") :]
    if not name.startswith("dump-") or not rank.isdecimal():
        return name
    named = [pid for pid in pids if b"RANK=" + rank.encode() in variables(pid)] or pids
    first = [pid for pid in named if _parent(pid) not in named]  # a data loader's processes are its children
    return f"{name}.{first[0]}.pickle" if len(first) == 1 else name


def _parent(pid: int) -> int:
    fields = read(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def _ask_servers(folder: str, pids: list[int]) -> None:
    """Write what PyTorch's own servers give of their recorders, as `dump.PID.json`; a stopped process gives nothing."""
    import http.client
    import socket

    class Connection(http.client.HTTPConnection):
        def connect(self) -> None:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(_DUMP_SECONDS)
            self.sock.connect(os.path.join(folder, f"recorder-{pid}.sock"))

    for pid in pids:
        connection = Connection("localhost")
        try:
            connection.request("POST", "/handler/fr_trace_json", body=b"")
            answer = connection.getresponse()
            text = answer.read(_MOST_DUMP + 1)
        except (OSError, http.client.HTTPException):
            continue
        finally:
            connection.close()
        if answer.status == 200 and len(text) <= _MOST_DUMP:
            with open(os.path.join(folder, f"dump.{pid}.json"), "wb") as file:
                file.write(text)


def _ask_recorders(folder: str) -> None:
    """Write to the pipes that NCCL's recorders read, and wait until each has written its file anew.

    A recorder looks at its pipe every second. Its first dump loads modules of PyTorch, for seconds of processor time,
    which the next look would take for work of the program.
    """
    wanted: dict[str, int] = {}
    for name in os.listdir(folder):
        if name.startswith("recorder-") and name.endswith(".pipe"):
            dump = os.path.join(folder, "dump-" + name[len("recorder-") : -len(".pipe")])
            before = _written(dump)
            with contextlib.suppress(OSError):  # nobody reads
                handle = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_NONBLOCK)
                try:
                    os.write(handle, b"1")
                finally:
                    os.close(handle)
                wanted[dump] = before
    until, known = time.monotonic() + _NCCL_SECONDS, dict(wanted)
    while wanted and time.monotonic() < until:
        now = {dump: _written(dump) for dump in wanted}
        if all(now[dump] > before for dump, before in wanted.items()) and now == known:
            return
        known = now
        time.sleep(0.5)


def _written(path: str) -> int:
    """When a file was last written, in nanoseconds; 0 where there is none, or an empty one."""
    try:
        found = os.stat(path)
    except OSError:
        return 0
    return found.st_mtime_ns if found.st_size else 0


def _send_file(path: str, name: str, most: int) -> int:
    """Send a file in pieces if it is no longer than `most`; the bytes that were sent."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
            data = file.read(most + 1)
    except OSError:
        return 0
    if len(data) > most:
        say(file=name, cut=True, data="")
        return 0
    for at in range(0, len(data), _BETWEEN_PIECES):
        say(file=name, data=base64.b64encode(data[at : at + _BETWEEN_PIECES]).decode())
    return len(data)


# -- PyTorch's traces: `corral.runtime.torch_daemon` answers PyTorch in the folders that its processes know

_FOLDER = b"KINETO_IPC_SOCKET_DIR="
_NOT_OFFERED = "its job does not offer PyTorch's traces: set `profile: true` in the job file, and start it again."
_POLL_SECONDS = 9.0
"""PyTorch asks every five seconds whether a trace is wanted, and needs three seconds to begin one."""
_WRITE_SECONDS = 60.0
"""Seconds that PyTorch has to write its trace."""
_PIECE = 1024 * 1024
_BETWEEN, _CLOSED = b"\n  },\n", b"\n  }\n  ]}\n"
"""What stands between two events of a trace, and what ends it where it is cut."""
_END = b'"traceName"'
"""What the last lines of a complete trace contain."""


def trace_all(request: dict[str, Any]) -> None:
    """Have each PyTorch process of the task write a trace, from the same moment on, and send the traces."""
    folders = {
        line[len(_FOLDER) :] for pid in python_processes() for line in variables(pid) if line.startswith(_FOLDER)
    }
    if not folders:
        say(process=0, problem=_NOT_OFFERED)
    for folder in sorted(folders)[: int(request["processes"])]:
        try:
            _trace_in(os.fsdecode(folder), request)
        except OSError as error:
            say(process=0, problem=f"the trace could not be taken: {error.strerror}.")


def _trace_in(folder: str, request: dict[str, Any]) -> None:
    """Ask for traces in a folder of one runtime, and send what its processes write."""
    now, seconds = time.time(), float(request["seconds"])
    start = float(request["start"])
    if not now + _POLL_SECONDS <= start <= now + 5 * _POLL_SECONDS:  # another clock than the client's
        start = now + _POLL_SECONDS + 1
    base, asked = os.path.join(folder, "trace.json"), os.path.join(folder, "asked")
    if not _begin(asked, start + seconds + _WRITE_SECONDS):
        say(process=0, problem="another profile of this task is being taken; try again in a minute.")
        return
    try:
        with open(f"{asked}.new", "w") as file:
            file.write(
                f"PROFILE_START_TIME={round(start * 1000)}\nACTIVITIES_LOG_FILE={base}\n"
                f"ACTIVITIES_DURATION_MSECS={round(seconds * 1000)}\nACTIVITIES_WARMUP_PERIOD_SECS=0\n"
            )
        os.rename(f"{asked}.new", asked)
        time.sleep(max(0.0, start - time.time()))
        given = [int(name[6:]) for name in os.listdir(folder) if name.startswith("given-") and name[6:].isdigit()]
        if not given:
            say(
                process=0,
                problem="no PyTorch asked for a trace: it is not imported yet, or its process hangs in a call.",
            )
        for number, pid in enumerate(sorted(given)):
            path = os.path.join(folder, f"trace_{pid}.json")
            say(process=pid, command=command_of(pid), **_traced(pid, path, start + seconds + _WRITE_SECONDS, request))
            if number + 1 >= int(request["processes"]):
                break
    finally:
        for name in os.listdir(folder):
            if name.startswith(("asked", "given-", "trace")):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(folder, name))


def _begin(asked: str, until: float) -> bool:
    """Whether no other profile is being taken. A profiler that was killed leaves a mark that expires."""
    mark = f"{asked}.until"
    try:
        with open(mark) as file:
            if time.time() < float(file.read(64) or "0"):
                return False
        os.unlink(mark)
    except (OSError, ValueError):
        pass
    try:
        with open(mark, "x") as file:
            file.write(str(until))
    except FileExistsError:
        return False
    return True


def _traced(pid: int, path: str, deadline: float, request: dict[str, Any]) -> dict[str, Any]:
    """Wait for the trace of a process and send it in pieces; what else there is to say of it."""
    while not _complete(path):
        if not lives(pid):
            return {"problem": f"process {pid} ended meanwhile."}
        if time.time() > deadline:
            return {"problem": f"process {pid} did not write its trace within {_WRITE_SECONDS:.0f} s."}
        time.sleep(0.1)
    return {"text": "", "cut": _send_trace(pid, path, int(request["bytes"]))}


def _complete(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 4096))
            end = file.read()
    except OSError:
        return False
    return _END in end and end.rstrip().endswith(b"}")


def _send_trace(pid: int, path: str, most: int) -> bool:
    """Send a trace compressed, up to `most` bytes of it; whether it was cut after an event."""
    packed = zlib.compressobj(1, wbits=31)
    with open(path, "rb") as file:
        left = most
        while left > 0:
            piece = file.read(min(_PIECE, left))
            if not piece:
                break
            left -= len(piece)
            end = piece.rfind(_BETWEEN) if not left and os.fstat(file.fileno()).st_size > most else -1
            if end >= 0:  # the last piece of a trace that is cut
                piece = piece[:end] + _CLOSED
            say(trace=base64.b64encode(packed.compress(piece)).decode(), of=pid)
        cut = bool(file.read(1))
    say(trace=base64.b64encode(packed.flush()).decode(), of=pid)
    return cut
