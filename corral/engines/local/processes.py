"""Read processes from `/proc`. A process is identified by boot id, pid and start time, and found by its marker.

Pids are reused, and children may leave their parents. Nothing here keeps state.
"""

from __future__ import annotations

import functools
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from corral.runtime import process

MARKER = "CORRAL_ATTEMPT"
"""The variable with the attempt id that every process of an attempt inherits."""

FOLDER = "CORRAL_ATTEMPT_FOLDER"
"""The variable with the attempt's folder, by which an engine knows its own processes when the folder is gone."""

_PF_EXITING = 0x4


class Stat(NamedTuple):
    """The fields of `/proc/PID/stat`."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    flags: int
    start: int
    """Clock ticks from boot to the start of the process: with the pid, unique within a boot."""

    @property
    def alive(self) -> bool:
        """Whether it may still run code of its own: it is not dead, a zombie or exiting."""
        return self.present and not self.flags & _PF_EXITING

    @property
    def present(self) -> bool:
        """Whether it still holds memory, files and devices."""
        return self.state not in "ZXx"


boot_id = functools.cache(process.boot_id)
"""The id of this boot of this machine."""


def since_boot() -> float:
    """Seconds since the start of this machine, its sleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def parse_stat(text: str) -> Stat:
    """Parse a line of `/proc/PID/stat`. The name in parentheses may contain anything.

    Raises ValueError when the line is cut short.
    """
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    if len(fields) < 20:
        raise ValueError("the process record is incomplete")
    return Stat(
        pid=int(head.partition(" ")[0]),
        state=fields[0],
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        flags=int(fields[6]),
        start=int(fields[19]),
    )


def stat(pid: int) -> Stat | None:
    """Return the current state of a process, None if the pid does not exist."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return parse_stat(file.read())
    except (FileNotFoundError, ProcessLookupError):
        return None


_TRIES: Final = 500
"""Reads of an environment: it is empty for a moment while a process replaces its program (`exec`)."""


def environment(pid: int) -> dict[str, str]:
    """Return a process's initial environment; empty if it is gone, a zombie, or not readable."""
    raw = b""
    for _ in range(_TRIES):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                raw = file.read()
        except OSError:
            return {}
        if raw:
            break
        os.sched_yield()
    pairs = (entry.partition("=") for entry in os.fsdecode(raw).split("\0") if "=" in entry)
    return {name: value for name, _, value in pairs}


def marker(pid: int) -> str:
    """Return the attempt of a process, "" for none."""
    return variable(pid, MARKER)


def variable(pid: int, name: str) -> str:
    """Return a variable of a process's initial environment; "" if unset, or if the process is gone or not readable."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            raw = file.read()
    except OSError:
        return ""
    return _value_in(raw, name)


def folder_in(pid: int, folder: str) -> str:
    """Return the entry of `folder` in or below which a process runs; "" if elsewhere or not readable."""
    try:
        place = os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""
    inside = place.removeprefix(f"{folder}/")
    return "" if inside == place else inside.removesuffix(" (deleted)").partition("/")[0]


def arguments(pid: int) -> list[str]:
    """Return the arguments with which a process was started; none if it is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return os.fsdecode(file.read()).split("\0")[:-1]
    except OSError:
        return []


def marked() -> Iterator[tuple[int, str]]:
    """Yield (pid, attempt id) of every process on the machine that has a marker; one pass over `/proc`."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and (attempt := marker(int(entry.name))):
            yield int(entry.name), attempt


def doomed(pid: int) -> bool:
    """Return whether a process has a pending SIGKILL, or is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return True
    pending = (line.split()[1] for line in lines if line.startswith(("SigPnd:", "ShdPnd:")))
    return any(int(mask, 16) >> (signal.SIGKILL - 1) & 1 for mask in pending)


def everything() -> list[Stat]:
    """Return every process on the machine, zombies included; one pass over `/proc`."""
    found = (stat(int(entry.name)) for entry in os.scandir("/proc") if entry.name.isdigit())
    return [process for process in found if process]


def children() -> set[int]:
    """Return the pids of this process's children, including those that it inherited as subreaper."""
    found: set[int] = set()
    for task in os.scandir("/proc/self/task"):
        try:
            with open(f"{task.path}/children", encoding="ascii") as file:
                found.update(map(int, file.read().split()))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def first_child(pid: int) -> int:
    """Return the oldest child of a process, 0 if it has none."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            found = file.read().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(found[0]) if found else 0


def kill(pid: int, start: int, number: int) -> bool:
    """Signal exactly this process. False when it is gone; another process with its pid is left alone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        now = stat(pid)
        if now is None or now.start != start:
            return False
        signal.pidfd_send_signal(handle, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)


def kill_group(group: int, number: int) -> bool:
    """Signal every process of a group. False when the group is empty."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True


def _value_in(raw: bytes, name: str) -> str:
    needle = name.encode() + b"="
    if raw.startswith(needle):
        at = 0
    else:
        at = raw.find(b"\0" + needle) + 1
        if not at:
            return ""
    end = raw.find(b"\0", at)
    return os.fsdecode(raw[at + len(needle) : end if end >= 0 else None])
