"""Products of two square matrices of whole numbers, of which one row is compared with the true product."""

from __future__ import annotations

from typing import Any

from corral.benchmarks.programs.given import Given, best_seconds


def measure(given: Given) -> dict[str, float]:
    """Return GFLOPS: on the process's device, else on its processors by PyTorch or NumPy."""
    size, repeat = given.parameters["size"], given.parameters["repeat"]
    try:
        import torch
    except ImportError:
        import numpy

        return {"fp32_flops": 2 * size**3 / _numpy_seconds(numpy, size, repeat) / 1e9}
    device = f"cuda:{given.local_rank % torch.cuda.device_count()}" if torch.cuda.is_available() else "cpu"
    return {"fp32_flops": 2 * size**3 / _torch_seconds(torch, device, size, repeat) / 1e9}


def _numpy_seconds(numpy: Any, size: int, repeat: int) -> float:
    made = numpy.random.default_rng(7)
    left = made.integers(0, 4, (size, size)).astype(numpy.float32)
    right = made.integers(0, 4, (size, size)).astype(numpy.float32)
    if not numpy.array_equal((left @ right)[0], left[0].astype(numpy.float64) @ right.astype(numpy.float64)):
        raise ArithmeticError("the product of two matrices is wrong")
    return float(best_seconds(lambda: left @ right, repeat))


def _torch_seconds(torch: Any, device: str, size: int, repeat: int) -> float:
    made = torch.Generator().manual_seed(7)
    left = torch.randint(0, 4, (size, size), generator=made).double()
    right = torch.randint(0, 4, (size, size), generator=made).double()
    a, b = left.float().to(device), right.float().to(device)

    def run() -> Any:
        found = a @ b
        if device != "cpu":
            torch.cuda.synchronize(device)
        return found

    if not torch.equal(run()[0].cpu().double(), left[0] @ right):
        raise ArithmeticError("the product of two matrices is wrong")
    return float(best_seconds(run, repeat))
