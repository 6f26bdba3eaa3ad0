"""Lanes that are forks of one process, which has imported the modules of the tests: each lane would import them itself.

That process collects the tests, as pytest does, and runs none. xdist starts a program for each lane, which hands its
standard streams to that process and lives as long as the fork that works on them.
"""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

_ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""A library that starts threads when it is imported would leave forks without them."""
_CRASHES: Final = 4
"""Lanes that may be started anew for each one, as with `-n` of xdist."""


@contextlib.contextmanager
def lanes(count: int, words: Sequence[str], address: Path, folder: Path, env: Mapping[str, str]) -> Iterator[list[str]]:
    """pytest's words for so many lanes, which are forks of a process that has collected what `words` say."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(address))
        listener.listen()
        command = [sys.executable, "-m", __name__, str(listener.fileno()), *words]
        process = subprocess.Popen(
            command, cwd=folder, env=env, pass_fds=[listener.fileno()], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
    program = shlex.join([sys.executable, "-m", __name__, str(address)])
    try:
        yield [f"--tx={count}*popen//python={program}", "--dist=load", f"--max-worker-restart={_CRASHES * count}"]
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def _serve(listener: socket.socket, words: Sequence[str]) -> int:
    """Fork a lane for each program that asks, until the standard input ends; returns in every lane too."""
    kept = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(_ONE_THREAD)
    pytest.main(["--collect-only", "-q", *words])  # what cannot be collected each lane tells itself
    for name, value in kept.items():
        os.environ.pop(name)
        if value is not None:
            os.environ[name] = value
    from tests import reserved

    assert threading.active_count() == 1, "a module of the tests starts a thread when it is imported"
    assert not reserved.reservations(), "a module of the tests reserves a port or a name when it is imported"
    while True:
        ready, _, _ = select.select([listener, 0], [], [])
        with contextlib.suppress(ChildProcessError):  # lanes that are over
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if 0 in ready:
            return 0
        asking, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _work(asking)
            return 0
        asking.close()


def _work(asking: socket.socket) -> None:
    """Be the lane of the program that asks: do what xdist writes to its standard input."""
    _, handles, _, _ = socket.recv_fds(asking, 1, 3)
    for number, handle in enumerate(handles):
        os.dup2(handle, number)
        os.close(handle)
    exec(eval(sys.stdin.readline()), {"__name__": "__main__"})


def _ask(address: str) -> int:
    """Hand the standard streams over, and wait for the end of the lane that works on them."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
        asking.connect(address)
        socket.send_fds(asking, [b"."], [0, 1, 2])
        for number in (0, 1):  # their ends are the lane's
            os.close(number)
        asking.recv(1)
    return 0


if __name__ == "__main__":
    if sys.argv[1].isdecimal():
        with socket.socket(fileno=int(sys.argv[1])) as inherited:
            sys.exit(_serve(inherited, sys.argv[2:]))
    sys.exit(_ask(sys.argv[1]))
