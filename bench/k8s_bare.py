"""Create Corral's objects with a plain client, as the baseline for the time that Corral adds.

On a fresh cluster the client creates the pods and claims that Corral made on another one; it makes no decisions. The
ratio of both times depends little on the machine and its load.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterator, Sequence
from typing import Any

import aiohttp

from bench.k8s_cluster import NAMESPACE, ServedCluster, played_cluster, until
from tests.testbeds.kubernetes.controlplane import ControlPlane

CONNECTIONS = 32
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
_OF_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "ownerReferences", "generation")

Pair = tuple[dict[str, Any], dict[str, Any] | None]
"""A pod and its claim, if it has one."""


def objects_of(served: ServedCluster, *, claims: bool) -> list[Pair]:
    """The server's pods and claims, without the fields that the API server sets."""
    made = {claim["metadata"]["name"]: claim for claim in served.list(f"{CLAIMS}?limit=1000")} if claims else {}
    return [(_fresh(pod), _claim_of(pod, made) if claims else None) for pod in served.pods()]


def seconds_for(pairs: Sequence[Pair], *, claims: bool) -> float:
    """Seconds until all of these run on a fresh cluster."""
    with played_cluster(claims=claims) as (plane, _):
        return asyncio.run(_write(plane, pairs))


def _fresh(thing: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in thing["metadata"].items() if key not in _OF_THE_SERVER}
    return {"metadata": metadata, "spec": thing["spec"]}


def _claim_of(pod: dict[str, Any], made: dict[str, dict[str, Any]]) -> dict[str, Any]:
    claim = made[pod["spec"]["resourceClaims"][0]["resourceClaimName"]]
    return {**_fresh(claim), "status": {"allocation": claim["status"]["allocation"]}}


async def _write(plane: ControlPlane, pairs: Sequence[Pair]) -> float:
    secure = ssl.create_default_context(cafile=str(plane.ca))
    connector = aiohttp.TCPConnector(limit=CONNECTIONS, ssl=secure)
    headers = {"Authorization": f"Bearer {plane.token}"}
    async with aiohttp.ClientSession(plane.url, headers=headers, connector=connector) as session:
        queue, begun = iter(pairs), time.perf_counter()
        await asyncio.gather(*(_write_all(session, queue) for _ in range(CONNECTIONS)))

        async def all_run() -> bool:
            async with session.get(PODS, params={"fieldSelector": "status.phase!=Running", "limit": 1}) as answer:
                return not (await answer.json())["items"]

        await until(all_run, "every pod runs", every=0.3)
        return time.perf_counter() - begun


async def _write_all(session: aiohttp.ClientSession, queue: Iterator[Pair]) -> None:
    for pod, claim in queue:
        if claim is not None:
            await _call(session, "POST", CLAIMS, {**claim, "status": {}})
        made = await _call(session, "POST", PODS, pod)
        if claim is not None:
            name = claim["metadata"]["name"]
            user = {"resource": "pods", "name": made["metadata"]["name"], "uid": made["metadata"]["uid"]}
            status = {**claim["status"], "reservedFor": [user]}
            await _call(session, "PATCH", f"{CLAIMS}/{name}/status", {"status": status})


async def _call(session: aiohttp.ClientSession, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    headers = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
    async with session.request(method, path, json=body, headers=headers) as answer:
        found: dict[str, Any] = await answer.json()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {found.get('message')}")
        return found
