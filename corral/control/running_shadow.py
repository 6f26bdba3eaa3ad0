"""A candidate that goes on beside the policy in force: its report is made anew each hour, by a forked process.

Between two reports nothing of it is kept in memory but the last report. So it goes on from the journal after a restart,
and its report is that of a comparison from the beginning.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import msgspec
import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from corral.control.shadow_requests import ShadowRequests
from corral.kernel.errors import Conflict, CorralError, InvalidInput, NotFound, Unavailable
from corral.model.policy_shadow import (
    STOPPED,
    RunningQuestion,
    RunningShadow,
    ShadowQuestion,
    ShadowReport,
)
from corral.model.records import rfc3339
from corral.model.what_if_progress import DONE, FAILED, RUNNING, WhatIfRefusal

FILE: Final = "running-shadow.json"
AFTER_THE_HOUR: Final = 90.0
"""Seconds after an hour at which it is reported: by then its decisions are paired."""
_HOUR: Final = 3600.0
_LOOK_SECONDS: Final = 10.0
"""Seconds between two looks at the clock, which may be set meanwhile."""
_PATIENCE: Final = 300.0
"""Seconds that a report waits for its turn."""
_MOST_FILE: Final = 16 << 20
"""Bytes of the file: a report has 8 MiB at most."""
_NUMBER: Final = "running"
"""The number of its requests, under which their progress is told; others have 32 digits."""
_NOTHING_YET: Final = frozenset({"nothing-to-compare", "nothing-since"})
_LATER: Final = frozenset({"comparison-busy", "question-busy"})
"""Refusals after which the next hour is tried."""

log = structlog.get_logger()


class _Kept(msgspec.Struct):
    """What is written to the file."""

    asked: RunningQuestion
    asked_at: float
    state: str = RUNNING
    reported_at: float | None = None
    trouble: str = ""
    error: WhatIfRefusal | None = None
    report: ShadowReport | None = None


class RunningShadows:
    """One candidate at a time that goes on beside the policy in force."""

    def __init__(
        self,
        requests: ShadowRequests,
        journal: Callable[[], Path | None],
        now: Callable[[], float],
        check: Callable[[ShadowQuestion], Awaitable[None]],
        look_seconds: float = _LOOK_SECONDS,
    ) -> None:
        """`journal` is the folder of the server's journal, if it keeps one; the file is beside it.

        `check` raises InvalidInput for a candidate that the scheduler cannot follow, and Unavailable while it starts.
        """
        self._requests = requests
        self._journal = journal
        self._now = now
        self._check = check
        self._look_seconds = look_seconds
        self._kept: _Kept | None = None
        self._task: asyncio.Task[None] | None = None
        self._next_at: float | None = None
        self._is_loaded = False
        self._changing = asyncio.Lock()
        """Held while it is begun or stopped."""

    def routes(self) -> tuple[Route, ...]:
        """The routes of control's door."""
        return (
            Route("/running-shadow", self._told),
            Route("/running-shadow", self._begin, methods=["POST"]),
            Route("/running-shadow/report", self._reported),
            Route("/running-shadow/stop", self._stop, methods=["POST"]),
        )

    async def run(self, begins: asyncio.Event) -> None:
        """Go on with what ran before the restart once control leads, until cancelled."""
        await begins.wait()
        try:
            self._kept = await asyncio.to_thread(self._load)
            self._is_loaded = True
            if self._kept is not None and self._kept.state == RUNNING:
                self._task = asyncio.create_task(self._follow(self._kept))
            await asyncio.Event().wait()
        finally:
            await self._end_task()

    async def begin(self, asked: RunningQuestion) -> RunningShadow:
        """Begin; raises Conflict `shadow-running` if one goes on, NotFound `no-journal`, and as `check` does."""
        async with self._changing:
            kept = self._known()
            if kept is not None and kept.state == RUNNING:
                name, user = kept.asked.question.candidate, kept.asked.user
                raise Conflict("shadow-running", f"The shadow of {name}, which {user} began, goes on; stop it first.")
            self._requests.folder()
            await self._check(asked.question)
            self._kept = kept = _Kept(asked, self._now())
            await self._save(kept)
            self._task = asyncio.create_task(self._follow(kept))
            return self.told()

    async def stop(self) -> RunningShadow:
        """Stop it, and keep its last report; one that has ended stays as it is. Raises NotFound `no-running-shadow`."""
        async with self._changing:
            kept = self._there()
            await self._end_task()
            if kept.state == RUNNING:
                kept.state = STOPPED
                await self._save(kept)
            return self.told()

    def told(self) -> RunningShadow:
        """How it stands; raises NotFound `no-running-shadow` if none was begun."""
        kept = self._there()
        question = kept.asked.question
        is_running = kept.state == RUNNING
        return RunningShadow(
            kept.state,
            question.candidate,
            kept.asked.user,
            rfc3339(kept.asked_at),
            rfc3339(question.since),
            rfc3339(_end(question)),
            question.anew,
            None if kept.report is None or kept.reported_at is None else rfc3339(kept.reported_at),
            rfc3339(self._next_at) if is_running and self._next_at is not None else None,
            self._requests.progress(_NUMBER) if is_running else None,
            kept.trouble,
            kept.error,
        )

    def report(self) -> ShadowReport:
        """Its last report; raises NotFound `no-running-shadow` and `no-report-yet`."""
        report = self._there().report
        if report is None:
            raise NotFound("no-report-yet", "The shadow has no report yet; the first one is made after the next hour.")
        return report

    # ---- going on

    async def _follow(self, kept: _Kept) -> None:
        """Report now and after each hour, until its end."""
        try:
            while kept.state == RUNNING:
                await self._renew(kept)
                if kept.state == RUNNING:
                    await self._wait_until(_next(self._now(), kept.asked.question))
        except Exception as error:  # a fault of ours must end the shadow, not control
            log.exception("running shadow failed", error=str(error))
            _fail(kept, Unavailable("shadow-failed", "The shadow ended by an error of the server; its log says more."))
            await self._save(kept)

    async def _renew(self, kept: _Kept) -> None:
        """Make the report up to now."""
        question = kept.asked.question
        now = self._now()
        until = min(now, _end(question))
        kept.trouble = ""
        try:
            renewed = msgspec.structs.replace(question, until=until, idle_until=until)
            data = await self._requests.answer(renewed, _NUMBER, _PATIENCE)
            kept.report, kept.reported_at = msgspec.json.decode(data, type=ShadowReport), until
            if kept.report.problem:
                raise InvalidInput("journal-ends", kept.report.problem)
        except CorralError as error:
            if error.code in _LATER:
                kept.trouble = error.message
            elif error.code not in _NOTHING_YET:
                _fail(kept, error)
        if kept.state == RUNNING and now >= _end(question):
            kept.state = DONE
        await self._save(kept)

    async def _wait_until(self, at: float) -> None:
        self._next_at = at
        try:
            while (left := at - self._now()) > 0:  # noqa: ASYNC110 - nothing tells that the clock was set
                await asyncio.sleep(min(left, self._look_seconds))
        finally:
            self._next_at = None

    async def _end_task(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    # ---- what is kept

    def _known(self) -> _Kept | None:
        if not self._is_loaded:
            raise Unavailable("control-starting", "The server is starting; try again in a second.")
        return self._kept

    def _there(self) -> _Kept:
        kept = self._known()
        if kept is None:
            raise NotFound("no-running-shadow", "No candidate goes on beside the policy in force on this server.")
        return kept

    def _file(self) -> Path | None:
        folder = self._journal()
        return None if folder is None else folder.parent / FILE

    def _load(self) -> _Kept | None:
        """What the file has; None if it is absent, or cannot be read."""
        file = self._file()
        if file is None or not file.is_file():
            return None
        try:
            with file.open("rb") as opened:
                data = opened.read(_MOST_FILE + 1)
            return msgspec.json.decode(data, type=_Kept)
        except (OSError, msgspec.DecodeError) as error:
            log.warning("running shadow cannot be read; it does not go on", file=str(file), error=str(error))
            return None

    async def _save(self, kept: _Kept) -> None:
        """Write the file. A full disk costs that it goes on after a restart, and is logged."""
        file = self._file()
        if file is None:
            return
        writing = asyncio.ensure_future(asyncio.to_thread(_written, file, msgspec.json.encode(kept)))
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:  # the next state must not be written at the same time
            await asyncio.gather(writing, return_exceptions=True)
            raise
        except OSError as error:
            log.warning("running shadow is not written; a restart ends it", file=str(file), error=str(error))

    # ---- control's door

    async def _begin(self, request: Request) -> Response:
        try:
            asked = msgspec.json.decode(await request.body(), type=RunningQuestion)
        except msgspec.DecodeError as error:
            raise InvalidInput("bad-question", f"Control does not understand the question: {error}.") from None
        return _json(await self.begin(asked))

    async def _told(self, _: Request) -> Response:
        return _json(self.told())

    async def _reported(self, _: Request) -> Response:
        return _json(self.report())

    async def _stop(self, _: Request) -> Response:
        return _json(await self.stop())


def _next(now: float, question: ShadowQuestion) -> float:
    """When the next report is made."""
    hour = ((now - AFTER_THE_HOUR) // _HOUR + 1) * _HOUR + AFTER_THE_HOUR
    return min(hour, max(now, _end(question)))


def _end(question: ShadowQuestion) -> float:
    assert question.until is not None
    return question.until


def _fail(kept: _Kept, error: CorralError) -> None:
    kept.state = FAILED
    kept.error = WhatIfRefusal(error.status, error.code, error.message)


def _written(file: Path, data: bytes) -> None:
    part = file.with_suffix(".part")
    with contextlib.suppress(FileNotFoundError):
        part.unlink()
    with open(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as opened:
        opened.write(data)
    os.replace(part, file)


def _json(value: object) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")
