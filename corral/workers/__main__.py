"""`python -m corral.workers`: the main program of a worker process; it ends when its standard input closes."""

from __future__ import annotations

import os
import pickle
import resource
import sys
from typing import Any, BinaryIO, Final

from corral.workers.pool import LENGTH, LimitExceeded, Limits

_POLITE: Final = 15
"""Niceness that a worker adds to its own, so that the server's processes run first."""


def main(calls: BinaryIO, answers: BinaryIO) -> None:
    """Run calls one by one until the input ends."""
    while (head := calls.read(LENGTH)) and len(head) == LENGTH:
        function, arguments, limits = pickle.loads(calls.read(int.from_bytes(head, "big")))  # noqa: S301 (our parent's)
        content = _content(*_outcome(function, arguments, limits))
        answers.write(len(content).to_bytes(LENGTH, "big") + content)
        answers.flush()


def _outcome(function: Any, arguments: tuple[Any, ...], limits: Limits) -> tuple[bool, Any]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory, resource.RLIM_INFINITY))
    seconds = int(used.ru_utime + used.ru_stime) + 1 + limits.cpu_seconds
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    try:
        return True, function(*arguments)
    except MemoryError:
        return False, LimitExceeded("it takes too much memory")
    except Exception as error:
        return False, error


def _content(good: bool, answer: Any) -> bytes:
    try:
        content = pickle.dumps((good, answer))
        if not good:
            pickle.loads(content)  # noqa: S301 (an exception that cannot be unpickled must fail here)
        return content
    except Exception as error:
        return pickle.dumps((False, RuntimeError(f"{type(answer).__name__} cannot be passed on: {error}")))


if __name__ == "__main__":
    os.nice(_POLITE)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output that a library prints must not mix with answers
    main(sys.stdin.buffer, answers)
