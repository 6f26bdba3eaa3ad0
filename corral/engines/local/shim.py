"""Why: something tiny must outlive the server, be a task's parent and leave its exit code where nothing can half-write it.

The shim is POSIX shell: 0.6 MB and under a millisecond, where a Python one costs 10 MB and 20 ms. It leads a session of
its own. Three files that it may create in the attempt's folder are the protocol:

* `pid`, created exclusively (`set -C`): whoever creates it owns the attempt. A server that finds a folder without it
  creates it itself, and a shim that arrives late then gives up, so the task can never run twice.
* `outside`, empty: the task could not enter its control group, without whose limits it must not run, and was not begun.
* `exit.CODE`, empty: the code is in the name, so the record is there or not, even on a full disk. Where it cannot be
  made, the shim's own exit code is the command's: `true`, since a failed redirection of `:` ends a POSIX shell with 2.

The folder is entered before anything else and the launch file's nonce checked inside it, so a late shim is bound to the
folder that it was started for, not to one of the same name made since.

Without control groups the shim is started as a *subreaper*, which costs 10 ms of Python before it: what the command
left in any session becomes its child, and it kills that, round by round, after the code is recorded. A subshell reaps the
dead; what may not be killed (another user's) is given up after a minute.

The shim survives every signal that a stop may send to its group. One that comes while only the shim is there would be
lost on the task: so a stop is written down before it is sent, and the child looks for it when it can take signals itself.
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
"""The shim's own exit code when the attempt was not its to run (or its folder is gone)."""

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
"""Makes this process a subreaper, which a program stays when it becomes another one, and becomes the shim. Python
changes the environment and signals as it starts, so both are put back."""

DEFAULTED = tuple(sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}))
"""What Python ignores, a server may handle, or a shell that started it in the background ignored (SIGINT, SIGQUIT): a task
finds every signal as the system has it."""


def install(target: Path) -> str:
    """Write the shim to `target` (replaced as a whole) and return its path."""
    temporary = target.with_suffix(f".{os.getpid()}")
    temporary.write_text(SHIM.replace("-NPROC", nproc_option()))
    os.replace(temporary, target)
    return str(target)


@functools.cache
def nproc_option() -> str:
    """How this machine's shell calls the limit of a user's processes: dash says -p, others -u."""
    asked = subprocess.run(["/bin/sh", "-c", "ulimit -u"], capture_output=True, check=False)
    return "-u" if asked.returncode == 0 else "-p"


def process_limit(wanted: int) -> str:
    """The limit of processes that a task's user gets: `wanted`, or less where the server has less; "" for none."""
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
    """Start `argv` as leader of a new session with its output appended to the two files; returns its pid.

    `stderr` equal to `stdout` gives one open file to both, so their lines keep the order of writing. `code` is opened as
    handle 3, with the server's rights, when there is one. `adopts`: it is a subreaper.
    Raises OSError (E2BIG: arguments and environment too long; EAGAIN: no process to be had; ENOSPC, EROFS, …).
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
        mask = signal.valid_signals()  # until Python can handle none any more
    return os.posix_spawn(argv[0], argv, env, file_actions=actions, setsid=True, setsigmask=mask, setsigdef=DEFAULTED)
