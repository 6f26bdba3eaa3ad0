"""The stacks of a task's Python processes, with py-spy: found in the task, or sent to it and run from memory."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from typing import Any

from corral.runtime.task_processes import command_of, lives, say

_ANSWER_SECONDS = 20.0
"""Seconds that py-spy has beside the duration itself."""
_MOST_PROGRAM = 64 * 1024**2
_NO_PTRACE = (
    "the kernel lets nobody read process {pid} (no ptrace): allow SYS_PTRACE in its container, or set "
    "kernel.yama.ptrace_scope to 0 on its node."
)


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
        answer.update(looked(program, pid, request))
    except OSError as error:
        answer["problem"] = f"py-spy could not be run: {error.strerror}."
    if "text" not in answer and not lives(pid):
        answer["problem"] = f"process {pid} ended meanwhile."
    say(**answer)


def looked(program: str, pid: int, request: dict[str, Any]) -> dict[str, Any]:
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
        reason = text_of(told, 4096)
        if _is_forbidden(reason) or words[1] != "dump" or time.monotonic() + 1 > deadline or not lives(pid):
            return why_not(pid, reason)
        for handle in {output, told}:
            os.truncate(handle, 0)
            os.lseek(handle, 0, os.SEEK_SET)
        time.sleep(0.2)


def _is_forbidden(reason: str) -> bool:
    return "ermission denied" in reason or "not permitted" in reason


def why_not(pid: int, reason: str) -> str:
    """Why py-spy could not read a process, from what it printed, in one sentence."""
    if _is_forbidden(reason):
        return _NO_PTRACE.format(pid=pid)
    last = [line for line in reason.splitlines() if line.strip()][-1:]
    why = "".join(last).strip()[:200].rstrip(".") or "no reason"
    return f"py-spy cannot read process {pid}: {why}."


def _bounded(handle: int, most: int) -> dict[str, Any]:
    """The text of a file up to a bound, at a line's end."""
    text = text_of(handle, most + 1)
    if len(text) <= most:
        return {"text": text}
    return {"text": text[: text.rfind("\n", 0, most) + 1], "cut": True}


def text_of(handle: int, most: int) -> str:
    """What a file in memory has, up to a bound."""
    return os.pread(handle, most, 0).decode("utf-8", "replace")
