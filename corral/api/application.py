"""Build the ASGI application: routes, middleware and portal over a given service."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi import FastAPI, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

import corral
from corral.api import (
    accounts,
    alerts,
    benchmarks,
    budgets,
    cluster,
    code,
    compile_caches,
    documents,
    efficiency,
    error_handlers,
    estimates,
    events,
    exec,
    groups,
    hangs,
    idle,
    job_outputs,
    jobs,
    logs,
    node_health,
    notifications,
    oidc,
    policy_shadow,
    preflight,
    profiles,
    queue_managers,
    running_shadow,
    runtime,
    saved_filters,
    series,
    server_parts,
    session,
    storages,
    suspend_and_drain,
    usage,
    what_if,
)
from corral.api.authentication import current_actor, service_of
from corral.api.fast_path import FastPath
from corral.api.json_responses import Json, answers, refused_with, schema_of
from corral.api.late_routes import late_router
from corral.api.openapi import describe
from corral.api.portal import Portal
from corral.api.rate_limits import (
    MINUTE,
    REPORTS_A_MINUTE,
    SCALARS_A_MINUTE,
    ApiCallLimits,
    CallLimit,
    Calls,
    FailureLimit,
)
from corral.api.request_guard import CACHE_PATH, CODE_PATH, UPLOADS_PATH, Guard
from corral.api.services import routes as services
from corral.api.services.gate import ServiceGate
from corral.api.services.job_ports import JobPorts, checked_ports
from corral.api.services.kept_tunnels import KeptTunnels
from corral.api.services.message_memory import MessageMemory
from corral.api.services.origins import checked_domain
from corral.api.slots import PREFIX, Agent, Relay, SlotCalls
from corral.api.ssh import routes as ssh
from corral.api.stream_limits import StreamCaps, Streams
from corral.api.tenants import Routes
from corral.model.views import Readiness
from corral.service.metrics.exposition import CONTENT_TYPE
from corral.service.metrics.metrics import Page
from corral.workers.shared_file import SharedFile

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

    from corral.kernel.clock import Clock
    from corral.kernel.ids import AttemptId
    from corral.service.openid import OpenId
    from corral.service.service import Service

Connect = Callable[[str], Awaitable["ClientConnection"]]
IsHere = Callable[["AttemptId", int], Awaitable[bool]]
Lifespan = Callable[[FastAPI], contextlib.AbstractAsyncContextManager[None]]


async def _nowhere(_: AttemptId, __: int) -> bool:
    return False


class WebSettings(NamedTuple):
    """How browsers reach the server, and how they sign in other than on its own page."""

    public_url: str = ""
    """The server's URL for browsers; empty: the URL of each call."""
    oidc: OpenId | None = None
    oidc_redirect_url: str = ""
    """The redirect URI given to the provider; empty: the callback below the public URL."""
    services_domain: str = ""
    """The domain below which each job has an origin for its services; empty: none but on loopback."""
    job_ports: str = ""
    """The range of ports at which each job has an origin where there is no domain."""


health = late_router(tags=["health"], default_response_class=Json)


def create_app(
    service: Service,
    *,
    clock: Clock,
    portal_folder: Path,
    connect: Connect,
    is_here: IsHere = _nowhere,
    tenants: Sequence[Routes] = (),
    folder: Path | None = None,
    code_limit: int = 512 * 1024**2,
    cache_limit: int = 1024**3,
    secure: bool = False,
    lifespan: Lifespan | None = None,
    web: WebSettings | None = None,
    limits: Calls | None = None,
    caps: StreamCaps | None = None,
    agents: Mapping[str, Agent] | None = None,
    relay: Relay | None = None,
) -> FastAPI:
    """Return the whole HTTP application over `service`, with the routes of `tenants`.

    `portal_folder` holds the built portal and may be missing. `connect` opens a WebSocket to control for exec. `is_here`
    tells whether a port of an attempt is one of this machine's loopback. `folder` is the data folder, whose full disk
    may be why a call failed. `code_limit` bounds a code archive in bytes, `cache_limit` a bundle of compiled code.
    `secure` says that browsers use HTTPS. `lifespan` is entered before the first request and left after the last. `web`
    says how browsers sign in, `limits` bounds the calls of one user, and `caps` bounds the open streams. `agents` are
    the engines whose agents call, and `relay` passes their calls to control.
    """

    @contextlib.asynccontextmanager
    async def whole_life(app: FastAPI) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            if lifespan is not None:
                await stack.enter_async_context(lifespan(app))
            stack.push_async_callback(app.state.tailer.close)
            stack.callback(app.state.kept_tunnels.close)
            if app.state.oidc is not None:
                stack.push_async_callback(app.state.oidc.close)
            yield

    app = FastAPI(
        title="Corral",
        version=corral.__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},
        lifespan=whole_life,
    )
    app.state.service = service
    app.state.clock = clock
    app.state.connect = connect
    app.state.is_here = is_here
    app.state.secure = secure or bool(web and web.services_domain)
    app.state.tailer = events.Tailer(service)
    app.state.streams = Streams(caps or StreamCaps())
    app.state.message_memory = MessageMemory()
    app.state.kept_tunnels = KeptTunnels()
    app.state.login_limit = FailureLimit()
    app.state.reports = CallLimit(REPORTS_A_MINUTE, MINUTE)
    app.state.scalars = CallLimit(SCALARS_A_MINUTE, MINUTE)
    app.state.ssh_connections = CallLimit(ssh.CONNECTIONS_A_MINUTE, MINUTE)
    app.state.calls = ApiCallLimits(limits or Calls())
    web = web or WebSettings()
    web = web._replace(services_domain=checked_domain(web.services_domain, web.public_url))
    for name, value in web._asdict().items():
        setattr(app.state, name, value)
    app.state.job_ports = JobPorts(checked_ports(web.job_ports, tls=secure, domain=web.services_domain))
    app.state.oidc_onward = {}
    app.state.error_shapes = tuple(each.errors for each in tenants if each.errors is not None)
    app.add_middleware(FastPath)
    bounds = {CODE_PATH: code_limit, UPLOADS_PATH: code_limit, CACHE_PATH: cache_limit}
    app.add_middleware(Guard, bounds=bounds, secure=secure, folder=folder, shapes=app.state.error_shapes)
    app.add_middleware(ServiceGate)
    error_handlers.install(app)
    for module in (
        session,
        oidc,
        job_outputs,
        jobs,
        logs,
        events,
        exec,
        services,
        ssh,
        code,
        node_health,
        benchmarks,
        server_parts,
        cluster,
        documents,
        suspend_and_drain,
        accounts,
        notifications,
        saved_filters,
        groups,
        queue_managers,
        storages,
        runtime,
        compile_caches,
        preflight,
        profiles,
        what_if,
        policy_shadow,
        running_shadow,
        estimates,
        series,
        usage,
        efficiency,
        idle,
        hangs,
        budgets,
        alerts,
    ):
        app.router.routes.extend(module.router.routes)
    for tenant in tenants:
        tenant.mount(app)
    if agents and relay is not None:
        app.router.routes.append(Route(f"{PREFIX}{{call:path}}", SlotCalls(agents, relay), include_in_schema=False))
    app.router.routes.extend(health.routes)
    app.router.default = Portal(portal_folder)
    describe(app)
    return app


_HEALTHY: dict[str, Any] = {"content": {"application/json": {"schema": {"type": "object"}}}}


@health.get("/healthz", responses={200: {"description": "The process answers", **_HEALTHY}})
async def healthz() -> Json:
    """Report that this process is alive; needs no token."""
    return Json({"status": "ok"})


@health.get(
    "/readyz",
    responses={
        200: answers(Readiness)[200],
        503: {"description": "Not yet, or not now", "content": {"application/json": {"schema": schema_of(Readiness)}}},
    },
)
async def readyz(request: Request) -> Json:
    """Report whether the server can answer calls; needs no token."""
    ready = await request.app.state.service.readiness.check()
    return Json(ready, 200 if ready.ready else 503, None if ready.ready else {"Retry-After": "1"})


@health.get(
    "/metrics",
    responses={
        200: {"description": "Prometheus text", "content": {"text/plain": {"schema": {"type": "string"}}}},
        401: refused_with(401),
        403: refused_with(403),
    },
)
async def metrics(request: Request) -> Response:
    """Return metrics for Prometheus: totals without a token, and with one the series of each queue and task."""
    named = "authorization" in request.headers
    actor = await current_actor(request) if named else None
    return metrics_answer(await service_of(request).metrics.page(actor))


def metrics_answer(page: Page) -> Response:
    """The answer with a page of metrics; a long one is sent in pieces, between which other calls are answered."""
    if isinstance(page, bytes):
        return Response(page, media_type=CONTENT_TYPE)
    return StreamingResponse(_pieces(page), media_type=CONTENT_TYPE, headers={"content-length": str(page.size)})


async def _pieces(page: SharedFile) -> AsyncIterator[bytes]:
    for piece in page.pieces():
        yield piece
