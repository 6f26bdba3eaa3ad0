"""Run a vendor's tool for a bounded time, and take a bounded part of what it writes."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Final

PATIENCE: Final = 20.0
"""Seconds that a tool may take; nvidia-smi hangs on a broken device."""
MOST_OUTPUT: Final = 4 * 2**20
"""Bytes of output that are read."""


def output_of(words: Sequence[str], *, seconds: float = PATIENCE) -> bytes:
    """Return what a tool writes on standard output, 4 MiB and a byte at most.

    Raises OSError if it cannot be started, subprocess.TimeoutExpired if it takes longer than `seconds`. Of a tool that
    fails it is what was written before, which no parser takes for a whole document.
    """
    # The limit of output is the shell's `head`: a tool that writes without end gets SIGPIPE.
    shell = ["/bin/sh", "-c", f'"$@" 2>/dev/null </dev/null | head -c {MOST_OUTPUT + 1}', "sh", *words]
    with subprocess.Popen(shell, stdout=subprocess.PIPE, start_new_session=True) as tool:
        try:
            found, _ = tool.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(tool.pid, signal.SIGKILL)  # the tool itself is the shell's child
            raise
    return found
