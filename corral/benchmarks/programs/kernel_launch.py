"""The time that the smallest kernel takes from its launch by PyTorch until the device has run it."""

from __future__ import annotations

from corral.benchmarks.programs.accelerator import torch_with_devices
from corral.benchmarks.programs.given import Given, best_seconds


def measure(given: Given) -> dict[str, float]:
    """Return milliseconds of a launch. Raises NotMeasurable where the task has no device.

    `wall_time` is the host's, each launch waited for; `event_time` the device's; `queued_time` the host's where
    launches follow each other. The host's include the work of PyTorch. Each kernel adds one, and the sum is checked.
    """
    torch = torch_with_devices()
    device = torch.device("cuda", given.local_rank % torch.cuda.device_count())
    launches, repeat = given.parameters["launches"], given.parameters["repeat"]
    count = torch.zeros(1, dtype=torch.int64, device=device)
    begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    of_device: list[float] = []

    def waited() -> None:
        took = 0.0
        for _ in range(launches):
            begun.record()
            count.add_(1)
            ended.record()
            torch.cuda.synchronize(device)
            took += begun.elapsed_time(ended)
        of_device.append(took / launches)

    def queued() -> None:
        for _ in range(launches):
            count.add_(1)
        torch.cuda.synchronize(device)

    with torch.cuda.device(device):
        wall, queue = best_seconds(waited, repeat), best_seconds(queued, repeat)
    if int(count.item()) != 2 * (repeat + 1) * launches:
        raise ArithmeticError("kernels were lost: the sum of what they added is wrong")
    return {
        "wall_time": 1000 * wall / launches,
        "event_time": min(of_device[1:]),
        "queued_time": 1000 * queue / launches,
    }
