"""The bus bandwidth of an all-to-all by the size of the message: (n - 1) / n times the bytes of a process in its time.

That is how nccl-tests counts it (doc/PERFORMANCE.md there). Mixtures of experts and recommenders wait for it.
"""

from __future__ import annotations

from corral.benchmarks.programs.given import ALONE, Given, NotMeasurable, best_seconds


def measure(given: Given) -> dict[str, float]:
    """Return, on rank 0, GB/s for each size from 4 KiB upwards by factors of 8, over NCCL or gloo.

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
        size, most, part = 4096, given.parameters["most_mib"] * 2**20, (given.size - 1) / given.size
        while size <= most:
            each = max(1, size // 4 // given.size)
            sent = torch.full((each * given.size,), given.rank + 1.0, device=device)
            got = torch.zeros_like(sent)

            def run(got: object = got, sent: object = sent) -> None:
                group.all_to_all_single(got, sent)
                if devices:
                    torch.cuda.synchronize(device)

            seconds = best_seconds(run, given.parameters["repeat"])
            parts = got.view(given.size, each)
            if any((parts[rank] != rank + 1).any().item() for rank in range(given.size)):
                raise ArithmeticError(f"the parts of {size} bytes came from other processes than they should")
            sent_bytes = 4 * each * given.size
            figures[f"size_{size}_bw"] = part * sent_bytes / seconds / 1e9
            if size == 4096:
                figures["smallest_lat"] = 1e6 * seconds
            size *= 8
        figures["largest_bw"] = figures[f"size_{size // 8}_bw"]
    finally:
        group.destroy_process_group()
    return figures if given.first else {}
