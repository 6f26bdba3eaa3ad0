"""`/metrics` for a reader with a token while 10,000 tasks run: control's answer, the page made of it, and its sending.

Every task has a value of each family of tasks, one device among them. Control's JSON is made and read as between the two
processes; the page is sent by front's HTTP server over loopback, a second time as within its five seconds. What short
calls take beside it is measured by `bench.metrics_beside`.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Final

import httpx2
import msgspec
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from bench.metrics_beside import beside
from bench.stats import median
from corral.api.application import metrics_answer
from corral.front import Server, configuration
from corral.model.metrics.samples import Samples, Value
from corral.model.metrics.task_families import TASK_FAMILIES, TASK_LABELS
from corral.service.metrics.exposition import page_of
from corral.settings import Settings
from corral.supervisor import listen
from corral.workers.shared_file import SharedFile

TASKS: Final = 10_000
_JOBS: Final = 1_250
_SENDS: Final = 9


def measure() -> dict[str, float]:
    """Lines, megabytes, and milliseconds: of control, of making the page, of one sending, and of calls beside it."""
    samples = _samples()
    begun = time.process_time()
    text = msgspec.json.encode(samples)
    told = time.process_time()
    made = page_of(text, Samples(), False)
    done = time.process_time()
    return {
        "lines": float(made.count(b"\n")),
        "size": len(made) / 1e6,
        "control": (told - begun) * 1000,
        "page": (done - told) * 1000,
        "send": asyncio.run(_sent(made)) * 1000,
        **beside(text),
    }


def _samples() -> Samples:
    values = []
    for number in range(TASKS):
        job, index = divmod(number, TASKS // _JOBS)
        names = (
            f"user{job % 40}",
            f"user{job % 40}~train-{job}",
            "worker",
            str(index),
            f"1m8gzq5ze{job:04}",
            f"q{job % 8}",
        )
        for family in TASK_FAMILIES:
            if family.labels[: len(TASK_LABELS)] == TASK_LABELS:
                more = ("0",) * (len(family.labels) - len(TASK_LABELS))
                values.append(Value(family.name, (*names, *more), number * 1.25))
    return Samples(tuple(values))


async def _sent(made: bytes) -> float:
    """Seconds from the request of the page to its last byte, the median of nine."""

    page = SharedFile()
    page.write(made)

    async def metrics(_: object) -> Response:
        return metrics_answer(page)

    listener = listen("127.0.0.1", 0)
    server = Server(configuration(Starlette(routes=[Route("/metrics", metrics)]), Settings()))
    serving = asyncio.create_task(server.serve_on(listener))
    await server.ready.wait()
    seconds = []
    async with httpx2.AsyncClient() as client:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/metrics"
        for _ in range(_SENDS):
            begun = time.perf_counter()
            found = await client.get(url)
            seconds.append(time.perf_counter() - begun)
            if found.content != made:
                raise RuntimeError("the page was not sent whole")
    serving.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await serving
    return median(seconds)
