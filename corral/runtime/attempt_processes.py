"""All processes of an attempt in a slot, and their end.

An attempt's processes have its marker in their environment. Some programs overwrite theirs: sshd does, and starts a
session of its own for each connection. So whatever shares a session with a marked process belongs to the attempt too,
and so do the children of all of these.
"""

from __future__ import annotations

import os
import signal
import time
from typing import NamedTuple

MARKER = "CORRAL_ATTEMPT"
"""The variable that all processes of an attempt inherit."""

GUARDED = r"""cd -- "$0" || exit 126
(
    trap '' HUP INT QUIT TERM USR1 USR2
    PATH=/usr/bin:/bin attempt=$CORRAL_ATTEMPT rounds=0 found=1
    unset CORRAL_ATTEMPT
    read -r self _ _ _ _ session _ </proc/self/stat
    read -r _ <&3
    while [ "$found" ] && [ "$rounds" -lt 50 ]; do
        found= new=1 rounds=$((rounds + 1))
        while [ "$new" ]; do
            new=
            for file in /proc/[0-9]*/stat; do
                read -r line <"$file" || continue
                pid=${file#/proc/} pid=${pid%/stat}
                set -- ${line##*) }
                case "Z $self $found " in *" $pid "* | "$1 "*) continue ;; esac
                case "$4 $found " in
                    "$session "* | *" $2 "*) ;;
                    *) tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "CORRAL_ATTEMPT=$attempt" || continue ;;
                esac
                kill -STOP "$pid" && found="$found $pid" new=1
            done
        done
        [ -z "$found" ] || kill -KILL $found
    done
) >/dev/null 2>&1 &
exec 3<&-
exec "$@"
"""
"""A script for `sh -c`: it runs a command in a folder, beside a guard.

When the agent's end of pipe 3 closes, the guard kills all processes of the attempt. It stops each one first: what is
stopped starts no other.
"""


class _Process(NamedTuple):
    parent: int
    session: int
    marked: bool


def processes_of(attempt: str) -> set[int]:
    """The pids of all processes of an attempt but this one."""
    seen = _processes(f"{MARKER}={attempt}".encode())
    sessions = {each.session for each in seen.values() if each.marked} - {os.getsid(0)}
    found = {pid for pid, each in seen.items() if each.marked or each.session in sessions}
    while children := {pid for pid, each in seen.items() if each.parent in found} - found:
        found |= children
    return found - {os.getpid()}


def kill_processes_of(attempt: str) -> None:
    """Send SIGKILL to all processes of an attempt; each is stopped first, as what is stopped starts no other."""
    stopped: set[int] = set()
    while new := processes_of(attempt) - stopped:
        for pid in new:
            _send(pid, signal.SIGSTOP)
        stopped |= new
    for pid in stopped:
        _send(pid, signal.SIGKILL)


def end_processes_of(attempt: str, *, seconds: float = 60) -> int:
    """Kill all processes of an attempt until none is left; how many remain after `seconds`."""
    deadline = time.monotonic() + seconds
    while left := processes_of(attempt):
        if time.monotonic() > deadline:
            return len(left)
        kill_processes_of(attempt)
        time.sleep(0.01)
    return 0


def _processes(marker: bytes) -> dict[int, _Process]:
    """The processes of this machine that have not ended."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent, _, session = file.read().rpartition(b")")[2].split()[:4]
        except OSError:
            continue
        if state not in (b"Z", b"X"):
            found[int(name)] = _Process(int(parent), int(session), _is_marked(name, marker))
    return found


def _is_marked(pid: str, marker: bytes) -> bool:
    """Whether a process inherited the marker, as far as this user may know."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return marker in file.read().split(b"\0")
    except OSError:
        return False


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass
