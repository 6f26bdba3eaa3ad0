"""PyTorch's devices, as far as benchmarks use them, made of memory: no device is at hand where the tests run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any


class Tensor:
    """Bytes on a device, or a view of some of them."""

    def __init__(self, data: memoryview, device: int | None, changed: Callable[[Tensor, Tensor], bool]) -> None:
        self.data, self.device, self._changed = data, device, changed

    @property
    def shape(self) -> tuple[int]:
        return (len(self.data),)

    def to(self, device: int) -> Tensor:
        return Tensor(memoryview(bytearray(self.data)), device, self._changed)

    def cpu(self) -> Tensor:
        return Tensor(self.data, None, self._changed)

    def copy_(self, source: Tensor, *, non_blocking: bool) -> None:
        self.data[:] = source.data
        if self._changed(source, self):
            self.data[0] ^= 1

    def __getitem__(self, part: slice) -> Tensor:
        return Tensor(self.data[part], self.device, self._changed)


class Counter:
    """A whole number on a device, to which each kernel adds one; some kernels may be lost."""

    def __init__(self, lost_after: int) -> None:
        self._value, self._lost_after = 0, lost_after

    def add_(self, more: int) -> None:
        self._value = min(self._value + more, self._lost_after)

    def item(self) -> int:
        return self._value


class Event:
    """A moment of a device: each kernel takes half a millisecond."""

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        """Take the moment."""

    def elapsed_time(self, other: Event) -> float:
        return 0.5


def made_up_torch(
    devices: int, *, changed: Callable[[Tensor, Tensor], bool] = lambda *_: False, lost_after: int = 10**9
) -> Any:
    """A module `torch` with so many devices; `changed` says which copies change a byte."""

    def made(size: int) -> memoryview:
        return memoryview(bytearray(at % 251 for at in range(size)))

    cuda = SimpleNamespace(
        is_available=lambda: devices > 0,
        device_count=lambda: devices,
        synchronize=lambda device: None,
        device=lambda device: nullcontext(),
        Event=Event,
    )
    return SimpleNamespace(
        cuda=cuda,
        uint8="uint8",
        int64="int64",
        device=lambda kind, index: index,
        randint=lambda low, high, shape, dtype: Tensor(made(shape[0]), None, changed),
        empty=lambda shape, dtype, device: Tensor(memoryview(bytearray(shape[0])), device, changed),
        zeros=lambda count, dtype, device: Counter(lost_after),
        equal=lambda one, two: one.data == two.data,
    )
