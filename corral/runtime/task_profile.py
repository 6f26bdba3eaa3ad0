"""Take a profile of the task in which this program runs: stacks of its Python processes with py-spy, or PyTorch's traces.

A client sends this text to a command in the task, as `corral exec` runs one on every engine. So it needs only the
standard library of Python 3.8. The first line of standard input is the request. Answers are lines of JSON: `process`
for one process with `text` or `problem`, `trace` for pieces of a file before it, `need` for a program that the client
may send, and `done` at the end.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "corral-profile"
"""A word of this program's command line, by which it knows itself among the processes of a task."""
_MARKER = "CORRAL_ATTEMPT"
_OWN_PROGRAMS = (b"runtime.pyz", MARK.encode(), b"py-spy")
_ANSWER_SECONDS = 20.0
"""Seconds that py-spy has beside the duration itself."""
_MOST_PROGRAM = 64 * 1024**2
_MOST_COMMAND = 300
_NO_PTRACE = (
    "the kernel lets nobody read process {pid} (no ptrace): allow SYS_PTRACE in its container, or set "
    "kernel.yama.ptrace_scope to 0 on its node."
)


def main() -> None:
    """Answer the one request on standard input."""
    request = json.loads(sys.stdin.buffer.readline(64 * 1024))
    os.nice(5)
    if request["what"] == "torch":
        trace_all(request)
        say(done=True, left_out=0)
        return
    if request["what"] == "hang":
        look_twice(request)
        return
    found = python_processes()
    most = int(request["processes"])
    if found:
        program = find_program()
        if program:
            look_at_all(program, found[:most], request)
    say(done=True, left_out=max(0, len(found) - most))


def say(**answer: Any) -> None:
    """Write one answer."""
    line = json.dumps(answer) + "\n"
    with _writing:
        sys.stdout.write(line)
        sys.stdout.flush()


_writing = threading.Lock()


def python_processes() -> list[int]:
    """The processes of this task that run Python, oldest first; those of the platform are left out."""
    mine = set(_ancestors())
    return [pid for pid in sorted(_task_processes()) if pid not in mine and _runs_python(pid)]


def _ancestors() -> Iterator[int]:
    pid = os.getpid()
    while pid > 1:
        yield pid
        pid = _parent(pid)


def _task_processes() -> set[int]:
    """The task's processes: those with its marker and their children, or all of the container."""
    parents = {int(name): _parent(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    attempt = os.environ.get(_MARKER, "")
    if not attempt:
        here = _mounts("self")
        return {pid for pid in parents if _mounts(pid) == here}
    found = {pid for pid in parents if f"{_MARKER}={attempt}".encode() in _read(pid, "environ").split(b"\0")}
    while True:
        children = {pid for pid, parent in parents.items() if parent in found} - found
        if not children:
            return found
        found |= children


def _parent(pid: int) -> int:
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 and fields[0] not in (b"Z", b"X") else 0


def _mounts(pid: int | str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except OSError:
        return ""


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read(1024 * 1024)
    except OSError:
        return b""


def _runs_python(pid: int) -> bool:
    """Whether a process runs a Python program that is not the platform's own."""
    words = _read(pid, "cmdline").split(b"\0")
    if any(own in word for word in words for own in _OWN_PROGRAMS):
        return False
    try:
        program = os.readlink(f"/proc/{pid}/exe")
    except OSError:  # of another user
        program = words[0].decode("utf-8", "replace")
    return os.path.basename(program).startswith("python") or b"/libpython3" in _read(pid, "maps")


def command_of(pid: int) -> str:
    """The command line of a process, for people."""
    return _read(pid, "cmdline").replace(b"\0", b" ").decode("utf-8", "replace").strip()[:_MOST_COMMAND]


def find_program() -> str:
    """The path of py-spy: the task's own, or one that the client sends; "" if there is none."""
    found = shutil.which("py-spy")
    if found:
        return found
    say(need="py-spy", system=platform.system(), machine=platform.machine())
    size = int(sys.stdin.buffer.readline(32) or b"0")
    if not 0 < size <= _MOST_PROGRAM:
        return ""
    content = sys.stdin.buffer.read(size)
    if len(content) < size:
        return ""
    handle = os.memfd_create("py-spy", 0)
    with open(handle, "wb", closefd=False) as file:
        file.write(content)
    read_only = os.open(f"/proc/self/fd/{handle}", os.O_RDONLY)
    os.close(handle)  # a program that is open for writing cannot be run
    return f"/proc/{os.getpid()}/fd/{read_only}"


def look_at_all(program: str, pids: list[int], request: dict[str, Any]) -> None:
    """Look at all processes at the same time."""
    threads = [threading.Thread(target=look_at, args=(program, pid, request)) for pid in pids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def look_at(program: str, pid: int, request: dict[str, Any]) -> None:
    """Answer for one process."""
    answer = {"process": pid, "command": command_of(pid)}
    try:
        answer.update(_looked(program, pid, request))
    except OSError as error:
        answer["problem"] = f"py-spy could not be run: {error.strerror}."
    if "text" not in answer and not _parent(pid):
        answer["problem"] = f"process {pid} ended meanwhile."
    say(**answer)


def _looked(program: str, pid: int, request: dict[str, Any]) -> dict[str, Any]:
    """`text` of py-spy, or the `problem` with the process. py-spy does not stop the process to read it."""
    owner = os.stat(f"/proc/{pid}").st_uid
    if os.geteuid() not in (0, owner):
        return {"problem": f"process {pid} belongs to another user."}
    output, told = os.memfd_create("output"), os.memfd_create("told")
    try:
        words, seconds = [program, "dump", "--json"], 0.0
        if request["what"] == "python":
            seconds = float(request["seconds"])
            words = [program, "record", "--idle", "--threads", "--format", "raw", "--rate", str(int(request["rate"]))]
            words += ["--duration", str(max(1, round(seconds))), "--output", f"/proc/{os.getpid()}/fd/{output}"]
        words += ["--nonblocking", "--pid", str(pid)]
        problem = _run(words, told if seconds else output, told, pid, seconds + _ANSWER_SECONDS)
        return {"problem": problem} if problem else _bounded(output, int(request["bytes"]))
    finally:
        os.close(output)
        os.close(told)


def _run(words: list[str], output: int, told: int, pid: int, seconds: float) -> str:
    """Run py-spy within `seconds`; why it failed, "" if it did not. What moves while it is read is read again."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=told, timeout=deadline - time.monotonic()
            )
        except subprocess.TimeoutExpired:
            return f"process {pid} did not answer py-spy within {seconds:.0f} s."
        if done.returncode == 0:
            return ""
        reason = _text(told, 4096)
        if "ermission denied" in reason or "not permitted" in reason:
            return _NO_PTRACE.format(pid=pid)
        if words[1] != "dump" or time.monotonic() + 1 > deadline or not _parent(pid):
            last = [line for line in reason.splitlines() if line.strip()][-1:]
            why = "".join(last).strip()[:200].rstrip(".") or "no reason"
            return f"py-spy cannot read process {pid}: {why}."
        for handle in {output, told}:
            os.truncate(handle, 0)
            os.lseek(handle, 0, os.SEEK_SET)
        time.sleep(0.2)


def _bounded(handle: int, most: int) -> dict[str, Any]:
    """The text of a file up to a bound, at a line's end."""
    text = _text(handle, most + 1)
    if len(text) <= most:
        return {"text": text}
    return {"text": text[: text.rfind("\n", 0, most) + 1], "cut": True}


def _text(handle: int, most: int) -> str:
    return os.pread(handle, most, 0).decode("utf-8", "replace")


# -- a gang that is silent: two looks at each process, and what its flight recorder has

_BETWEEN_PIECES = 1024 * 1024
_RECORDER = b"CORRAL_FLIGHT_RECORDER="
_MOST_DUMP = 16 * 1024 * 1024
_DUMP_SECONDS = 5.0
"""Seconds that a flight recorder has to write its dump."""


def look_twice(request: dict[str, Any]) -> None:
    """Look at each process of the task twice, `seconds` apart: its state, its processor time, its files and its stacks."""
    found = python_processes()
    most = int(request["processes"])
    pids = found[:most] or sorted(_task_processes() - set(_ancestors()))[:most]
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
        fields = _read(pid, "stat").rpartition(b")")[2].split()
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
                found.update(_looked(program, pid, {**request, "what": "stacks"}))
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
    lines = dict(line.partition(b": ")[::2] for line in _read(pid, "io").splitlines())
    return int(lines.get(b"rchar", b"0")) + int(lines.get(b"wchar", b"0"))


def send_recorders(pids: list[int], most: int) -> None:
    """Have the flight recorders of PyTorch's processes written, and send them; at most `most` bytes in all."""
    folders = {line[len(_RECORDER) :] for pid in pids for line in _lines(pid) if line.startswith(_RECORDER)}
    for folder in sorted(folders):
        path = os.fsdecode(folder)
        try:
            _ask_servers(path, pids)
            _ask_recorders(path)
            names = sorted(name for name in os.listdir(path) if name.startswith("dump"))
        except OSError:
            continue
        for name in names:
            most -= _send_file(os.path.join(path, name), name, most)


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
    """Write to the pipes that NCCL's recorders read, and wait for their files to stay as they are."""
    pipes = [name for name in os.listdir(folder) if name.endswith(".pipe")]
    for name in pipes:
        with contextlib.suppress(OSError):  # nobody reads
            handle = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_NONBLOCK)
            os.write(handle, b"1")
            os.close(handle)
    until, before = time.monotonic() + _DUMP_SECONDS, -1
    while pipes and time.monotonic() < until:
        size = sum(entry.stat().st_size for entry in os.scandir(folder) if entry.name.startswith("dump"))
        if size == before > 0:
            return
        before = size
        time.sleep(0.5)


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
    folders = {line[len(_FOLDER) :] for pid in python_processes() for line in _lines(pid) if line.startswith(_FOLDER)}
    if not folders:
        say(process=0, problem=_NOT_OFFERED)
    for folder in sorted(folders)[: int(request["processes"])]:
        try:
            _trace_in(os.fsdecode(folder), request)
        except OSError as error:
            say(process=0, problem=f"the trace could not be taken: {error.strerror}.")


def _lines(pid: int) -> list[bytes]:
    return _read(pid, "environ").split(b"\0")


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
        if not _parent(pid):
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


if __name__ == "__main__":
    main()
