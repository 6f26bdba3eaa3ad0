"""Choose how the devices of this machine are read: the vendor's library, the kernel's files, or the vendor's tool."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

from corral.devices.figures.amd import ROCM_SMI, AmdReader, parse_rocm_smi
from corral.devices.figures.amd_exporter import AmdExporterReader
from corral.devices.figures.dcgm_exporter import DcgmExporterReader
from corral.devices.figures.device_figures import DeviceFigures
from corral.devices.figures.exporter_page import AMD_EXPORTER, DCGM_EXPORTER, exporter_url
from corral.devices.figures.npu_smi import NPU_SMI, NpuDetails
from corral.devices.figures.nvidia_smi import parse_nvidia_smi
from corral.devices.figures.nvml import open_nvml
from corral.devices.figures.tool_output import output_of
from corral.kernel.errors import InvalidInput

TOOL_SECONDS: Final = 30.0
"""Seconds between two runs of a vendor's tool: each takes half a second of processor time or more."""
NVIDIA_SMI: Final = ("nvidia-smi", "-q", "-x")
_TOOLS: Final = ((NVIDIA_SMI, parse_nvidia_smi), (ROCM_SMI, parse_rocm_smi))


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
    if shutil.which(NPU_SMI[0]):
        return ToolReader(NPU_SMI, NpuDetails().figures)
    return None
