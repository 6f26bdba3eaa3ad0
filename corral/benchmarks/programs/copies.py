"""Copies between host and device, in both directions, and within the device."""

from __future__ import annotations

from typing import Any

from corral.benchmarks.programs.accelerator import torch_with_devices
from corral.benchmarks.programs.given import Given, best_seconds


def measure(given: Given) -> dict[str, float]:
    """Return bandwidths in GB/s. Raises NotMeasurable where the task has no device."""
    torch = torch_with_devices()
    device = torch.device("cuda", given.local_rank % torch.cuda.device_count())
    size, repeat = given.parameters["size_mib"] * 2**20, given.parameters["repeat"]
    host = torch.randint(0, 255, (size,), dtype=torch.uint8).pin_memory()
    there, second = host.to(device), torch.empty(size, dtype=torch.uint8, device=device)
    back = torch.empty_like(host).pin_memory()

    def seconds(target: Any, source: Any) -> float:
        def run() -> None:
            target.copy_(source, non_blocking=True)
            torch.cuda.synchronize(device)

        return float(best_seconds(run, repeat))

    figures = {"h2d_bw": seconds(there, host), "d2h_bw": seconds(back, there), "d2d_bw": seconds(second, there)}
    if not torch.equal(back, host) or not torch.equal(second.cpu(), host):
        raise ArithmeticError("bytes changed on the way to the device and back")
    return {name: size / took / 1e9 for name, took in figures.items()}
