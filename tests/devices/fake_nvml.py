"""A fake NVML that describes boards which no test machine has."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace


@dataclass
class Board:
    bus: str
    uuid: str
    name: str = "NVIDIA A100-SXM4-40GB"
    memory: int = 40 << 30
    ecc: int = 0
    remap_failed: int = 0
    lost: bool = False
    refused: int = 0
    """The error with which NVML gives no handle of it, 0 for none."""
    links: dict[int, str] = field(default_factory=dict)
    """Link number to the bus id at the other end, "switch" for an NVSwitch."""
    slices: list[Board] = field(default_factory=list)


class FakeNvml:
    """The part of pynvml's interface that discovery uses."""

    NVML_NVLINK_MAX_LINKS = 18
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_VOLATILE_ECC = 0

    NVML_ERROR_NO_PERMISSION = 4
    NVML_ERROR_GPU_IS_LOST = 15

    class NVMLError(Exception):
        def __init__(self, value: int | str) -> None:
            super().__init__(value)
            self.value = value

    def __init__(self, boards: list[Board], ancestors: dict[tuple[int, int], int], *, driver: bool = True) -> None:
        self.boards, self.ancestors, self.driver = boards, ancestors, driver
        self.open = 0

    def nvmlInit(self) -> None:
        if not self.driver:
            raise self.NVMLError("Driver Not Loaded")
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        return len(self.boards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Board:
        if self.boards[index].refused:
            raise self.NVMLError(self.boards[index].refused)
        return self.boards[index]

    def nvmlDeviceGetUUID(self, board: Board) -> str:
        if board.lost:
            raise self.NVMLError("GPU is lost")
        return board.uuid

    def nvmlDeviceGetName(self, board: Board) -> bytes:
        return board.name.encode()

    def nvmlDeviceGetMemoryInfo(self, board: Board) -> SimpleNamespace:
        return SimpleNamespace(total=board.memory)

    def nvmlDeviceGetPciInfo(self, board: Board) -> SimpleNamespace:
        return SimpleNamespace(busId=board.bus)

    def nvmlDeviceGetTopologyCommonAncestor(self, a: Board, b: Board) -> int:
        pair = (self.boards.index(a), self.boards.index(b))
        return self.ancestors.get((min(pair), max(pair)), 50)

    def nvmlDeviceGetNvLinkState(self, board: Board, link: int) -> int:
        if not board.links:
            raise self.NVMLError("Not Supported")
        return int(link in board.links)

    def nvmlDeviceGetNvLinkRemoteDeviceType(self, board: Board, link: int) -> int:
        return 2 if board.links[link] == "switch" else 0

    def nvmlDeviceGetNvLinkRemotePciInfo(self, board: Board, link: int) -> SimpleNamespace:
        return SimpleNamespace(busId=board.links[link].encode())

    def nvmlDeviceGetMigMode(self, board: Board) -> tuple[int, int]:
        return (1, 1) if board.slices else (0, 0)

    def nvmlDeviceGetMaxMigDeviceCount(self, board: Board) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, board: Board, index: int) -> Board:
        if index >= len(board.slices):
            raise self.NVMLError("Not Found")
        return board.slices[index]

    def nvmlDeviceGetTotalEccErrors(self, board: Board, kind: int, counter: int) -> int:
        return board.ecc

    def nvmlDeviceGetRemappedRows(self, board: Board) -> tuple[int, int, int, int]:
        return (0, 0, 0, board.remap_failed)
