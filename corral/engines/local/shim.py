"""The shim: a small parent of a task that outlives the server and records the exit code atomically.

The shim is POSIX shell: 0.6 MB and under a millisecond, where a Python one costs 10 MB and 20 ms. It leads its own
session. Its protocol is three files that it may create in the attempt's folder:

* `pid`, created exclusively (`set -C`): its creator owns the attempt. A server that finds a folder without it creates
  it itself, and a shim that arrives late then gives up, so the task can never run twice.
* `outside`, empty: the task could not enter its control group. It must not run without those limits and was not
  started.
* `exit.CODE`, empty: the code is in the name, so the record exists or not, even on a full disk. If it cannot be
  created, the shim's own exit code is the command's. It uses `true`, since a failed redirection of `:` ends a POSIX
  shell with 2.

The shim first enters the folder and checks the launch file's nonce in it. So a late shim is bound to the folder for
which it was started, not to a later one of the same name.

Without control groups the shim is started as a *subreaper*, which costs 10 ms of Python before it. Processes that the
command left in any session become its children. It kills them, round by round, after the code is recorded. A subshell
reaps the dead. Processes that may not be killed (another user's) are given up after a minute.

The shim survives every signal that a stop may send to its group. A signal sent while only the shim exists would not
reach the task. So a stop is recorded before it is sent, and the child checks for the record when it can take signals
itself.
"""

from __future__ import annotations

import functools
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

NOT_OWNER = 125
"""The shim's own exit code if it did not own the attempt (or its folder is gone)."""

SHIM = r"""# FOLDER NONCE BOOT_ID NOFILE NPROC WORK_DIR CGROUP_FILES COMMAND...
cd -- "$1" 2>/dev/null && [ -e "launch.$2" ] && read -r stat </proc/self/stat || exit 125
set -C
{ echo "$3 $stat" >pid; } 2>/dev/null || exit 125
rounds=0
trap : HUP INT QUIT TERM USR1 USR2 ALRM VTALRM PROF IO PWR WINCH URG XCPU
(
    [ -e stop ] && exit 143
    ulimit -S -n "$4"
    [ -z "$5" ] || ulimit -NPROC "$5"
    for group in $7; do { echo 0 >|"$group"; } 2>/dev/null || { true >outside; exit 125; }; done
    cd -- "$6" || exit 126
    shift 7
    exec "$@"
)
code=$?
[ -e outside ] && exit 125
true >"exit.$code"
while left=; read -r left <"/proc/$$/task/$$/children"; [ "$left" ]; do
    kill -KILL $left || [ "$rounds" -lt 99 ] || break
    (:)
    [ "$((rounds += 1))" -lt 50 ] || /bin/sleep 1
done 2>/dev/null
exit "$code"
"""

SUBREAPER = r"""
import os, signal, sys
try:
    import ctypes
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    with open("/proc/self/environ", "rb") as file:
        env = dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry)
    for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.execve(sys.argv[1], sys.argv[1:], env)
except BaseException as error:
    print(f"corral: the shim could not be started: {error}", file=sys.stderr)
    os._exit(125)
"""
"""Makes this process a subreaper, which survives exec, and executes the shim.

Python changes the environment and signals when it starts, so both are restored.
"""

DEFAULTED = tuple(sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}))
"""Signals reset to their defaults for a task.

Python ignores some, a server may handle some, and a shell that starts it in the background ignores SIGINT and SIGQUIT.
"""


def install(target: Path) -> str:
    """Write the shim to `target`, replacing it atomically, and return its path."""
    temporary = target.with_suffix(f".{os.getpid()}")
    temporary.write_text(SHIM.replace("-NPROC", nproc_option()))
    os.replace(temporary, target)
    return str(target)


@functools.cache
def nproc_option() -> str:
    """Return the option of this machine's `ulimit` for a user's processes: -p in dash, -u in others."""
    asked = subprocess.run(["/bin/sh", "-c", "ulimit -u"], capture_output=True, check=False)
    return "-u" if asked.returncode == 0 else "-p"


def process_limit(wanted: int) -> str:
    """Return the process limit of a task's user: `wanted`, or the server's if lower; "" for none."""
    _, most = resource.getrlimit(resource.RLIMIT_NPROC)
    return str(min(wanted, most) if most != resource.RLIM_INFINITY else wanted) if wanted else ""


def spawn(
    argv: list[str],
    env: Mapping[str, str],
    *,
    stdout: str,
    stderr: str,
    code: str = "",
    adopts: bool = False,
) -> int:
    """Start `argv` as leader of a new session with its output appended to the two files. Return its pid.

    `stderr` equal to `stdout` gives both one open file, so that their lines keep their order. `code`, if set, is opened
    as handle 3 with the server's rights. `adopts`: start it as a subreaper.
    Raises OSError (E2BIG: arguments and environment too long; EAGAIN: no process available; ENOSPC, EROFS, …).
    """
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    actions: list[tuple[int, int, str, int, int] | tuple[int, int, int]] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, stdout, append, 0o640),
    ]
    if stderr == stdout:
        actions.append((os.POSIX_SPAWN_DUP2, 1, 2))
    else:
        actions.append((os.POSIX_SPAWN_OPEN, 2, stderr, append, 0o640))
    if code:
        actions.append((os.POSIX_SPAWN_OPEN, 3, code, os.O_RDONLY, 0))
    mask: Iterable[int] = ()
    if adopts:
        argv = [sys.executable, "-I", "-S", "-c", SUBREAPER, *argv]
        mask = signal.valid_signals()  # until Python can no longer handle any
    return os.posix_spawn(argv[0], argv, env, file_actions=actions, setsid=True, setsigmask=mask, setsigdef=DEFAULTED)
