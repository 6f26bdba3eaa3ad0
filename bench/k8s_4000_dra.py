"""Fill a cluster whose devices are given by DRA claims, which cost three writes a task instead of one.

The same load as `k8s-4000`. Afterwards the API server's objects show whether two claims hold the same device.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from bench.k8s_4000 import JOBS, beside, fill
from bench.k8s_bare import CLAIMS, objects_of
from bench.k8s_cluster import served_cluster


def measure() -> dict[str, float]:
    """Seconds from the first submission until the last pod is Running, and the number of devices that two claims hold."""
    with served_cluster(claims=True) as served:
        measured = asyncio.run(fill(served))
        held: Counter[tuple[str, str]] = Counter()
        for claim in served.list(f"{CLAIMS}?limit=1000"):
            results = claim["status"]["allocation"]["devices"]["results"]
            held.update((result["pool"], result["device"]) for result in results)
        if len(held) != JOBS:
            raise RuntimeError(f"{len(held)} devices are in claims, and {JOBS} tasks have one each")
        made = objects_of(served, claims=True)
    twice = float(sum(count > 1 for count in held.values()))
    return {**measured, "twice": twice, **beside(measured["seconds"], made, claims=True)}
