"""Count the API server's writes for one task; they bound how fast many tasks can start.

Jobs of one task and gangs, with counted devices and with claims, run on nodes that kwok simulates. The writes are read
from the API server's own audit log. kwok's status updates, deletions and the writes made once a job do not count.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from bench.k8s_cluster import ServedCluster, get, job, served_cluster, submit, until

NODES, DEVICES, GANG = 16, 8, 16
TASKS = NODES * DEVICES
_ONCE_A_JOB = frozenset({"secrets", "configmaps"})
_OF_NODES = frozenset({"pods/status", "nodes/status", "leases"})
"""Resources that kubelets write, here kwok in their place."""


def measure() -> dict[str, float]:
    """API server writes per task."""
    with served_cluster(NODES, audit=True) as served:
        counted = asyncio.run(_started(served, jobs=TASKS, size=1))
    with served_cluster(NODES, audit=True, claims=True) as served:
        claimed = asyncio.run(_started(served, jobs=TASKS, size=1))
    with served_cluster(NODES, audit=True, claims=True) as served:
        gang = asyncio.run(_started(served, jobs=TASKS // GANG, size=GANG))
    return {"counted": _sum(counted), "claimed": _sum(claimed), "gang": _sum(gang), **_named("gang", gang)}


async def _started(served: ServedCluster, *, jobs: int, size: int) -> Counter[tuple[str, str]]:
    """Writes until all of these jobs ran, by verb and resource."""
    before = served.plane.writes()
    async with served.session() as session:
        for number in range(jobs):
            await submit(session, job(f"job-{number}", size))

        async def none_waits() -> bool:
            return not (await get(session, "/api/v3/jobs?limit=1&state=waiting&state=starting"))["items"]

        await until(none_waits, "every job runs")
    if len(served.pods()) != TASKS:
        raise RuntimeError(f"{len(served.pods())} pods instead of {TASKS}")
    return served.plane.writes() - before


def _counts(what: tuple[str, str]) -> bool:
    verb, resource = what
    return not verb.startswith("delete") and resource not in _ONCE_A_JOB | _OF_NODES


def _sum(written: Counter[tuple[str, str]]) -> float:
    return sum(count for what, count in written.items() if _counts(what)) / TASKS


def _named(whose: str, written: Counter[tuple[str, str]]) -> dict[str, float]:
    return {f"{whose}: {' '.join(what)}": count / TASKS for what, count in written.items() if _counts(what)}
