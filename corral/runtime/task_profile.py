"""Take the stacks of the Python processes of the task in which this program runs, with py-spy.

A client sends this text to a command in the task, as `corral exec` runs one on every engine. So it needs only the
standard library of Python 3.8. The first line of standard input is the request. Answers are lines of JSON: `process`
for one process with `text` or `problem`, `need` for a program that the client may send, and `done` at the end.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
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


if __name__ == "__main__":
    main()
