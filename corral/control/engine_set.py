"""Open the engines of a control and read their events, so that one that cannot be reached holds up no other.

An engine that is not open yet is *away*: its cells are unknown, calls to it are repeated later, and its attempts count
as running. With one engine alone, a failure to open it ends the start, as does any failure but Unavailable.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import structlog

from corral.engines.base import CertifiedCluster, Engine, JobHints
from corral.kernel.errors import CorralError, Unavailable
from corral.kernel.ids import AttemptId, JobId
from corral.model.launch import EngineEvent
from corral.model.store_writes import JobWrite, LiveJob

log = structlog.get_logger()

PATIENCE: Final = 5.0
"""Seconds that control waits for an engine at the start while another one is open already."""
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 30.0
T = TypeVar("T")


class EngineSet:
    """The engines of one control, by name."""

    def __init__(
        self,
        engines: Mapping[str, Engine],
        report: Callable[[EngineEvent], None],
        opened_late: Callable[[], None],
        *,
        patience: float = PATIENCE,
    ) -> None:
        """`report` takes the engines' events; `opened_late` is called when one opens after control has begun."""
        self._engines, self._report, self._opened_late = engines, report, opened_late
        self._hinted = {name: engine for name, engine in engines.items() if isinstance(engine, JobHints)}
        self._patience = patience
        self.away: dict[str, Unavailable] = {
            name: Unavailable("engine-opening", f"The engine {name} is still being opened.") for name in engines
        }
        """The engines that are not open, with the reason."""
        self._failed: set[str] = set()
        self._begun = False
        self._one_open, self._all_tried = asyncio.Event(), asyncio.Event()

    def loops(self) -> Sequence[Coroutine[Any, Any, None]]:
        """Return what opens the engines and reads their events, to be run until cancelled.

        They raise the errors of engines that must end this control.
        """
        return [self._attend(engine) for engine in self._engines.values()]

    async def begin(self) -> None:
        """Wait until every engine is open, or until one is and the others had their time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._patience if len(self._engines) > 1 else None):
                await self._all_tried.wait()
        await self._one_open.wait()
        self._begun = True

    def require(self, name: str) -> None:
        """Raise Unavailable, with the reason, if an engine is away."""
        if (error := self.away.get(name)) is not None:
            raise Unavailable(error.code, error.message)

    def certificate_ends(self) -> dict[tuple[str, str], float]:
        """When the certificates of open engines' clusters end, in seconds since 1970, by engine and by whose they are."""
        return {
            (name, of): ends
            for name, engine in self._engines.items()
            if name not in self.away and isinstance(engine, CertifiedCluster)
            for of, ends in engine.certificate_ends.items()
        }

    def unseen(self, jobs: Sequence[LiveJob]) -> set[AttemptId]:
        """The attempts whose tasks are placed on an engine that is away: nobody can say that they are gone."""
        return {
            job.run.attempt_of(task)
            for job in (jobs if self.away else ())
            for task in job.tasks.values()
            if task.placement is not None and task.placement.node.partition("/")[0] in self.away
        }

    def tell_live(self, jobs: Iterable[LiveJob]) -> None:
        """Tell the open engines that keep something for whole jobs which jobs are not over."""
        live: frozenset[JobId] | None = None
        for engine in self._open_hinted():
            live = live if live is not None else frozenset(job.id for job in jobs)
            _tell(engine.live_jobs, live)

    def tell_over(self, jobs: Iterable[JobWrite]) -> None:
        """Tell them which of these jobs are over."""
        for engine in self._open_hinted():
            for job in jobs:
                if not job.live:
                    _tell(engine.job_over, job.id)

    def _open_hinted(self) -> list[JobHints]:
        return [engine for name, engine in self._hinted.items() if name not in self.away]

    async def _attend(self, engine: Engine) -> None:
        pause = _FIRST_PAUSE
        while not await self._is_open(engine):
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
        del self.away[engine.name]
        self._one_open.set()
        self._look()
        if self._begun:
            log.info("engine is open", engine=engine.name)
            self._opened_late()
        async for event in engine.watch():
            self._report(event)

    async def _is_open(self, engine: Engine) -> bool:
        """Open an engine; False if it must be tried again."""
        try:
            await engine.open()
        except CorralError as error:
            self._failed.add(engine.name)
            if not self._begun and (not isinstance(error, Unavailable) or len(self._failed) == len(self._engines)):
                raise
            log.warning("engine cannot be opened", engine=engine.name, code=error.code, message=error.message)
            self.away[engine.name] = Unavailable(error.code, error.message)
            self._look()
            return False
        return True

    def _look(self) -> None:
        if all(name in self._failed or name not in self.away for name in self._engines):
            self._all_tried.set()


def _tell(hint: Callable[[T], None], about: T) -> None:
    """Give an engine a hint; an engine may be a third-party plug-in, and no hint may end control."""
    try:
        hint(about)
    except Exception:
        log.exception("an engine failed on a hint")
