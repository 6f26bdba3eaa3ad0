"""Make the machine busy: in turns take one core for ten seconds and sync 128 MB to the disk.

`python -m tests.suite.noise` runs until it is ended, and ends with the process that started it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import tempfile
import time
from typing import Final

SPIN_SECONDS: Final = 10.0
WRITTEN: Final = 128 * 2**20
_PIECE: Final = os.urandom(2**20)
_PR_SET_PDEATHSIG: Final = 1


def take_a_core(seconds: float) -> int:
    """Compute for this long; returns the number of rounds."""
    until, rounds = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        sum(range(10_000))
        rounds += 1
    return rounds


def sync_to_the_disk(size: int = WRITTEN) -> None:
    """Write a temporary file of `size` bytes and wait until the disk has it."""
    with tempfile.TemporaryFile() as file:
        for _ in range(size // len(_PIECE)):
            file.write(_PIECE)
        file.flush()
        os.fsync(file.fileno())


def main() -> None:
    """Make noise until ended."""
    if ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError("this process could not be tied to the one that started it")
    while True:
        take_a_core(SPIN_SECONDS)
        sync_to_the_disk()


if __name__ == "__main__":
    main()
