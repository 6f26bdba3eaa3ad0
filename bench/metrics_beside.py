"""The API beside the page of 10,000 tasks: short calls while a reader asks for `/metrics`, and while none does.

Front's HTTP server, its page and its workers are the real ones. Control's answer comes over a Unix socket from another
process, as do the calls of both clients.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.queues import Queue
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from corral.api.application import metrics_answer
from corral.front import ControlSocket, Server, configuration
from corral.service.actor import Actor
from corral.service.metrics.metrics import Metrics
from corral.settings import Settings
from corral.supervisor import listen
from corral.workers.pool import Workers

SECONDS: Final = 20.0
_APART: Final = 0.01
_ASKED_EVERY: Final = 5.5
"""Seconds between two questions for the page, each of which is made anew."""
_PAGES: Final = 3
_LONG_PIECE: Final = 0.001
"""Seconds of processor time from which a callback counts as a longer one."""
_SPAWN: Final = multiprocessing.get_context("spawn")


def beside(told: bytes) -> dict[str, float]:
    """Milliseconds: the 99th percentile of short calls alone and beside the page of this answer, and more by it.

    `piece` is the processor time of the longest callback of the event loop beside it, `loop` of all that take 1 ms or
    more, for one page.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "control"
        control = _SPAWN.Process(target=_control, args=(str(path), told))
        control.start()
        try:
            while not path.exists():
                if not control.is_alive():
                    raise RuntimeError("control's stand-in ended before it answered")
                time.sleep(0.05)
            alone, together, pieces = asyncio.run(_front(path))
        finally:
            control.terminate()
            control.join()
    return {
        "alone-p99": _part(alone, 0.99),
        "beside-p99": _part(together, 0.99),
        "more": _part(together, 0.99) - _part(alone, 0.99),
        "piece": max(pieces, default=0.0) * 1000,
        "loop": sum(pieces) * 1000 / _PAGES,
    }


@contextlib.contextmanager
def _pieces() -> Iterator[list[float]]:
    """The seconds of processor time of each longer callback of the event loop in the block, the longest one last."""
    found: list[float] = []
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        begun = time.thread_time()
        run(handle)
        taken = time.thread_time() - begun
        if taken >= _LONG_PIECE:
            found.append(taken)

    asyncio.Handle._run = timed  # type: ignore[method-assign,assignment]
    try:
        yield found
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]
        found.sort()


def _part(seconds: list[float], part: float) -> float:
    return sorted(seconds)[int(len(seconds) * part)] * 1000


async def _front(path: Path) -> tuple[list[float], list[float], list[float]]:
    """The seconds of the calls without and with a reader of the page, and of longer callbacks with one."""
    workers, control = Workers(), ControlSocket(path)

    async def check(*_: Any) -> None: ...

    async def run_in_worker(_: bool, function: Any, *arguments: Any) -> Any:
        return await workers.call(function, *arguments)

    context = SimpleNamespace(control=control, check=check, run_in_worker=run_in_worker)
    page, root = Metrics(cast(Any, context)), Actor("root", role="admin")

    async def metrics(_: Request) -> Response:
        return metrics_answer(await page.page(root))

    async def small(_: Request) -> Response:
        return Response(json.dumps({"items": list(range(20))}), media_type="application/json")

    listener = listen("127.0.0.1", 0)
    server = Server(configuration(Starlette(routes=[Route("/metrics", metrics), Route("/small", small)]), Settings()))
    serving = asyncio.create_task(server.serve_on(listener))
    await server.ready.wait()
    await page.page(None)  # the worker starts
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    found, pieces = [], list[float]()
    try:
        for read in (False, True):
            heard: Queue[list[float]] = _SPAWN.Queue()
            caller = _SPAWN.Process(target=_caller, args=(url, heard))
            reader = _SPAWN.Process(target=_reader, args=(url,))
            if read:
                reader.start()
            caller.start()
            with _pieces() as pieces:
                found.append(await asyncio.to_thread(heard.get, True, 10 * SECONDS))
                if read:
                    await asyncio.to_thread(reader.join)
                    if reader.exitcode:
                        raise RuntimeError("the page was not read")
            await asyncio.to_thread(caller.join)
    finally:
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        await workers.close()
        await control.close()
    return found[0], found[1], pieces


def _caller(url: str, heard: Queue[list[float]]) -> None:
    """Call again and again, and put the seconds of each call."""
    seconds = []
    with httpx2.Client() as client:
        client.get(f"{url}/small")
        end = time.perf_counter() + SECONDS
        while (begun := time.perf_counter()) < end:
            client.get(f"{url}/small")
            seconds.append(time.perf_counter() - begun)
            time.sleep(max(0.0, _APART - seconds[-1]))
    heard.put(seconds)


def _reader(url: str) -> None:
    """Read the page some times, each of which it is made anew."""
    with httpx2.Client(timeout=60) as client:
        for _ in range(_PAGES):
            found = client.get(f"{url}/metrics")
            if found.status_code != 200 or b"corral_scheduler_up 1" not in found.content:
                raise RuntimeError("the page was not told")
            time.sleep(_ASKED_EVERY)


def _control(path: str, told: bytes) -> None:
    async def metrics(_: Request) -> Response:
        return Response(told, media_type="application/json")

    application = Starlette(routes=[Route("/metrics", metrics)])
    uvicorn.run(application, uds=path, log_config=None, access_log=False, lifespan="off")
