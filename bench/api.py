"""Time the job list and a big job's page; OpenPAI took ten seconds to list thirty thousand jobs."""

from __future__ import annotations

import time
from pathlib import Path

import httpx2

from bench.filled import BIG, fill
from bench.harness import running_server
from bench.stats import median, percentile

JOBS, TASKS, RUNS = 30_000, 2_000, 40
PAGE = 1_000
"""The largest page size that the API allows, in jobs."""
PAGES = (
    "/api/v3/jobs?limit=50&state=succeeded&user=user7",
    "/api/v3/jobs?limit=50&queue=vision&type=tensorflow&order=oldest",
    "/api/v3/jobs?limit=50&q=train-0123",
    "/api/v3/jobs?limit=50&tag=nightly",
)


def measure() -> dict[str, float]:
    """Milliseconds of the slowest kind of filtered page and of the big job's detail, as medians."""
    with running_server(prepare=_prepare) as server, server.client() as client:
        pages = {page: _times(client, page, expect_items=True) for page in PAGES}
        detail = _times(client, f"/api/v3/jobs/{BIG}")
        tasks = _times(client, f"/api/v3/jobs/{BIG}/tasks?limit={PAGE}", expect_items=True)
    figures = {f"page {number}": median(times) for number, times in enumerate(pages.values(), 1)}
    return {
        "page": max(figures.values()),
        "detail": median(detail),
        **figures,
        "page p99": max(percentile(times, 0.99) for times in pages.values()),
        "a page of 1,000 tasks": median(tasks),
    }


def _prepare(data: Path) -> None:
    fill(data, jobs=JOBS, big_tasks=TASKS)


def _times(client: httpx2.Client, path: str, *, expect_items: bool = False) -> list[float]:
    times = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        answer = client.get(path)
        body = answer.content
        times.append((time.perf_counter() - begun) * 1000)
        answer.raise_for_status()
        if expect_items and not answer.json()["items"]:
            raise RuntimeError(f"{path} answered an empty page: {body[:200]!r}")
    return times
