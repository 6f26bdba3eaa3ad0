"""The built-in validation of a node: matrix products, copies, disk and, with several devices, an all-reduce.

It runs as a task on the node, on PyTorch where that is installed, else on NumPy, else on plain Python. It prints one
line with figures, which the server compares with those of similar nodes, and ends with 1 when a result is wrong.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from array import array
from collections.abc import Callable
from functools import partial
from operator import mul
from typing import Any

MARK = "CORRAL-VALIDATION "
"""What the line of figures begins with."""
_MIB = 2**20
_DISK_MIB = 64


def main() -> int:
    """Run all checks; return the exit code."""
    figures: dict[str, float] = {}
    problems: list[str] = []
    torch, numpy = _module("torch"), _module("numpy")
    count = torch.cuda.device_count() if torch is not None and torch.cuda.is_available() else 0
    checks: list[tuple[str, Callable[[], float]]] = []
    for index in range(count):
        checks.append((f"matrix_product_{index}_gflops", partial(_torch_product, torch, f"cuda:{index}")))
        checks.append((f"copy_{index}_gb_per_second", partial(_torch_copy, torch, f"cuda:{index}")))
    if count > 1:
        checks.append(("all_reduce_gb_per_second", lambda: _all_reduce(torch, count)))
    if not count:
        product = _torch_product if torch is not None else _numpy_product if numpy is not None else _plain_product
        checks.append(("matrix_product_gflops", lambda: product(torch or numpy, "cpu")))
    checks += [("memory_copy_gb_per_second", _memory_copy), ("disk_write_mb_per_second", _disk)]
    for name, check in checks:
        try:
            figures[name] = round(check(), 4)
        except Exception as error:
            problems.append(f"{name}: {type(error).__name__}: {error}")
    print(MARK + json.dumps({"figures": figures, "problems": problems, "with": _kind(torch, numpy, count)}), flush=True)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _module(name: str) -> Any:
    try:
        return __import__(name)
    except Exception:
        return None


def _kind(torch: Any, numpy: Any, count: int) -> str:
    return f"torch, {count} devices" if count else "torch" if torch else "numpy" if numpy else "python"


def _best(run: Callable[[], object], times: int = 5) -> float:
    """Seconds of the fastest of some runs."""
    best = float("inf")
    for _ in range(times):
        begun = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begun)
    return max(best, 1e-9)


def _torch_product(torch: Any, device: str) -> float:
    """Multiply whole numbers that float32 holds exactly, compare one row with the true product, and time it."""
    size = 4096 if device != "cpu" else 512
    made = torch.Generator().manual_seed(7)
    left = torch.randint(0, 8, (size, size), generator=made).double()
    right = torch.randint(0, 8, (size, size), generator=made).double()
    true = left[:1] @ right
    a, b = left.float().to(device), right.float().to(device)

    def run() -> Any:
        found = a @ b
        if device != "cpu":
            torch.cuda.synchronize(device)
        return found

    if not torch.equal(run()[:1].cpu().double(), true):
        raise ArithmeticError("the product of two matrices is wrong")
    return 2 * size**3 / _best(run) / 1e9


def _numpy_product(numpy: Any, device: str) -> float:
    size = 512
    made = numpy.random.default_rng(7)
    left = made.integers(0, 8, (size, size)).astype(numpy.float32)
    right = made.integers(0, 8, (size, size)).astype(numpy.float32)
    if not numpy.array_equal((left @ right)[0], left[0].astype(numpy.int64) @ right.astype(numpy.int64)):
        raise ArithmeticError("the product of two matrices is wrong")
    return 2 * size**3 / _best(lambda: left @ right) / 1e9


def _plain_product(_: Any, device: str) -> float:
    size = 64
    made = random.Random(7)
    left = [[made.randrange(8) for _ in range(size)] for _ in range(size)]
    right = [[made.randrange(8) for _ in range(size)] for _ in range(size)]
    columns = [[row[at] for row in right] for at in range(size)]

    def run() -> list[list[int]]:
        return [[sum(map(mul, row, column)) for column in columns] for row in left]

    found = run()
    sums = [sum(row) for row in right]
    if [sum(row) for row in found] != [sum(map(mul, row, sums)) for row in left]:
        raise ArithmeticError("the product of two matrices is wrong")
    return 2 * size**3 / _best(run) / 1e9


def _torch_copy(torch: Any, device: str) -> float:
    """Copy 256 MiB to a device and back, compare, and time both ways together."""
    sent = torch.randint(0, 255, (256 * _MIB,), dtype=torch.uint8).pin_memory()

    def run() -> Any:
        back = sent.to(device).cpu()
        torch.cuda.synchronize(device)
        return back

    if not torch.equal(run(), sent):
        raise ArithmeticError(f"bytes changed on the way to {device} and back")
    return float(2 * sent.numel()) / _best(run, 3) / 1e9


def _all_reduce(torch: Any, count: int) -> float:
    """Sum 64 MiB over all devices by NCCL from one process, and compare."""
    parts = [torch.full((16 * _MIB,), float(index + 1), device=f"cuda:{index}") for index in range(count)]
    right = float(count * (count + 1) // 2)

    def run() -> None:
        torch.cuda.nccl.all_reduce(parts)
        for index in range(count):
            torch.cuda.synchronize(index)

    run()
    if any(part[0].item() != right or part[-1].item() != right for part in parts):
        raise ArithmeticError("the sum over all devices is wrong")
    return 4 * 16 * _MIB / _best(run) / 1e9


def _memory_copy() -> float:
    data = array("B", os.urandom(_MIB)) * 64
    if data[:] != data:
        raise ArithmeticError("a copy of memory differs")
    return 2 * len(data) / _best(lambda: data[:]) / 1e9


def _disk() -> float:
    """Write and read back a file in the task's folder."""
    block = os.urandom(_MIB)
    with tempfile.TemporaryFile(dir=".") as file:
        begun = time.perf_counter()
        for _ in range(_DISK_MIB):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        seconds = time.perf_counter() - begun
        file.seek(0)
        for _ in range(_DISK_MIB):
            if file.read(_MIB) != block:
                raise OSError("a file was read back with other contents")
    return _DISK_MIB * 1.048576 / max(seconds, 1e-9)


if __name__ == "__main__":
    sys.exit(main())
