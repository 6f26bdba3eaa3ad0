"""Time OpenPAI's REST API on a full store; OpenPAI took ten seconds for its job list and three for a big job."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import httpx2

from bench.harness import Server, running_server
from bench.openpai_filled import BIG, BIG_USER, fill, protocol
from bench.stats import median, percentile

JOBS, TASKS, RUNS = 30_000, 2_000, 30
SUBMISSIONS, CONNECTIONS = 1_500, 16
DEFAULT = "/api/v2/jobs"
SHORT = "/api/v2/jobs?limit=50"
DETAIL = f"/api/v2/jobs/{BIG_USER}~{BIG}"
OTHERS = {
    "filtered": "/api/v2/jobs?limit=50&state=SUCCEEDED,FAILED&username=user7&withTotalCount=true",
    "searched": "/api/v2/jobs?limit=50&keyword=_0123&withTotalCount=true",
    "ordered": "/api/v2/jobs?limit=50&order=totalGpuNumber,DESC",
    "tagged": "/api/v2/jobs?limit=50&tagsContain=nightly&jobPriority=prod",
}
SETTINGS = {
    "CORRAL_RETENTION_DAYS": "0",
    "CORRAL_OPENPAI_CALLS_PER_MINUTE": "0",
    "CORRAL_OPENPAI_LISTS_PER_MINUTE": "0",
    "CORRAL_OPENPAI_SUBMITS_PER_HOUR": "0",
}


def measure() -> dict[str, float]:
    """Milliseconds of OpenPAI's list and of a big job, as medians, and the number of jobs accepted a second."""
    with running_server(settings=SETTINGS, prepare=_prepare) as server:
        with server.client() as client:
            whole = _times(client, DEFAULT, 5_000)
            short = _times(client, SHORT, 50)
            others = {name: median(_times(client, path)) for name, path in OTHERS.items()}
            detail = _times(client, DETAIL)
        rate = asyncio.run(_submit_many(server))
    return {
        "list": median(whole),
        "page": median(short),
        "detail": median(detail),
        "submissions": rate,
        **others,
        "list p95": percentile(whole, 0.95),
        "page p95": percentile(short, 0.95),
        "detail p95": percentile(detail, 0.95),
    }


def _prepare(data: Path) -> None:
    fill(data, jobs=JOBS, big_tasks=TASKS)


def _times(client: httpx2.Client, path: str, expected: int = 0) -> list[float]:
    times = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        answer = client.get(path)
        body = answer.content
        times.append((time.perf_counter() - begun) * 1000)
        answer.raise_for_status()
        found = answer.json()
        if not found or (expected and len(found) != expected):
            raise RuntimeError(f"{path} answered otherwise than expected: {body[:200]!r}")
    return times


async def _submit_many(server: Server) -> float:
    """Jobs accepted a second; each is durable before its answer."""
    numbers = iter(range(SUBMISSIONS))
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "text/yaml"}
    limits = httpx2.Limits(max_connections=CONNECTIONS)
    async with httpx2.AsyncClient(
        base_url=server.url, headers=headers, limits=limits, timeout=60, trust_env=False
    ) as client:

        async def submit() -> None:
            for number in numbers:
                answer = await client.post(DEFAULT, content=protocol(f"Submitted_{number}", priority="test"))
                if answer.status_code != 202:
                    raise RuntimeError(f"a submission was refused: {answer.text[:300]}")

        begun = time.perf_counter()
        await asyncio.gather(*(submit() for _ in range(CONNECTIONS)))
        return SUBMISSIONS / (time.perf_counter() - begun)
