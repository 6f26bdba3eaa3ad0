"""Why: a device with a name costs three writes instead of one, and a cluster must be full soon all the same.

As `k8s-4000`, with nodes whose devices are given by claims; afterwards the API server says who has which device.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from bench.k8s_4000 import JOBS, beside, fill
from bench.k8s_bare import CLAIMS, objects_of
from bench.k8s_cluster import served_cluster


def measure() -> dict[str, float]:
    """Seconds from the first submission to the last pod's Running, and how many devices two claims have."""
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
