"""Control's API for front: HTTP on a private Unix socket, because front has neither engines nor nodes in memory.

With replicas, fronts on other machines connect with mutual TLS, authenticated by the server's key.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from socket import socket as Socket
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from corral.control.caller_disconnect import while_connected
from corral.control.core.configuration import planner_settings, scheduler_policy
from corral.control.estimates.given import given_by, given_in
from corral.control.exec_relay import carry
from corral.control.forecast.estimates import given_estimate
from corral.control.forecast.forecasts import SECONDS, Forecast, Forecasts
from corral.control.guarantee_check import broken_guarantees
from corral.control.hangs.bundles import Bundles
from corral.control.health.door import HealthDoor
from corral.control.health.keeper import HealthKeeper
from corral.control.journal.records import documents_of
from corral.control.journal.rules import Rules
from corral.control.log_api import LogApi
from corral.control.loop import Control
from corral.control.machine_parts import machine_parts
from corral.control.metrics.control_metrics import ControlMetrics
from corral.control.metrics.series_keeper import SeriesKeeper
from corral.control.metrics.series_sources import is_longer
from corral.control.metrics.told_scalars import CurvesOfTasks, task_that_runs
from corral.control.running_shadow import RunningShadows
from corral.control.scheduler_views import Views
from corral.control.server_parts import parts_of, versions_of
from corral.control.shadow.lives import CandidateRules
from corral.control.shadow_requests import ShadowRequests
from corral.control.what_if.questions import Questions
from corral.engines.base import Engine, ExecSession, LoopbackPorts, ObjectListing, SharedCluster, TaskFolders
from corral.kernel.errors import Conflict, CorralError, InvalidInput, NotFound, Unavailable
from corral.kernel.ids import AttemptId, JobId
from corral.model.cluster_use import ClusterUse
from corral.model.configuration import configuration_of
from corral.model.document_revisions import ConfigurationQuestion, GuaranteeFinding
from corral.model.metrics.samples import Samples
from corral.model.metrics.told_scalars import ToldScalars
from corral.model.policy_shadow import ShadowQuestion
from corral.model.requests import GangRequest
from corral.model.series import SeriesQuestion, SeriesView
from corral.model.start_estimates import Outlook
from corral.model.store_writes import IntentKind
from corral.model.what_if import Question
from corral.monitor.series.store import SeriesStore
from corral.scheduler.views import ahead_of, job_can_start
from corral.service.health import descriptor_shortages
from corral.service.http_ticks import every_second
from corral.service.mutual_tls import TlsFiles
from corral.service.tls_acceptor import Acceptor, HandshakeLimit, acceptor_settings
from corral.service.watched_socket import WatchedSocket
from corral.spec.configuration_file import load_document
from corral.storage.log_sources import LogSources
from corral.store.cluster_views import CONTAINER_RUNTIME

if TYPE_CHECKING:
    from corral.monitor.series.prometheus import PrometheusSeries

_STORE_SECONDS = 0.5
"""Seconds that the store has to tell what the parts of the server are shown with; front waits for 2 in all."""
_MOST_SECONDS_OF_USE = 10.0
"""Seconds that one cluster may take to say how it is used."""
_MOST_BEFORE = 5
"""Jobs ahead of another one that an explanation names at most."""
_MANY = 512
"""Waiting gangs above which their order is not computed for an explanation: it takes a tenth of a second and more."""
_LONGEST_NUMBER = 64
"""Characters of the number of a question."""
_KEPT_SECONDS = 60
"""Seconds for which an idle connection is kept: fronts use one again for five (httpx2)."""
_LONGEST_STOP = 3600.0
"""Seconds that `corral down --stop-jobs` may wait for jobs to end."""


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers, and with a limit on TLS handshakes."""

    async def main_loop(self) -> None:
        await every_second(self.on_tick, asyncio.Event())  # until cancelled

    async def startup(self, sockets: list[Socket] | None = None) -> None:
        await super().startup([] if self.config.ssl else sockets)
        if self.config.ssl:
            limit = HandshakeLimit()
            settings = acceptor_settings(self, limit.enter, limit.hand_on)
            self.servers += [Acceptor(each, settings) for each in sockets or ()]  # type: ignore[misc]

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class ReplicaListener(NamedTuple):
    """A listening socket on the network between replicas, with the certificates for mutual TLS."""

    listener: Socket
    tls_files: TlsFiles


class ControlApi:
    """Control's queries and exec sessions, for the server's own user and for processes with its key."""

    def __init__(
        self,
        control: Control,
        path: Path,
        replica_listener: ReplicaListener | None = None,
        logs: LogSources | None = None,
        agents: Mapping[str, ASGIApp] | None = None,
        forecast_seconds: float = SECONDS,
        health: HealthKeeper | None = None,
        series: SeriesStore | None = None,
        longer_series: PrometheusSeries | None = None,
    ) -> None:
        """`replica_listener` is the listener for fronts of other replicas; `logs` are this machine's and the archive's.

        `agents` serve the calls of engines' agents, by engine. `forecast_seconds` may pass between two forecasts.
        `series` keeps the metrics and the reports of jobs; None keeps none. `longer_series` has those of before.
        """
        self._forecasts = Forecasts(
            control.store, lambda: control.core, lambda: control.revision, control.clock.now, seconds=forecast_seconds,
            correction=lambda: control.estimates.correction, told=self._keep,
        )  # fmt: skip
        self.log_sources = logs
        """The logs of this machine and the archive's."""
        self.bundles: Bundles | None = None
        """What was found of jobs that hung; None keeps none."""
        self._agents = agents or {}
        self._health = HealthDoor(health)
        self._control = control
        self._path = path
        self._replica_listener = replica_listener
        self._questions: Questions | None = None
        self._shadows = ShadowRequests(lambda: control.journal_folder, control.clock.now)
        self._running_shadow = RunningShadows(
            self._shadows, lambda: control.journal_folder, control.clock.now, self._check_candidate
        )
        self.metrics = ControlMetrics(control)
        """What `/metrics` tells of this control."""
        self._longer_series = longer_series
        self._keeper: SeriesKeeper | None = None
        if series is not None:
            self._keeper = SeriesKeeper(series, self._known_metrics, control.clock.now, self.metrics.of_machines)
            control.on_stored.append(self._keeper.stored)
            self.metrics.take_scalars = self._keeper.take_scalars
        self._curves = CurvesOfTasks(self.metrics.told_scalars, control.clock.now)

    async def serve(self) -> None:
        """Serve until cancelled; the socket's file is replaced at every start."""
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        async with contextlib.aclosing(self._forecasts), asyncio.TaskGroup() as group:
            group.create_task(self._serve(uds=str(self._path)))
            group.create_task(self._running_shadow.run(self._control.ready))
            if self._keeper is not None:
                group.create_task(self._keeper.run(self._control.ready))
            if self._replica_listener is not None:
                tls_files = self._replica_listener.tls_files
                files = {
                    "ssl_certfile": tls_files.certificate,
                    "ssl_keyfile": tls_files.key,
                    "ssl_ca_certs": str(tls_files.authority),
                }
                mutual = {**files, "ssl_cert_reqs": ssl.CERT_REQUIRED}
                group.create_task(self._serve(self._replica_listener.listener, **mutual))

    async def _serve(self, *listeners: Socket, **where: Any) -> None:
        config = uvicorn.Config(
            self._application(),
            log_config=None,
            lifespan="off",
            access_log=False,
            proxy_headers=False,
            ws=WatchedSocket,
            ws_per_message_deflate=False,
            timeout_keep_alive=_KEPT_SECONDS,
            **where,
        )
        server = _Server(config)
        try:
            await server.serve(list(listeners) or None)
        except asyncio.CancelledError:
            server.should_exit = True
            raise

    def _application(self) -> Starlette:
        routes = [
            Route("/ping", self._ping),
            Route("/parts", self._parts),
            Route("/explain/{job}", self._explain),
            Route("/fit", self._fit, methods=["POST"]),
            Route("/trial", self._trial, methods=["POST"]),
            Route("/configuration/check", self._check_configuration, methods=["POST"]),
            Route("/what-if", self._what_if, methods=["POST"]),
            Route("/what-if/{number}/progress", self._what_if_progress),
            Route("/stop-all", self._stop_all, methods=["POST"]),
            Route("/cluster/{kind:str}", self._listed),
            Route("/engines/use", self._cluster_use),
            Route("/work-folders", self._work_folders, methods=["POST"]),
            Route("/here/{attempt}", self._is_here),
            Route("/metrics", self._told_metrics),
            Route("/series", self._series, methods=["POST"]),
            Route("/scalars", self._scalars, methods=["POST"]),
            Route("/objects/{job}/scale", self._scale_object, methods=["POST"]),
            *self._health.routes(),
            *self._shadows.routes(),
            *self._running_shadow.routes(),
            *Views(self._world_is_there, self._forecasts).routes(),
            Route("/hangs/{job}/{name}", self._bundle),
            *([LogApi(self.log_sources).route()] if self.log_sources is not None else []),
            *(Mount(f"/slots/{engine}", app=below(agents)) for engine, agents in self._agents.items()),
            WebSocketRoute("/exec/{attempt}", self._exec),
            WebSocketRoute("/forward/{attempt}", self._forward),
        ]
        return Starlette(routes=routes, exception_handlers={CorralError: _refusal, ClientDisconnect: _unheard})

    async def _ping(self, _: Request) -> Response:
        reasons = [*self._control.troubles(), *descriptor_shortages("scheduler")]
        return JSONResponse({"ready": self._control.ready.is_set(), "reasons": reasons})

    async def _parts(self, _: Request) -> Response:
        """The parts of the server that control sees."""
        control, agents = self._control, self.metrics.agents
        troubles = [*control.troubles(), *descriptor_shortages("scheduler")]
        away = control.engine_set.away
        here = machine_parts(await _container_runtime(control), self.metrics.exporters)
        asked = versions_of({name: each for name, each in control.engines.items() if name not in away})
        versions, machine = await asyncio.gather(asked, here)
        found = parts_of(
            ready=control.ready.is_set(), troubles=troubles, engines=list(control.engines), versions=versions,
            away=away, agents={} if agents is None else agents.scraper.troubles(),
            certificates=control.engine_set.certificate_ends(), now=control.clock.now(),
            told={} if agents is None else agents.versions(),
        )  # fmt: skip
        return _json([*found, *machine])

    async def _explain(self, request: Request) -> Response:
        """Explain why a job waits, computed on the live state, with the first jobs before it and its outlook."""
        control = await self._world_is_there()
        job = control.world.jobs.get(JobId(request.path_params["job"]))
        if job is None or not job.unplaced():
            return JSONResponse(None)
        forecast = await self._forecasts.latest(job.id)
        planner, now = control.world.planner, control.clock.now()
        reasons = planner.explain(job.id, now)
        if reasons is None:
            return JSONResponse(None)
        ahead = self._ahead_of(job.id, forecast, now)
        found = given_estimate(control.world, forecast, self._forecasts.trouble, job.id, reasons, now)
        hopes = found and Outlook(found, planner.smallest_changes(job.id, reasons, now, job.as_file_change))
        return JSONResponse(
            {
                **msgspec.to_builtins(control.world.reasons_in_names(reasons, job.id)),
                "ahead": len(ahead),
                "before": ahead[:_MOST_BEFORE],
                "outlook": msgspec.to_builtins(hopes and control.world.outlook_in_names(hopes, job.id)),
            }
        )

    def _ahead_of(self, job: JobId, forecast: Forecast | None, now: float) -> Sequence[JobId]:
        """The jobs ahead of one that can start; of many, those that were ahead in the forecast and wait still."""
        planner = self._control.world.planner
        queue = planner.queue
        if len(queue) > _MANY and forecast is not None and (known := forecast.ahead(job)) is not None:
            return [each for each in known if job_can_start(queue, each)]
        return ahead_of(planner.cluster.queues, queue, planner.policy, now, job)

    async def _bundle(self, request: Request) -> Response:
        """The bundle of a job that hung."""
        job, name = request.path_params["job"], request.path_params["name"]
        if self.bundles is None:
            raise NotFound("no-such-bundle", "This server keeps no bundles.")
        data = await self.bundles.read(job, name)
        return Response(data, media_type="application/gzip")

    async def _fit(self, request: Request) -> Response:
        """Whether a gang could ever run on the known nodes: null, or the reasons why not."""
        control = await self._world_is_there()
        reasons = control.world.planner.could_ever_fit(await _gang_in(request))
        return _json(reasons and control.world.reasons_in_names(reasons))

    async def _trial(self, request: Request) -> Response:
        """Why a gang would wait if queued now, found on a fork of the queue; `starts-now` when it would not."""
        control = await self._world_is_there()
        reasons = control.world.planner.explain_new(await _gang_in(request), control.clock.now())
        return _json(reasons and control.world.reasons_in_names(reasons))

    async def _check_configuration(self, request: Request) -> Response:
        """The guarantees of running jobs that these documents would break if they replaced all current ones."""
        control = await self._world_is_there()
        try:
            asked = msgspec.json.decode(await request.body(), type=ConfigurationQuestion)
        except msgspec.DecodeError as error:
            raise InvalidInput("bad-question", f"Control does not understand the request: {error}.") from None
        documents = [document for data in asked.documents for document in load_document(data)]
        after = configuration_of(documents)
        planner_settings(scheduler_policy(after.policy, control.policy), after)
        before = control.configured.now
        cluster = control.world.cluster.fork()
        presenter, now = control.presenter, control.clock.now()

        def think() -> list[GuaranteeFinding]:
            machines = () if after.clusters == before.clusters else presenter.described(after.clusters)
            return broken_guarantees(cluster, before, after, now, machines)

        return _json(await asyncio.to_thread(think))

    async def _check_candidate(self, question: ShadowQuestion) -> None:
        """Raise InvalidInput for a candidate that the scheduler cannot follow."""
        control = await self._world_is_there()
        rules = CandidateRules(question.policy, question.documents)
        rules.configured(documents_of(control.configured), Rules())

    async def _what_if(self, request: Request) -> Response:
        """The courses of the cluster as things are and with a question's changes, played in forked processes.

        They end when the caller disconnects. `number` names the question for `/what-if/NUMBER/progress`, and `patience`
        is how many seconds it waits for its turn.
        """
        control = await self._world_is_there()
        try:
            question = msgspec.json.decode(await request.body(), type=Question)
        except msgspec.DecodeError as error:
            raise InvalidInput("bad-question", f"Control does not understand the question: {error}.") from None
        if self._questions is None:
            self._questions = Questions(
                self._forecasts, lambda: control.core,
                default=lambda: control.policy, presenter=control.presenter, journal=control.journal_folder,
            )  # fmt: skip
        asked: dict[str, Any] = {"number": request.query_params.get("number", "")[:_LONGEST_NUMBER]}
        if patience := request.query_params.get("patience", ""):
            asked["patience"] = float(patience)
        courses = await while_connected(request, self._questions.answer(question, **asked))
        if not question.arrivals:  # what is stored as an estimate assumes that nobody else submits
            control.estimates.given(given_in(courses, question.horizon_seconds))
        return _json(courses)

    async def _what_if_progress(self, request: Request) -> Response:
        """How far a question is; null if none of this number is being answered."""
        return _json(self._questions and self._questions.progress(request.path_params["number"]))

    def _keep(self, forecast: Forecast) -> None:
        """Have the estimates of a forecast stored."""
        estimates = self._control.estimates
        estimates.given(given_by(forecast, self._control.world, estimates.wants))

    async def _stop_all(self, request: Request) -> Response:
        """Stop all live jobs and wait at most `wait` seconds until they have ended.

        Returns the number of jobs that were `asked`, and the names of those that are `left`.
        """
        control = await self._world_is_there()
        jobs = dict(control.world.jobs)
        for job in jobs:
            await control.store.add_intent(job, IntentKind.STOP, {}, actor="server", at=control.clock.now())
        control.wake()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(float(request.query_params["wait"]), _LONGEST_STOP)):
                while control.world.jobs.keys() & jobs.keys():
                    await control.cycled()
        left = sorted(f"{job.name} ({job_id})" for job_id, job in jobs.items() if job_id in control.world.jobs)
        return JSONResponse({"asked": len(jobs), "left": left})

    async def _listed(self, request: Request) -> Response:
        """The cluster's own list of its nodes or pods; null when no engine has such lists."""
        kind, namespace = request.path_params["kind"], request.query_params.get("namespace", "")
        if kind not in ("nodes", "pods"):
            raise NotFound("no-such-list", f"A cluster's nodes and pods can be listed, not its {kind[:50]}.")
        for engine in self._control.engines.values():
            if isinstance(engine, ObjectListing):
                return Response(await engine.listed_objects(kind, namespace), media_type="application/json")
        return JSONResponse(None)

    async def _cluster_use(self, _: Request) -> Response:
        """How each cluster that others share is used beside Corral."""
        shared = [engine for engine in self._control.engines.values() if isinstance(engine, SharedCluster)]
        return _json(await asyncio.gather(*(_use_of(engine) for engine in shared)))

    async def _work_folders(self, request: Request) -> Response:
        """The own folders of attempts that have one on this machine."""
        asked = msgspec.json.decode(await request.body(), type=_Attempts).attempts
        known = [each.folders.all() for each in self._control.engines.values() if isinstance(each, TaskFolders)]
        return _json({each: folders[each] for each in asked for folders in known if each in folders})

    async def _is_here(self, request: Request) -> Response:
        """Whether a port of a task is one of this machine's loopback, which it was given."""
        attempt = AttemptId(request.path_params["attempt"])
        engine = self._control.engines[self._control.engine_of(attempt)]
        if not isinstance(engine, LoopbackPorts):
            return _json(False)
        engine.check_port(attempt, int(request.query_params["port"]))
        return _json(True)

    async def _scalars(self, request: Request) -> Response:
        """Take scalars that a task tells of its event files; how many were left out."""
        told = msgspec.json.decode(await request.body(), type=ToldScalars)
        task = task_that_runs((await self._world_is_there()).world.jobs, told.attempt)
        if task is None:
            raise Conflict("attempt-over", "No task of the job runs as this attempt; its scalars do not count.")
        return _json(await asyncio.to_thread(self._curves.told, told, task))

    async def _told_metrics(self, _: Request) -> Response:
        """The metrics of the scheduler."""
        await self._world_is_there()
        return _json(self.metrics.samples())

    def _known_metrics(self) -> Samples | None:
        """The metrics of the scheduler; None while it reads everything again."""
        return self.metrics.samples() if self._control.world_is_whole else None

    async def read_series(self, question: SeriesQuestion) -> tuple[list[SeriesView], int]:
        """The series that a question is about, and how many further ones there are; raises Unavailable without series."""
        self._check_series()
        longer = self._longer_series
        if longer is not None and (self._keeper is None or is_longer(question, self._control.clock.now())):
            return await longer.read(question)
        assert self._keeper is not None
        return await self._keeper.read(question)

    def _check_series(self) -> None:
        if self._keeper is None and self._longer_series is None:
            raise Unavailable("no-series", "This server keeps no series.")

    async def _series(self, request: Request) -> Response:
        """The series that a question is about, and how many further ones there are; front checks who asks."""
        self._check_series()
        try:
            question = msgspec.json.decode(await request.body(), type=SeriesQuestion)
        except msgspec.DecodeError as error:
            raise InvalidInput("bad-question", f"Control cannot read the question for series: {error}.") from None
        return _json(await self.read_series(question))

    async def _scale_object(self, request: Request) -> Response:
        """Set the replicas in the object that a job was made from; false when there is no such object."""
        control = await self._world_is_there()
        asked = await request.json()
        job = JobId(request.path_params["job"])
        return JSONResponse(await control.scale_object(job, int(asked["replicas"])))

    async def _world_is_there(self) -> Control:
        if not self._control.world_is_whole:
            raise Unavailable("control-starting", "The server is starting; try again in a second.")
        return self._control

    async def _exec(self, socket: WebSocket) -> None:
        query = socket.query_params

        async def enter(engine: Engine, attempt: AttemptId) -> ExecSession:
            return await engine.exec(attempt, query.getlist("cmd"), tty=query.get("tty") == "true")

        await self._join(socket, enter)

    async def _forward(self, socket: WebSocket) -> None:
        port = int(socket.query_params.get("port", "0"))

        async def reach(engine: Engine, attempt: AttemptId) -> ExecSession:
            return await engine.connect(attempt, port)

        await self._join(socket, reach)

    async def _join(self, socket: WebSocket, opened: Callable[[Engine, AttemptId], Awaitable[ExecSession]]) -> None:
        await socket.accept()
        attempt = AttemptId(socket.path_params["attempt"])
        try:
            engine = self._control.engines[self._control.engine_of(attempt)]
            await carry(socket, await opened(engine, attempt))
        except CorralError as error:
            with contextlib.suppress(WebSocketDisconnect):
                await socket.send_text(json.dumps({"error": {"code": error.code, "message": error.message}}))
                await socket.close()


class _Attempts(msgspec.Struct):
    attempts: list[AttemptId]


def below(agents: ASGIApp) -> ASGIApp:
    """An application that finds its own paths below the one that it is mounted at."""

    async def called(scope: Scope, receive: Receive, send: Send) -> None:
        await agents({**scope, "path": scope["path"].removeprefix(scope["root_path"])}, receive, send)

    return called


async def _container_runtime(control: Control) -> str:
    """The program that starts containers here, as it was stored at the start; "" while the store does not tell it."""
    try:
        async with asyncio.timeout(_STORE_SECONDS):
            return str(await control.store.setting(CONTAINER_RUNTIME, ""))
    except (CorralError, TimeoutError):
        return ""


async def _use_of(engine: SharedCluster) -> ClusterUse:
    """The use of one engine's cluster, or why it cannot be told."""
    name = str(getattr(engine, "name", ""))
    try:
        async with asyncio.timeout(_MOST_SECONDS_OF_USE):
            return await engine.cluster_use()
    except CorralError as error:
        return ClusterUse(name, trouble=error.message)
    except TimeoutError:
        return ClusterUse(name, trouble=f"The cluster of the engine {name} does not answer.")


async def _gang_in(request: Request) -> GangRequest:
    try:
        return msgspec.json.decode(await request.body(), type=GangRequest)
    except msgspec.ValidationError as error:
        raise NotFound("bad-question", str(error)) from None


def _json(value: object) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


async def _refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, CorralError)
    return JSONResponse({"code": error.code, "message": error.message}, status_code=error.status)


async def _unheard(_: Request, __: Exception) -> Response:
    """The answer to a caller that is gone; nobody receives it."""
    return Response(status_code=499)
