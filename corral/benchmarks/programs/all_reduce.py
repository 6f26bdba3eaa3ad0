"""The bus bandwidth of an all-reduce by the size of the message: 2 (n - 1) / n times its bytes in its time.

That is how nccl-tests counts it (doc/PERFORMANCE.md there), so that it compares with the speed of a link.
"""

from __future__ import annotations

from corral.benchmarks.programs.given import ALONE, Given, NotMeasurable, best_seconds


def measure(given: Given) -> dict[str, float]:
    """Return, on rank 0, GB/s for each size from 1 KiB upwards by factors of 8, over NCCL or gloo.

    Raises NotMeasurable for a process that is alone.
    """
    import torch
    import torch.distributed as group

    if given.size < 2:
        raise NotMeasurable(ALONE)
    devices = torch.cuda.is_available()
    group.init_process_group("nccl" if devices else "gloo")
    device = torch.device("cuda", given.local_rank % torch.cuda.device_count()) if devices else torch.device("cpu")
    figures: dict[str, float] = {}
    try:
        size, most = 1024, given.parameters["most_mib"] * 2**20
        while size <= most:
            data = torch.zeros(size // 4, device=device)

            def run(data: object = data) -> None:
                group.all_reduce(data)
                if devices:
                    torch.cuda.synchronize(device)

            seconds = best_seconds(run, given.parameters["repeat"])
            data.fill_(given.rank + 1)
            run(data)
            expected = given.size * (given.size + 1) // 2
            if data[0].item() != expected or data[-1].item() != expected:
                raise ArithmeticError(f"the sum of {size} bytes over all processes is wrong")
            if size == 1024:
                figures["smallest_lat"] = 1e6 * seconds
            figures[f"size_{size}_bw"] = 2 * (given.size - 1) / given.size * size / seconds / 1e9
            size *= 8
        figures["largest_bw"] = figures[f"size_{size // 8}_bw"]
    finally:
        group.destroy_process_group()
    return figures if given.first else {}
