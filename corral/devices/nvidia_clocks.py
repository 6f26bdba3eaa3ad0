"""Set the clocks of a slow NVIDIA GPU: persistence mode on, and application clocks to the highest that it supports.

It needs root and `nvidia-smi`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Sequence
from typing import Final, NamedTuple

from corral.devices.figures.nvidia_smi import parse_nvidia_smi
from corral.devices.figures.reader import NVIDIA_SMI
from corral.kernel.errors import NotFound, Unavailable

_SECONDS: Final = 20.0
"""Seconds that one run of nvidia-smi may take; it hangs on a broken device."""
MOST_SECONDS: Final = 4 * _SECONDS
"""Seconds that setting the clocks of a GPU may take."""
_MOST_BYTES: Final = 4 * 2**20
_LONGEST: Final = 200
_CLOCKS: Final = re.compile(rb"\s*([0-9]{1,6})\s*,\s*([0-9]{1,6})\s*")


class Clocks(NamedTuple):
    """Application clocks, in MHz."""

    memory: int
    graphics: int


def set_highest_clocks(minor: int) -> Clocks:
    """Set the highest clocks of the GPU of a minor number (`/dev/nvidiaN`).

    Raises NotFound `no-such-gpu`, Unavailable `nvidia-smi-failed` with what the tool said.
    """
    bus = _bus_of(minor)
    _run("-i", bus, "-pm", "1")
    told = _run("-i", bus, "--query-supported-clocks=memory,graphics", "--format=csv,noheader,nounits")
    found = [Clocks(*map(int, match.groups())) for line in told.splitlines() if (match := _CLOCKS.fullmatch(line))]
    if not found:
        raise Unavailable("nvidia-smi-failed", f"nvidia-smi names no supported clocks of GPU {minor}.")
    highest = max(found)
    _run("-i", bus, "-ac", f"{highest.memory},{highest.graphics}")
    return highest


def _bus_of(minor: int) -> str:
    """The PCI address of a GPU: nvidia-smi counts GPUs in another order than the kernel's minor numbers."""
    try:
        gpus = parse_nvidia_smi(_run(*NVIDIA_SMI[1:]))
    except ValueError as error:
        raise Unavailable("nvidia-smi-failed", f"{error}."[:_LONGEST]) from None
    bus = next((each.bus for each in gpus if each.minor == minor and each.bus), "")
    if not bus:
        raise NotFound("no-such-gpu", f"There is no NVIDIA GPU of the minor number {minor} here.")
    return bus


def _run(*words: str) -> bytes:
    """What nvidia-smi writes; raises Unavailable if it fails, hangs or writes too much."""
    named = f"nvidia-smi {' '.join(words)}"
    try:
        code, told = _ended([NVIDIA_SMI[0], *words])
    except OSError as error:
        raise Unavailable("nvidia-smi-failed", f"nvidia-smi cannot be started: {error.strerror}.") from None
    if code == -signal.SIGKILL:
        raise Unavailable("nvidia-smi-failed", f"{named} was ended after {_SECONDS:g} s, or wrote too much.")
    if code:
        first = next((line.decode(errors="replace").strip() for line in told.splitlines() if line.strip()), "")
        said = "".join(letter if letter.isprintable() else "?" for letter in first[:_LONGEST])
        raise Unavailable("nvidia-smi-failed", f"{named} ended with {code}: {said or 'it wrote nothing'}")
    return told


def _ended(words: Sequence[str]) -> tuple[int, bytes]:
    """Run a program to its end; its exit code and output. It is killed after its time, or when it writes too much."""
    output, null = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(words, stdin=null, stdout=output, stderr=subprocess.STDOUT, start_new_session=True) as tool:
        timer = threading.Timer(_SECONDS, os.killpg, (tool.pid, signal.SIGKILL))
        timer.start()
        try:
            told = tool.stdout.read(_MOST_BYTES + 1) if tool.stdout is not None else b""
            if len(told) > _MOST_BYTES:
                os.killpg(tool.pid, signal.SIGKILL)
            return tool.wait(), told
        finally:
            timer.cancel()
