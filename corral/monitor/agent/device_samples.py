"""Make samples of the figures of devices, under each of the names that they are known by."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from corral.devices.figures.device_figures import DeviceFigures
from corral.devices.figures.pcie_errors import PCI, pcie_errors
from corral.model.metrics.device_families import DeviceMetric
from corral.model.metrics.samples import Value

_MIB: Final = 2**20
_LEAK: Final = 20 * _MIB
"""Bytes that a GPU without any process may hold: the driver itself needs some."""
Figures = tuple[tuple[DeviceMetric, float | None], ...]


def device_values(device: DeviceFigures, host: str, pci: Path = PCI) -> Iterator[Value]:
    """Yield the series of one device of the machine `host`, with its errors that the kernel has below `pci`.

    What its source does not tell has no series.
    """
    number = str(device.number)
    yield from _told(_own(device), _labels(device))
    for severity, count in pcie_errors(device.bus, pci).items():
        yield Value(DeviceMetric.PCIE_ERRORS, (*_labels(device), severity), float(count))
    if device.vendor in ("nvidia", "amd"):
        figures: Figures = (
            (DeviceMetric.GPU, device.use),
            (DeviceMetric.GPU_MEMORY, device.memory_percent),
        )
        yield from _told(figures, (number, device.vendor))
    if device.vendor != "nvidia":
        yield from _beside_nvidia(device)
    if device.vendor == "amd":
        errors = (("single", device.ecc_corrected), ("double", device.ecc_uncorrected))
        yield from _counted(DeviceMetric.AMD_ECC, (host, number), errors)
        figures = (
            (DeviceMetric.AMD, device.use),
            (DeviceMetric.AMD_MEMORY, device.memory_percent),
            (DeviceMetric.AMD_TEMPERATURE, device.temperature),
        )
        yield from _told(figures, (number,))
    if device.vendor == "nvidia":
        yield from _nvidia(device, number, host)


def external_processes(devices: Collection[DeviceFigures], pids_of_tasks: Collection[int]) -> Iterator[Value]:
    """Yield a series for each process that uses a device and belongs to no task."""
    for device in devices:
        for pid in device.processes or ():
            if pid not in pids_of_tasks:
                yield Value(DeviceMetric.EXTERNAL, (str(device.number), str(pid)), 1.0)


def _own(device: DeviceFigures) -> Figures:
    return (
        (DeviceMetric.USE, None if device.use is None else device.use / 100),
        (DeviceMetric.MEMORY_USED, device.memory_used),
        (DeviceMetric.MEMORY, device.memory_total),
        (DeviceMetric.TEMPERATURE, device.temperature),
        (DeviceMetric.POWER, device.power),
    )


def _labels(device: DeviceFigures) -> tuple[str, ...]:
    return device.vendor, str(device.number), device.id, device.model


def _beside_nvidia(device: DeviceFigures) -> Iterator[Value]:
    """What DCGM's names tell of NVIDIA's devices."""
    labels, clock = _labels(device), device.clock
    figures: Figures = (
        (DeviceMetric.CLOCK, None if clock is None else clock * 1e6),
        (DeviceMetric.REPLAYS, device.pcie_replays),
    )
    yield from _told(figures, labels)
    errors = (("corrected", device.ecc_corrected), ("uncorrected", device.ecc_uncorrected))
    yield from _counted(DeviceMetric.ECC, labels, errors)
    for reason, part in device.held_down or ():
        yield Value(DeviceMetric.HELD_DOWN, (*labels, reason), part)


def _nvidia(device: DeviceFigures, number: str, host: str) -> Iterator[Value]:
    leak = None
    if device.processes is not None and device.memory_used is not None:
        leak = 1.0 if not device.processes and device.memory_used > _LEAK else None
    figures: Figures = (
        (DeviceMetric.NVIDIA, device.use),
        (DeviceMetric.NVIDIA_MEMORY, device.memory_percent),
        (DeviceMetric.NVIDIA_TEMPERATURE, device.temperature),
        (DeviceMetric.NVIDIA_LEAK, leak),
    )
    yield from _told(figures, (number,))
    errors = (("single", device.ecc_corrected), ("double", device.ecc_uncorrected))
    yield from _counted(DeviceMetric.NVIDIA_ECC, (host, number), errors)
    if device.state is not None:
        yield Value(DeviceMetric.NVIDIA_STATE, (host, number, ",".join(device.throttled)), float(device.state))
    labels = (number, device.id, device.bus, f"nvidia{number}", device.model, host)
    yield from _told(_dcgm(device), labels)


def _dcgm(device: DeviceFigures) -> Figures:
    used, total = device.memory_used, device.memory_total
    return (
        (DeviceMetric.SM_CLOCK, device.clock),
        (DeviceMetric.MEM_CLOCK, device.memory_clock),
        (DeviceMetric.MEMORY_TEMP, device.memory_temperature),
        (DeviceMetric.GPU_TEMP, device.temperature),
        (DeviceMetric.POWER_USAGE, device.power),
        (DeviceMetric.ENERGY, device.energy),
        (DeviceMetric.PCIE_REPLAY, device.pcie_replays),
        (DeviceMetric.GPU_UTIL, device.use),
        (DeviceMetric.MEM_COPY_UTIL, device.memory_use),
        (DeviceMetric.ENC_UTIL, device.encoder_use),
        (DeviceMetric.DEC_UTIL, device.decoder_use),
        (DeviceMetric.XID, device.xid),
        (DeviceMetric.FB_FREE, None if used is None or total is None else (total - used) // _MIB),
        (DeviceMetric.FB_USED, None if used is None else used // _MIB),
        (DeviceMetric.ECC_SBE, device.ecc_corrected),
        (DeviceMetric.ECC_DBE, device.ecc_uncorrected),
        (DeviceMetric.REMAPPED_UNCORRECTABLE, device.remapped_uncorrected),
        (DeviceMetric.REMAPPED_CORRECTABLE, device.remapped_corrected),
        (DeviceMetric.REMAP_FAILURE, device.remap_failed),
        (DeviceMetric.NVLINK, device.nvlink_kib),
    )


def _counted(
    name: DeviceMetric, labels: tuple[str, ...], counts: tuple[tuple[str, int | None], ...]
) -> Iterator[Value]:
    for kind, count in counts:
        if count is not None:
            yield Value(name, (*labels, kind), float(count))


def _told(figures: Figures, labels: tuple[str, ...]) -> Iterator[Value]:
    for name, value in figures:
        if value is not None:
            yield Value(name, labels, float(value))
