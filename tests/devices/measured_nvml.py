"""A made-up NVML whose boards have figures, too."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tests.devices.fake_nvml import Board, FakeNvml


@dataclass
class Measured(Board):
    use: int = 0
    used: int = 0
    watts: float = 60.0
    celsius: int = 30
    xids: list[int] = field(default_factory=list)
    throttled: int = 0
    pids: list[int] = field(default_factory=list)
    deaf: bool = False
    """Whether it supports nothing but its name."""


class MeasuredNvml(FakeNvml):
    """The part of pynvml's interface that the reader of figures uses."""

    NVML_MEMORY_ERROR_TYPE_CORRECTED = 0
    NVML_TEMPERATURE_GPU = 0
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_FI_DEV_MEMORY_TEMP = 82
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX = 138
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX = 139
    NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3
    nvmlEventTypeXidCriticalError = 8

    boards: list[Measured]  # type: ignore[assignment]

    def __init__(self, boards: list[Measured]) -> None:
        super().__init__(list(boards), {})

    def _figure(self, board: Measured, value: Any) -> Any:
        if board.deaf:
            raise self.NVMLError("Not Supported")
        return value

    def nvmlDeviceGetMinorNumber(self, board: Measured) -> int:
        return self.boards.index(board)

    def nvmlDeviceGetUtilizationRates(self, board: Measured) -> Any:
        return self._figure(board, SimpleNamespace(gpu=board.use, memory=board.use // 2))

    def nvmlDeviceGetMemoryInfo(self, board: Measured) -> Any:  # type: ignore[override]
        return self._figure(board, SimpleNamespace(used=board.used, total=board.memory))

    def nvmlDeviceGetPowerUsage(self, board: Measured) -> Any:
        return self._figure(board, int(board.watts * 1000))

    def nvmlDeviceGetTemperature(self, board: Measured, sensor: int) -> Any:
        return self._figure(board, board.celsius)

    def nvmlDeviceGetClockInfo(self, board: Measured, clock: int) -> Any:
        return self._figure(board, {1: 1410, 2: 1593}[clock])

    def nvmlDeviceGetEncoderUtilization(self, board: Measured) -> Any:
        raise self.NVMLError("Not Supported")

    def nvmlDeviceGetDecoderUtilization(self, board: Measured) -> Any:
        return self._figure(board, [5, 167000])

    def nvmlDeviceGetTotalEnergyConsumption(self, board: Measured) -> Any:
        return self._figure(board, 123_456_789)

    def nvmlDeviceGetPcieReplayCounter(self, board: Measured) -> Any:
        return self._figure(board, 4)

    def nvmlDeviceGetPerformanceState(self, board: Measured) -> Any:
        return self._figure(board, 0)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, board: Measured) -> Any:
        return self._figure(board, board.throttled)

    def nvmlDeviceGetRemappedRows(self, board: Measured) -> Any:  # type: ignore[override]
        return self._figure(board, (1, 2, 0, board.remap_failed))

    def nvmlDeviceGetTotalEccErrors(self, board: Measured, kind: int, counter: int) -> Any:  # type: ignore[override]
        return self._figure(board, board.ecc if kind else 10 * board.ecc)

    def nvmlDeviceGetComputeRunningProcesses(self, board: Measured) -> Any:
        return self._figure(board, [SimpleNamespace(pid=pid) for pid in board.pids])

    def nvmlDeviceGetFieldValues(self, board: Measured, fields: list[tuple[int, int]]) -> Any:
        ((number, scope),) = fields
        if number == 82:
            return [SimpleNamespace(nvmlReturn=0, valueType=1, value=SimpleNamespace(uiVal=55))]
        assert scope == 0xFFFFFFFF
        return [SimpleNamespace(nvmlReturn=0, valueType=3, value=SimpleNamespace(ullVal=1000 * number))]

    def nvmlEventSetCreate(self) -> list[Measured]:
        return []

    def nvmlDeviceRegisterEvents(self, board: Measured, kinds: int, events: list[Measured]) -> None:
        self._figure(board, None)
        assert kinds == 8
        events.append(board)

    def nvmlEventSetWait_v2(self, events: list[Measured], milliseconds: int) -> Any:
        assert milliseconds == 0
        for board in events:
            if board.xids:
                return SimpleNamespace(device=board, eventData=board.xids.pop(0))
        raise self.NVMLError("Timeout")
