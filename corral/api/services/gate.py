"""ASGI middleware: requests for a job's origin go to the services of that job, and to nothing else of this server.

A browser comes with a one-time ticket, which `/.corral/open` exchanges for a cookie of the job's host. Each request is
authorized by the account behind that cookie.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import AsyncIterator
from typing import Final, NamedTuple

from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from corral.api.authentication import service_of
from corral.api.connection_limits import signed_in
from corral.api.services.headers import Header, Place, for_service
from corral.api.services.http_exchange import HttpExchange, StaleStream, is_with_body
from corral.api.services.job_ports import COOKIE_PREFIX
from corral.api.services.kept_tunnels import KeptTunnels, Whose
from corral.api.services.message_memory import MessageMemory
from corral.api.services.origins import check_page, label_of, own_origin
from corral.api.services.tunnel import Tunnel
from corral.api.services.websocket_exchange import WebSocketExchange, subprotocols_of
from corral.api.stream_limits import streams_of
from corral.api.websocket_protocol import large_messages
from corral.kernel.errors import Conflict, CorralError, Forbidden, NotFound, Unauthenticated, Unavailable
from corral.service.actor import Actor
from corral.service.jobs.job_services import Reached, Visitor

OPEN_PATH: Final = "/.corral/open"
_COOKIE: Final = "corral_service"
_AGAIN_SECONDS: Final = 2
"""Seconds after which a window asks again for a service that does not listen yet."""
_MOST_COOKIES: Final = 4
"""Cookies of this name that are tried; a page can set others for a part of its paths."""
_PATH: Final = re.compile(
    rb"(?P<prefix>/proxy/(?P<job>[0-9a-z]{13})/(?P<role>[a-z0-9][a-z0-9-]{0,62})-(?P<index>[0-9]{1,7})/"
    rb"(?P<port>[a-z0-9][a-z0-9-]{0,62}))(?P<rest>/[^\x00-\x20\x7f-\xff]*)?"
)
_NOT_PASSED_ON: Final = frozenset({"CONNECT", "TRACE"})
_REPEATABLE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods of requests that are made again where the service has closed a kept stream."""
_log = logging.getLogger("corral.api")


class MethodNotAllowed(CorralError):
    """The method would change the protocol, or show the browser what its pages may not see."""

    status = 405


class _Asked(NamedTuple):
    """The service that a path names."""

    prefix: str
    role: str
    number: int
    port: str
    rest: bytes


class ServiceGate:
    """Serves the origins of jobs; passes all other requests on to `app`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] in ("http", "websocket"):
            state = scope["app"].state
            of_port = state.job_ports.label(scope["server"][1]) if state.job_ports else None
            label = label_of(scope, state.services_domain) if of_port is None else of_port
            if label is not None:
                await _Request(scope, receive, send, label, by_port=of_port is not None).serve()
                return
        await self._app(scope, receive, send)


class _Request:
    """One request, or WebSocket, for the origin of a job."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, job: str, *, by_port: bool) -> None:
        self._connection = HTTPConnection(scope)
        self._scope, self._receive = scope, receive
        self._asgi_send = send
        self._job = job
        self._by_port = by_port
        self._origin = own_origin(self._connection, scope["app"].state.services_domain)
        self._begun = False

    async def serve(self) -> None:
        """Answer, with one sentence where the request is refused."""
        try:
            if not self._job:
                await self._say(421, "No job has this port." if self._by_port else "No job has this host.")
            elif self._scope["path"] == OPEN_PATH:
                await self._respond(await self._open())
            else:
                await self._pass_on()
        except CorralError as error:
            await self._say(error.status, error.message, again=error.code == "service-not-there")
        except ClientDisconnect:
            return
        except Exception:
            _log.exception("fault at the origin of job %s", self._job)
            await self._say(500, "The server failed to answer; look into its log.")

    async def _open(self) -> Response:
        """Exchange a ticket for a cookie, and lead to the service."""
        headers = self._connection.headers
        if self._scope["type"] != "http" or self._scope["method"] != "GET":
            raise Forbidden("not-a-window", "This address is opened in a window of a browser.")
        if headers.get("sec-fetch-dest", "document") != "document":
            raise Forbidden("not-a-window", "This address is opened in a window of a browser.")
        if self._by_port:
            self._check_port()
        ticket = self._connection.query_params.get("ticket", "")
        service = service_of(self._connection)
        visit = await service.job_services.redeem(ticket, self._job)
        response = RedirectResponse(f"/proxy/{self._job}/{visit.task}/{visit.port}/", 303)
        secure = self._origin.startswith("https:")
        age = max(0, int(visit.expires_at - service.context.clock.now()))
        name = self._cookie_name()
        response.set_cookie(name, visit.session, age, path="/", secure=secure, httponly=True, samesite="lax")
        if self._by_port:
            response.set_cookie(self._port_cookie(), self._job, path="/", secure=True, httponly=True, samesite="lax")
        return response

    def _port_cookie(self) -> str:
        """The name of the cookie that says which job this browser has opened at the port.

        It lasts until the browser ends, as pages do.
        """
        return f"{COOKIE_PREFIX}corral_port_{self._scope['server'][1]}"

    def _check_port(self) -> None:
        """Refuse a browser that may still show a page of another job at this port, which would have the same origin."""
        before = self._connection.cookies.get(self._port_cookie(), self._job)
        if before != self._job:
            message = (
                f"This browser has opened another job at this port, of which a page may still be open: end the browser, "
                f"and open this service again from the page of job {self._job}."
            )
            raise Conflict("port-of-another-job", message)

    async def _pass_on(self) -> None:
        if self._scope.get("method") in _NOT_PASSED_ON:
            raise MethodNotAllowed("method-not-allowed", f"Services are not asked by {self._scope['method']}.")
        check_page(self._connection, self._origin, shares_host=self._by_port)
        visitor = await self._visitor()
        await signed_in(self._connection, visitor.actor)
        asked = self._asked()
        if not asked.rest:
            await self._respond(RedirectResponse(f"{asked.prefix}/", 308))
            return
        services = service_of(self._connection).job_services
        reached = await services.reach(visitor, asked.role, asked.number, asked.port)
        with streams_of(self._connection).open("forward", visitor.actor.user):
            async with self._ends_with(visitor):
                try:
                    await self._exchange(asked, reached, visitor.actor)
                except Unavailable:
                    if not self._begun:  # the task may have ended within the second for which its port is remembered
                        await services.reach(visitor, asked.role, asked.number, asked.port, afresh=True)
                    raise

    @contextlib.asynccontextmanager
    async def _ends_with(self, visitor: Visitor) -> AsyncIterator[None]:
        """End the block with the session or its account.

        Raises Unauthenticated then.
        """
        context = service_of(self._connection).context
        try:
            async with context.streams.held(visitor.actor, visitor.expires_at - context.clock.now()):
                yield
        except Unauthenticated:
            if context.clock.now() >= visitor.expires_at:
                raise _ended() from None
            raise

    async def _exchange(self, asked: _Asked, reached: Reached, actor: Actor) -> None:
        hosts = (reached.host,) if reached.host else ()
        place = Place(self._origin, asked.prefix, reached.keeps_path, reached.number, hosts, not self._by_port)
        query = self._scope["query_string"]
        path = (asked.prefix.encode() if reached.keeps_path else b"") + asked.rest
        target = path + (b"?" + query if query else b"")
        is_own_token = service_of(self._connection).authentication.has_form
        headers = for_service(self._scope["headers"], place, is_own_token, reached.authorization)
        if self._scope["type"] == "http":
            await self._exchange_http(place, target, headers, Whose(actor.token_id, reached.attempt, reached.number))
            return
        await self._receive()  # the browser's handshake
        memory: MessageMemory = self._scope["app"].state.message_memory
        async with await Tunnel.open(self._connection, reached.attempt, reached.number) as tunnel:
            with (
                memory.share(actor.user) as share,
                memory.share(actor.user) as of_browser,
                large_messages(self._scope, of_browser),
            ):
                exchange = WebSocketExchange(tunnel, place, target, subprotocols_of(self._scope), share)
                await exchange.pass_on(headers, self._receive, self._send)

    async def _exchange_http(self, place: Place, target: bytes, headers: list[Header], whose: Whose) -> None:
        """Make the exchange on a kept stream where that can be repeated, and keep the stream for the next one."""
        if self._scope["method"] in _REPEATABLE and not is_with_body(self._scope["headers"]):
            kept = self._kept_tunnels.take(whose)
            if kept is not None:
                with contextlib.suppress(StaleStream):
                    await self._exchange_on(kept, HttpExchange(kept, place, kept=True), target, headers, whose)
                    return
        tunnel = await Tunnel.open(self._connection, whose.attempt, whose.port)
        await self._exchange_on(tunnel, HttpExchange(tunnel, place), target, headers, whose)

    async def _exchange_on(
        self, tunnel: Tunnel, exchange: HttpExchange, target: bytes, headers: list[Header], whose: Whose
    ) -> None:
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(tunnel)
            await exchange.pass_on(self._scope, target, headers, self._receive, self._send)
            if exchange.is_reusable and not is_with_body(
                self._scope["headers"]
            ):  # the service may have left one unread
                stack.pop_all()
                self._kept_tunnels.keep(whose, tunnel)

    @property
    def _kept_tunnels(self) -> KeptTunnels:
        found: KeptTunnels = self._scope["app"].state.kept_tunnels
        return found

    async def _visitor(self) -> Visitor:
        name = self._cookie_name()
        sent = [
            pair.strip().partition("=")[2]
            for header in self._connection.headers.getlist("cookie")
            for pair in header.split(";")
            if pair.strip().partition("=")[0] == name
        ]
        for session in sent[:_MOST_COOKIES]:
            visitor = await service_of(self._connection).job_services.visitor(session, self._job)
            if visitor is not None:
                return visitor
        raise _ended()

    def _asked(self) -> _Asked:
        found = _PATH.fullmatch(self._scope["raw_path"].partition(b"?")[0])
        if found is None or found["job"].decode() != self._job:
            raise NotFound("no-such-address", "Services of this job are at /proxy/JOB/TASK/PORT/.")
        return _Asked(
            found["prefix"].decode(), found["role"].decode(), int(found["index"]), found["port"].decode(), found["rest"]
        )

    def _cookie_name(self) -> str:
        """The name of the session's cookie; jobs that share a host have a name each."""
        if self._by_port:
            return f"{COOKIE_PREFIX}{_COOKIE}_{self._job}"
        return f"__Host-{_COOKIE}" if self._origin.startswith("https:") else _COOKIE

    async def _send(self, message: Message) -> None:
        self._begun = True
        await self._asgi_send(message)

    async def _say(self, status: int, sentence: str, *, again: bool = False) -> None:
        """Refuse, unless an answer has begun; then it is left incomplete. A window may be told to ask again soon."""
        if not self._begun or self._scope["type"] == "websocket":
            window = again and self._connection.headers.get("sec-fetch-dest") == "document"
            headers = {"refresh": str(_AGAIN_SECONDS)} if window and self._scope.get("method") == "GET" else None
            await self._respond(PlainTextResponse(sentence, status, headers))

    async def _respond(self, response: Response) -> None:
        for name, value in _OWN_ANSWER:
            response.headers[name] = value
        if self._scope["type"] == "websocket":
            with contextlib.suppress(RuntimeError, OSError):  # it is closed already
                await self._asgi_send({"type": "websocket.close", "code": 1008, "reason": ""})
            return
        await response(self._scope, self._receive, self._send)


_OWN_ANSWER: Final = (
    ("cache-control", "no-store"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("cross-origin-resource-policy", "same-origin"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
)


def _ended() -> Unauthenticated:
    return Unauthenticated("no-visit", "Open this service from the job's page in Corral, or by `corral open`.")
