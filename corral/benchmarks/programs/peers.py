"""Copies between each two devices of a task, one way after the other: over NVLink, PCI Express or the host's memory."""

from __future__ import annotations

from typing import Any

from corral.benchmarks.programs.accelerator import torch_with_devices
from corral.benchmarks.programs.given import Given, NotMeasurable, best_seconds


def measure(given: Given) -> dict[str, float]:
    """Return GB/s and microseconds of each way, and the worst of them.

    Raises NotMeasurable where the task has fewer than two devices, and ArithmeticError for a copy that differs.
    """
    torch = torch_with_devices()
    count = torch.cuda.device_count()
    if count < 2:
        raise NotMeasurable("Copies between devices are not measured: the task has one device.")
    size, repeat = given.parameters["size_mib"] * 2**20, given.parameters["repeat"]
    host = torch.randint(0, 255, (size,), dtype=torch.uint8)
    seconds = {}
    for one in range(count):
        source = host.to(torch.device("cuda", one))
        for two in range(count):
            if one != two:
                seconds[one, two] = _way(torch, source, host, (one, two), repeat)
    return figures_of(size, seconds)


def _way(torch: Any, source: Any, host: Any, way: tuple[int, int], repeat: int) -> tuple[float, float]:
    """Seconds of the fastest copy of all bytes, and of one byte."""
    there = torch.empty(source.shape, dtype=torch.uint8, device=torch.device("cuda", way[1]))

    def copy(target: Any, of: Any) -> None:
        target.copy_(of, non_blocking=True)
        for device in way:
            torch.cuda.synchronize(device)

    whole = best_seconds(lambda: copy(there, source), repeat)
    if not torch.equal(there.cpu(), host):
        raise ArithmeticError(f"bytes changed on the way from device {way[0]} to device {way[1]}")
    return whole, best_seconds(lambda: copy(there[:1], source[:1]), 10 * repeat)


def figures_of(size: int, seconds: dict[tuple[int, int], tuple[float, float]]) -> dict[str, float]:
    """Return the figures of ways, from the seconds of a copy of `size` bytes and of one byte on each."""
    rates = {way: size / whole / 1e9 for way, (whole, _) in seconds.items()}
    latencies = {way: 1e6 * small for way, (_, small) in seconds.items()}
    figures = {f"peer_{one}_{two}_bw": rate for (one, two), rate in rates.items()}
    figures |= {f"peer_{one}_{two}_lat": latency for (one, two), latency in latencies.items()}
    return figures | {"min_peer_bw": min(rates.values()), "max_peer_lat": max(latencies.values())}
