"""The page of metrics for Prometheus: the scheduler's and front's own, written at most once every few seconds."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Final

import structlog

import corral
from corral.kernel.errors import CorralError
from corral.model.metrics.families import Metric
from corral.model.metrics.samples import Samples, Value
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.metrics.exposition import page_of, write_page
from corral.service.metrics.process import ProcessFigures, part_of_server
from corral.workers.shared_file import SharedFile

log = structlog.get_logger()
Page = bytes | SharedFile
"""The text of a page; a long one is in a file."""

_EVERY: Final = 5.0
"""Seconds for which a page is served again: anybody may ask for it."""
_PATIENCE: Final = 5.0
"""Seconds that the scheduler has to answer; Prometheus waits ten."""
_LONG: Final = 256 * 1024
"""Bytes of the scheduler's answer above which a worker writes the page; a shorter one takes some 30 ms."""


class Metrics:
    """Metrics of the whole server."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pages: dict[bool, asyncio.Task[Page]] = {}
        self._until: dict[bool, float] = {}
        self._failing = False
        self._process = ProcessFigures("front")

    async def page(self, actor: Actor | None) -> Page:
        """Prometheus' text: totals for everybody, and series by queue and task for those who may read both.

        Raises Forbidden for an actor who may not.
        """
        if actor is not None:
            await self._context.check(actor, "metrics.read", Resource("queue"))
        everybody, now = actor is None, time.monotonic()
        made = self._pages.get(everybody)
        if made is None or (made.done() and now >= self._until[everybody]):
            self._until[everybody] = now + _EVERY
            made = self._pages[everybody] = asyncio.create_task(self._make(everybody=everybody))
        return await asyncio.shield(made)

    async def _make(self, *, everybody: bool) -> Page:
        told = await self._ask_control()
        own = [
            Value(Metric.INFO, (corral.__version__,), 1.0),
            Value(Metric.SCHEDULER_UP, (), float(told is not None)),
            part_of_server("front", ready=True),
        ]
        if told is None:
            own.append(part_of_server("control", ready=False, phase="unknown"))
        return await self._written(told, Samples(tuple(own)) + self._process.samples(), everybody=everybody)

    async def _written(self, told: SharedFile | None, own: Samples, *, everybody: bool) -> Page:
        """The text of a page: a long one is written by a worker, because a thread would delay all other calls.

        Neither the scheduler's answer nor the page is ever in one piece in the event loop. The page is written in a
        thread while the workers have too much to do.
        """
        if told is not None and told.size > _LONG:
            with contextlib.suppress(CorralError, OSError):
                made = SharedFile()
                await self._context.run_in_worker(False, write_page, told.path, made.path, own, everybody)
                return made
        return await asyncio.to_thread(lambda: page_of(told.read() if told is not None else b"", own, everybody))

    async def _ask_control(self) -> SharedFile | None:
        """The scheduler's metrics as it told them; None if it does not answer, which the page itself says."""
        try:
            async with asyncio.timeout(_PATIENCE):
                told = await self._context.control.collect("/metrics")
        except (CorralError, OSError) as error:
            if not self._failing:
                log.warning("the scheduler tells no metrics", error=str(error) or "no answer in time")
            self._failing = True
            return None
        self._failing = False
        return told
