"""Read the figures of NVIDIA GPUs through NVML.

NVML stays open between two rounds, and needs neither CUDA nor a child process. Xid errors are events: the reader
registers for them once and keeps the last number of each device.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

from corral.devices.figures.device_figures import MOST_DEVICES, DeviceFigures, word
from corral.devices.nvidia import handles, has_driver

_MOST_EVENTS: Final = 100
"""Events that one round takes; the rest waits for the next."""
_ALL_LINKS: Final = 0xFFFFFFFF
"""The scope of a field that sums over all NVLinks."""
_REASONS: Final = (
    (0x0001, "gpu_idle"),
    (0x0002, "applications_clocks_setting"),
    (0x0004, "sw_power_cap"),
    (0x0008, "hw_slowdown"),
    (0x0010, "sync_boost"),
    (0x0020, "sw_thermal_slowdown"),
    (0x0040, "hw_thermal_slowdown"),
    (0x0080, "hw_power_brake_slowdown"),
    (0x0100, "display_clocks_setting"),
)
"""Bits of nvmlClocksThrottleReasons and their tags in `nvidia-smi -q -x`, after `clocks_throttle_reason_`."""
REASON: Final = "clocks_throttle_reason_"


class NvmlReader:
    """The GPUs of this machine, by one open NVML."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._handles: list[Any] = []
        self._fixed: list[DeviceFigures] = []
        self._events: Any = None
        self._xids: dict[str, int] = {}

    def read(self) -> tuple[DeviceFigures, ...]:
        """Return the figures of all GPUs. One that does not answer has none.

        Raises what NVML raises if the driver is gone; the next call opens it again.
        """
        if not self._handles:
            self._open()
        try:
            self._take_events()
            found = tuple(
                self._figures(handle, fixed) for handle, fixed in zip(self._handles, self._fixed, strict=True)
            )
        except Exception:
            self.close()
            raise
        if all(each.use is None and each.memory_used is None for each in found):
            self.close()  # a driver that was loaded again gives new handles
        return found

    def close(self) -> None:
        """Close NVML."""
        if self._handles:
            self._handles, self._fixed, self._events = [], [], None
            self._library.nvmlShutdown()

    def _open(self) -> None:
        library = self._library
        library.nvmlInit()
        self._handles = handles(library)[:MOST_DEVICES]
        self._fixed = [self._identity(index, handle) for index, handle in enumerate(self._handles)]
        self._events = self._registered()

    def _identity(self, index: int, handle: Any) -> DeviceFigures:
        library = self._library
        place = self._ask(library.nvmlDeviceGetPciInfo, handle)
        return DeviceFigures(
            vendor="nvidia",
            index=index,
            id=word(_text(self._ask(library.nvmlDeviceGetUUID, handle) or "")),
            model=word(_text(self._ask(library.nvmlDeviceGetName, handle) or "")),
            minor=self._ask(library.nvmlDeviceGetMinorNumber, handle),
            bus=word(_text(place.busId)) if place is not None else "",
        )

    def _figures(self, handle: Any, fixed: DeviceFigures) -> DeviceFigures:
        library, ask = self._library, self._ask
        use = ask(library.nvmlDeviceGetUtilizationRates, handle)
        memory = ask(library.nvmlDeviceGetMemoryInfo, handle)
        power = ask(library.nvmlDeviceGetPowerUsage, handle)
        rows = ask(library.nvmlDeviceGetRemappedRows, handle)
        held_down = ask(library.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
        return DeviceFigures(
            vendor=fixed.vendor,
            index=fixed.index,
            id=fixed.id,
            model=fixed.model,
            minor=fixed.minor,
            bus=fixed.bus,
            use=None if use is None else float(use.gpu),
            memory_use=None if use is None else float(use.memory),
            encoder_use=_first(ask(library.nvmlDeviceGetEncoderUtilization, handle)),
            decoder_use=_first(ask(library.nvmlDeviceGetDecoderUtilization, handle)),
            memory_used=None if memory is None else int(memory.used),
            memory_total=None if memory is None else int(memory.total),
            temperature=ask(library.nvmlDeviceGetTemperature, handle, library.NVML_TEMPERATURE_GPU),
            memory_temperature=self._field(handle, library.NVML_FI_DEV_MEMORY_TEMP),
            power=None if power is None else power / 1000,
            clock=ask(library.nvmlDeviceGetClockInfo, handle, library.NVML_CLOCK_SM),
            memory_clock=ask(library.nvmlDeviceGetClockInfo, handle, library.NVML_CLOCK_MEM),
            energy=ask(library.nvmlDeviceGetTotalEnergyConsumption, handle),
            pcie_replays=ask(library.nvmlDeviceGetPcieReplayCounter, handle),
            ecc_corrected=self._errors(handle, library.NVML_MEMORY_ERROR_TYPE_CORRECTED),
            ecc_uncorrected=self._errors(handle, library.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
            xid=None if self._events is None else self._xids.get(fixed.id, 0),
            remapped_corrected=None if rows is None else int(rows[0]),
            remapped_uncorrected=None if rows is None else int(rows[1]),
            remap_failed=None if rows is None else bool(rows[3]),
            nvlink_kib=self._nvlink(handle),
            state=ask(library.nvmlDeviceGetPerformanceState, handle),
            throttled=throttle_reasons(held_down or 0),
            processes=self._processes(handle),
        )

    def _errors(self, handle: Any, kind: int) -> int | None:
        library = self._library
        found: int | None = self._ask(library.nvmlDeviceGetTotalEccErrors, handle, kind, library.NVML_VOLATILE_ECC)
        return found

    def _processes(self, handle: Any) -> tuple[int, ...] | None:
        found = self._ask(self._library.nvmlDeviceGetComputeRunningProcesses, handle)
        return None if found is None else tuple(int(each.pid) for each in found[:1000])

    def _nvlink(self, handle: Any) -> int | None:
        library = self._library
        fields = (library.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, library.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX)
        found = [self._field(handle, each, _ALL_LINKS) for each in fields]
        return None if None in found else int(sum(each or 0 for each in found))

    def _field(self, handle: Any, field: int, scope: int = 0) -> float | None:
        found = self._ask(self._library.nvmlDeviceGetFieldValues, handle, [(field, scope)])
        if not found or found[0].nvmlReturn:
            return None
        wide = found[0].valueType == self._library.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
        return float(found[0].value.ullVal if wide else found[0].value.uiVal)

    def _registered(self) -> Any:
        """The set of events with the Xid errors of all GPUs; None where the driver has none."""
        library = self._library
        events = self._ask(library.nvmlEventSetCreate)
        if events is None:
            return None
        for handle in filter(None, self._handles):
            try:
                library.nvmlDeviceRegisterEvents(handle, library.nvmlEventTypeXidCriticalError, events)
            except library.NVMLError:
                continue
        return events

    def _take_events(self) -> None:
        if self._events is None:
            return
        library = self._library
        for _ in range(_MOST_EVENTS):
            event = self._ask(library.nvmlEventSetWait_v2, self._events, 0)
            if event is None:  # the wait of no time is over: there is none
                return
            device = word(_text(self._ask(library.nvmlDeviceGetUUID, event.device) or ""))
            self._xids[device] = int(event.eventData)

    def _ask(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """The answer; None if this GPU is lost, or it or the driver does not support the call."""
        if None in arguments:
            return None
        try:
            return call(*arguments)
        except self._library.NVMLError:
            return None


def open_nvml() -> NvmlReader | None:
    """Return the reader of this machine's GPUs; None without a driver."""
    return NvmlReader(importlib.import_module("pynvml")) if has_driver() else None


def throttle_reasons(mask: int) -> tuple[str, ...]:
    """The tags of the reasons in NVML's mask."""
    return tuple(REASON + tag for bit, tag in _REASONS if mask & bit)


def _first(pair: Any) -> float | None:
    return None if pair is None else float(pair[0])


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
