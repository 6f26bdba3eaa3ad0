"""A stand-in for control's API over an idle scheduler, for answers that the store does not have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final, cast

import httpx2
import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from corral.control.core.configuration import Configured
from corral.control.core.core import Core
from corral.control.core.driver import Work
from corral.control.core.inputs import Recovered
from corral.control.core.machines import Machines
from corral.control.core.world import World
from corral.control.journal.rules import Rules
from corral.control.scheduler_views import Views
from corral.control.what_if.changes import Changes, changes_of
from corral.control.what_if.course import play
from corral.kernel.clock import Clock
from corral.kernel.errors import CorralError, Unavailable
from corral.launcher import LaunchPolicy
from corral.model.policy_shadow import STOPPED, RunningQuestion, RunningShadow, ShadowQuestion
from corral.model.records import rfc3339
from corral.model.what_if import Courses, Question
from corral.model.what_if_progress import RUNNING
from corral.scheduler import BuiltinPlanner, find_policy
from corral.service.control_client import NoControl
from tests.control.forecast.unasked import no_forecasts
from tests.control.journal.journals import Journaled
from tests.control.shadow.shadows import beside

BEGIN: Final = 1_000_000_000.0


class IdleScheduler(NoControl):
    """Control's API with no job running or waiting."""

    def __init__(self, clock: Clock) -> None:
        self.shadow: RunningQuestion | None = None
        """The running shadow."""
        self.shadow_state = RUNNING
        control = SimpleNamespace(world=World(BuiltinPlanner()), clock=clock, policy=find_policy())

        async def world_is_there() -> Any:
            return control

        self._app = Starlette(
            routes=Views(cast(Any, world_is_there), no_forecasts()).routes(), exception_handlers={CorralError: _refusal}
        )

    async def request(self, path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        """Control's answer to the overview, to what-if questions and other clusters and series; else unavailable."""
        if path.endswith("/progress"):
            return None
        if path.partition("?")[0] == "/what-if":
            return _courses(msgspec.convert(body, Question))
        if path.partition("?")[0] == "/policy-shadow":
            return _shadow(msgspec.convert(body, ShadowQuestion))
        if path.startswith("/running-shadow"):
            return self._running(path, body)
        if path.startswith("/health/ranks/"):
            return {"items": []}
        if path in ("/engines/use", "/health"):
            return []
        if path == "/parts":
            return [{"kind": "scheduler", "name": "scheduler", "state": "ok"}]
        if path == "/health/signs":
            return len(body["signs"])
        if path == "/health/act":
            return {"node": body["node"], "state": "healthy", "score": 0.0}
        if path.startswith("/overview/stays?"):
            return {"at": BEGIN, "seconds": 86400.0}
        if path == "/scalars":
            return 0
        if path == "/series":
            return [[], 0]
        if not path.startswith("/overview/"):
            raise Unavailable("no-control", "Nobody answers.")
        transport = httpx2.ASGITransport(app=self._app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://control") as client:
            answer = await client.get(path)
        if answer.status_code >= 400:
            raise CorralError(**answer.json())
        return answer.json()

    def _running(self, path: str, body: Any) -> Any:
        """A running shadow that has compared a journal of two jobs."""
        if path == "/running-shadow" and body is not None:
            if self.shadow is not None and self.shadow_state == RUNNING:
                raise CorralError("shadow-running", "The shadow of srtf goes on; stop it first.")
            self.shadow, self.shadow_state = msgspec.convert(body, RunningQuestion), RUNNING
        if self.shadow is None:
            raise CorralError("no-running-shadow", "No candidate goes on.")
        if path.endswith("/report"):
            return _shadow(self.shadow.question)
        if path.endswith("/stop"):
            self.shadow_state = STOPPED
        question, state = self.shadow.question, self.shadow_state
        assert question.until is not None
        at, begin, end = map(rfc3339, (BEGIN, question.since, question.until))
        told = RunningShadow(state, question.candidate, self.shadow.user, at, begin, end, question.anew, reported_at=at)
        return msgspec.to_builtins(told)


def _courses(question: Question) -> Any:
    """The courses of a cluster without machines, played in this process."""
    core = Core(Recovered(Configured(find_policy())), LaunchPolicy(), Machines(), BEGIN)
    changes = changes_of(question, core, BEGIN, core.policy, lambda clusters: ())
    played = [
        tuple(play(core, each, (), now=BEGIN, horizon=question.horizon_seconds, seed=seed) for seed in question.seeds)
        for each in (Changes(), changes)
    ]
    return msgspec.to_builtins(Courses(BEGIN, 0, (), played[0], played[1]))


def _shadow(question: ShadowQuestion) -> Any:
    """A comparison with a journal of two jobs."""
    played = Journaled(Rules("fifo", documents=False), nodes=1)
    for name in ("one", "two"):
        played.submit(name, 0.0, devices=4, work=Work(100.0))
    played.run(1000.0)
    return msgspec.to_builtins(beside(played, question.policy, question.documents, most=question.differences))


async def _refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, CorralError)
    return JSONResponse({"code": error.code, "message": error.message}, status_code=error.status)
