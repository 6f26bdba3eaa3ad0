"""The processes of the task in which this program runs, and how it answers. Needs Python 3.8 alone."""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "corral-profile"
"""A word of this program's command line, by which it knows itself among the processes of a task."""
_MARKER = "CORRAL_ATTEMPT"
_OWN_PROGRAMS = (b"runtime.pyz", MARK.encode(), b"py-spy")
_MOST_COMMAND = 300
_ENDED = (b"Z", b"X")
"""The kernel's letters for processes that have ended."""


def say(**answer: Any) -> None:
    """Write one answer."""
    line = json.dumps(answer) + "\n"
    with _writing:
        sys.stdout.write(line)
        sys.stdout.flush()


_writing = threading.Lock()


def python_processes() -> list[int]:
    """The processes of this task that run Python, oldest first; those of the platform are left out."""
    mine = set(ancestors())
    return [pid for pid in sorted(task_processes()) if pid not in mine and _runs_python(pid)]


def ancestors() -> Iterator[int]:
    """This process and those above it."""
    pid = os.getpid()
    while pid > 1:
        yield pid
        pid = parent(pid)


def task_processes() -> set[int]:
    """The task's processes: those with its marker and their children, or all of the container."""
    parents = {int(name): parent(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    attempt = os.environ.get(_MARKER, "")
    if not attempt:
        here = _mounts("self")
        return {pid for pid in parents if _mounts(pid) == here}
    found = {pid for pid in parents if f"{_MARKER}={attempt}".encode() in read(pid, "environ").split(b"\0")}
    while True:
        children = {pid for pid, above in parents.items() if above in found} - found
        if not children:
            return found
        found |= children


def parent(pid: int) -> int:
    """The parent of a process; 0 once it has ended, and of a container's first process."""
    fields = read(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 and fields[0] not in _ENDED else 0


def lives(pid: int) -> bool:
    """Whether a process has not ended."""
    fields = read(pid, "stat").rpartition(b")")[2].split()
    return bool(fields) and fields[0] not in _ENDED


def _mounts(pid: int | str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except OSError:
        return ""


def read(pid: int, name: str) -> bytes:
    """A file of a process below /proc, up to a bound; empty where it cannot be read."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read(1024 * 1024)
    except OSError:
        return b""


def _runs_python(pid: int) -> bool:
    """Whether a process runs a Python program that is not the platform's own."""
    words = read(pid, "cmdline").split(b"\0")
    if any(own in word for word in words for own in _OWN_PROGRAMS):
        return False
    try:
        program = os.readlink(f"/proc/{pid}/exe")
    except OSError:  # of another user
        program = words[0].decode("utf-8", "replace")
    return os.path.basename(program).startswith("python") or b"/libpython3" in read(pid, "maps")


def command_of(pid: int) -> str:
    """The command line of a process, for people."""
    return read(pid, "cmdline").replace(b"\0", b" ").decode("utf-8", "replace").strip()[:_MOST_COMMAND]


def variables(pid: int) -> list[bytes]:
    """The environment of a process, as NAME=VALUE."""
    return read(pid, "environ").split(b"\0")
