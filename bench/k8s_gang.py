"""Time a gang of 512 pods until the last one is bound.

512 tasks of one device, all in one block of 100 nodes, on 500 nodes. The time runs from the REST call until a watcher
sees the last pod, which is bound from its creation on.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator

import aiohttp
import msgspec

from bench.k8s_cluster import BLOCK, NAMESPACE, PATIENCE_SECONDS, ServedCluster, get, job, served_cluster, submit, until
from bench.stats import median
from corral.engines.kubernetes.watch.pod_structs import Pod
from tests.testbeds.kubernetes.controlplane import ControlPlane

TASKS, ROUNDS = 512, 3


class _Event(msgspec.Struct):
    type: str
    object: Pod


def measure() -> dict[str, float]:
    """Seconds from a submission to the last pod bound: the median and the worst of several gangs in turn."""
    with served_cluster() as served:
        return asyncio.run(_rounds(served))


async def _rounds(served: ServedCluster) -> dict[str, float]:
    seconds, running = [], []
    async with served.session() as session:
        for at in range(ROUNDS):
            async with _watched(served.plane) as bound:
                begun = time.perf_counter()
                gang = await submit(session, job(f"gang-{at}", TASKS, topology={"required": "block"}))
                nodes = await asyncio.wait_for(_all_bound(bound), PATIENCE_SECONDS)
                seconds.append(time.perf_counter() - begun)
            blocks = {int(node.rpartition("-")[2]) // BLOCK for node in nodes}
            if len(blocks) != 1:
                raise RuntimeError(f"the gang is in {len(blocks)} blocks")

            async def runs(gang: str = gang) -> bool:
                return bool((await get(session, f"/api/v3/jobs/{gang}"))["tasks"]["running"] == TASKS)

            await until(runs, "the gang runs")
            running.append(time.perf_counter() - begun)
            async with session.post(f"/api/v3/jobs/{gang}/stop") as answer:
                answer.raise_for_status()

            async def gone() -> bool:
                return not await asyncio.to_thread(served.pods)

            await until(gone, "the gang's pods are gone", every=1.0)
    return {"seconds": median(seconds), "worst": max(seconds), "all seen running": median(running)}


async def _all_bound(bound: AsyncIterator[Pod]) -> list[str]:
    nodes = []
    async for pod in bound:
        nodes.append(pod.spec.node_name)
        if len(nodes) == TASKS:
            break
    return nodes


@contextlib.asynccontextmanager
async def _watched(plane: ControlPlane) -> AsyncIterator[AsyncIterator[Pod]]:
    """Every pod created from now on, as the watch reports it."""
    version = plane.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods?limit=1")["metadata"]["resourceVersion"]
    trust = ssl.create_default_context(cafile=str(plane.ca))
    url = f"{plane.url}/api/v1/namespaces/{NAMESPACE}/pods?watch=1&resourceVersion={version}"
    headers = {"Authorization": f"Bearer {plane.token}"}
    timeout = aiohttp.ClientTimeout(total=None)
    async with (
        aiohttp.ClientSession(headers=headers, timeout=timeout, read_bufsize=2**21) as session,
        session.get(url, ssl=trust) as answer,
    ):
        answer.raise_for_status()

        async def pods() -> AsyncIterator[Pod]:
            async for line in answer.content:
                event = msgspec.json.decode(line, type=_Event)
                if event.type == "ADDED" and event.object.spec.node_name:
                    yield event.object

        yield pods()
