"""Choose how the devices of this machine are read: the vendor's library, the kernel's files, or the vendor's tool."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

from corral.devices.figures.amd import ROCM_SMI, AmdReader, parse_rocm_smi
from corral.devices.figures.amd_exporter import AmdExporterReader
from corral.devices.figures.dcgm_exporter import DcgmExporterReader
from corral.devices.figures.device_figures import DeviceFigures
from corral.devices.figures.exporter_page import AMD_EXPORTER, DCGM_EXPORTER, exporter_url
from corral.devices.figures.npu_smi import NPU_SMI, parse_npu_smi
from corral.devices.figures.nvidia_smi import parse_nvidia_smi
from corral.devices.figures.nvml import open_nvml
from corral.kernel.errors import InvalidInput

TOOL_SECONDS: Final = 30.0
"""Seconds between two runs of a vendor's tool: each takes half a second of processor time or more."""
_PATIENCE: Final = 20.0
"""Seconds that a tool may take; nvidia-smi hangs on a broken device."""
_MOST_OUTPUT: Final = 4 * 2**20
NVIDIA_SMI: Final = ("nvidia-smi", "-q", "-x")
_TOOLS: Final = ((NVIDIA_SMI, parse_nvidia_smi), (ROCM_SMI, parse_rocm_smi), (NPU_SMI, parse_npu_smi))


class DeviceReader(Protocol):
    """Reads the devices of one vendor."""

    def read(self) -> tuple[DeviceFigures, ...]:
        """Return the figures of all devices now; raises an exception if they cannot be read."""
        ...

    def close(self) -> None:
        """Release what it holds open."""
        ...


class ToolReader:
    """Reads devices by a vendor's tool, at most every half minute; between two runs the last figures hold."""

    def __init__(
        self,
        words: Sequence[str],
        parse: Callable[[bytes], tuple[DeviceFigures, ...]],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._words, self._parse, self._monotonic = words, parse, monotonic
        self._figures: tuple[DeviceFigures, ...] = ()
        self._next = -float("inf")

    def read(self) -> tuple[DeviceFigures, ...]:
        """Return the figures of the last run.

        Raises OSError, subprocess.TimeoutExpired or ValueError when the tool fails, hangs or writes something else.
        """
        if self._monotonic() >= self._next:
            self._next, self._figures = self._monotonic() + TOOL_SECONDS, ()
            self._figures = self._parse(output_of(self._words))
        return self._figures

    def close(self) -> None:
        """Nothing stays open."""


def output_of(words: Sequence[str], *, seconds: float = _PATIENCE) -> bytes:
    """Return what a tool writes on standard output, 4 MiB and a byte at most.

    Raises OSError if it cannot be started, subprocess.TimeoutExpired if it takes longer than `seconds`. Of a tool that
    fails it is what was written before, which no parser takes for a whole document.
    """
    # The limit of output is the shell's `head`: a tool that writes without end gets SIGPIPE.
    shell = ["/bin/sh", "-c", f'"$@" 2>/dev/null </dev/null | head -c {_MOST_OUTPUT + 1}', "sh", *words]
    with subprocess.Popen(shell, stdout=subprocess.PIPE, start_new_session=True) as tool:
        try:
            found, _ = tool.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(tool.pid, signal.SIGKILL)  # the tool itself is the shell's child
            raise
    return found


def reader_finder(dcgm_exporter: str, amd_exporter: str = "") -> Callable[[], DeviceReader | None]:
    """How devices are found: from a vendor's exporter at this address, or, without one, on the machine itself.

    Raises InvalidInput for an address that is none, and for two exporters.
    """
    if dcgm_exporter and amd_exporter:
        message = (
            "Devices are read from one vendor's exporter: give the address of DCGM exporter or of AMD's, not of both."
        )
        raise InvalidInput("two-exporters", message)
    if dcgm_exporter:
        nvidia = DcgmExporterReader(exporter_url(dcgm_exporter, DCGM_EXPORTER))
        return lambda: nvidia
    if amd_exporter:
        amd = AmdExporterReader(exporter_url(amd_exporter, AMD_EXPORTER))
        return lambda: amd
    return find_reader


def find_reader(drm: Path | None = None) -> DeviceReader | None:
    """Return the reader of the first vendor that has devices here; None for a machine without any."""
    nvml = open_nvml()
    if nvml is not None:
        return nvml
    amd = AmdReader() if drm is None else AmdReader(drm)
    if any(each.use is not None for each in amd.read()):
        return amd
    for words, parse in _TOOLS:
        if shutil.which(words[0]):
            return ToolReader(words, parse)
    return None
