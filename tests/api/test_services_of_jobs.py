"""The services of a job have an origin of their own, are authorized for each request, and are passed on within bounds."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from corral.api.services import http_exchange, kept_tunnels
from corral.api.services.kept_tunnels import KeptTunnels
from corral.api.services.message_memory import MessageMemory
from corral.api.services.origins import checked_domain
from corral.api.websocket_protocol import LARGE_MESSAGE_LIMIT
from corral.client import Client
from corral.kernel.errors import Conflict, Forbidden, InvalidInput, NotFound
from corral.kernel.ids import AttemptId
from corral.model.runs import TaskRun
from corral.model.states import TaskState
from tests.api.harness import Server, serving
from tests.api.service_target import LARGE, PIECE, PIECES, Target, running
from tests.waiting import pause

DOCUMENT = {"name": "served", "roles": {"main": {"command": "sleep 1000", "ports": ["web", "ws", "closed"]}}}
CLOSED = 1
"""A port of this machine on which nothing listens."""


class Visited:
    """The target behind a job's origin, and browsers that visit it."""

    def __init__(self, server: Server, target: Target) -> None:
        self.server = server
        self.target = target
        self.running = True
        self.count = 0
        self.browsers: list[httpx2.Client] = []

    async def task(self, job: str, role: str, index: int) -> TaskRun | None:
        """A stand-in for the stored task."""
        ports: dict[str, tuple[int, ...]] = {"web": (self.target.port,), "ws": (self.target.socket_port,)}
        ports |= {"closed": (CLOSED,), "hidden": (22,)}
        state = TaskState.RUNNING if self.running else TaskState.COMPLETED
        return TaskRun(role, index, state, ports=ports) if (role, index) == ("main", 0) else None

    def submit(self, client: Client) -> str:
        """Submit a job with services; its id."""
        self.count += 1
        return str(client.submit(json.dumps(DOCUMENT | {"name": f"served-{self.count}"}))["id"])

    def host(self, job: str) -> str:
        """The host of a job's origin."""
        return f"{job}.localhost:{self.server.url.rpartition(':')[2]}"

    def ticket(self, client: Client, job: str, port: str = "web") -> str:
        """The path of a fresh one-time address."""
        url = str(client.open_service(job, "main", 0, port)["url"])
        assert url.startswith(f"http://{self.host(job)}/.corral/open?ticket=")
        return url.removeprefix(f"http://{self.host(job)}")

    def browser(self, job: str, **headers: str) -> httpx2.Client:
        """A browser that keeps no cookies by itself, at the job's origin."""
        made = httpx2.Client(
            base_url=self.server.url, headers={"Host": self.host(job), **headers}, timeout=60, trust_env=False
        )
        self.browsers.append(made)
        return made

    def visit(self, client: Client, job: str) -> httpx2.Client:
        """A browser with a session of the job's services."""
        browser = self.browser(job)
        answer = browser.get(self.ticket(client, job))
        assert answer.status_code == 303, answer.text
        browser.cookies.clear()
        browser.headers["Cookie"] = answer.headers["set-cookie"].partition(";")[0]
        return browser


@pytest.fixture(scope="module")
def visited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visited]:
    """A front, a stand-in for control, and a target."""
    folder = tmp_path_factory.mktemp("front")
    with serving(folder) as server:
        stack = AsyncExitStack()
        target = server.call(stack.enter_async_context(running(folder / "control.sock")))
        made = Visited(server, target)
        server.store.task = made.task  # type: ignore[method-assign]
        yield made
        for browser in made.browsers:
            browser.close()
        server.call(stack.aclose())


@pytest.fixture
def server(visited: Visited) -> Server:
    """The front."""
    return visited.server


@pytest.fixture
def job(visited: Visited, alice: Client) -> str:
    """A job of alice with services."""
    return visited.submit(alice)


@pytest.fixture
def browser(visited: Visited, alice: Client, job: str) -> httpx2.Client:
    """A browser of alice that visits the job."""
    return visited.visit(alice, job)


@pytest.fixture(params=["through-control", "straight"])
def way(request: pytest.FixtureRequest, server: Server) -> Iterator[str]:
    """How tasks are reached: through control, and straight where they listen on this machine."""
    before = server.app.state.is_here

    async def is_here(_: AttemptId, __: int) -> bool:
        return bool(request.param == "straight")

    server.app.state.is_here = is_here
    yield request.param
    server.app.state.is_here = before


def path(job: str, rest: str = "", port: str = "web") -> str:
    return f"/proxy/{job}/main-0/{port}/{rest}"


def echoed(answer: httpx2.Response) -> tuple[str, dict[str, str]]:
    """The request line and the headers that the target got."""
    assert answer.status_code == 200, answer.text
    line, *headers = answer.json()
    return line, dict(each.lower().split(": ", 1) for each in headers if each)


def test_a_ticket_opens_a_service_once_and_the_audit_log_has_one_line(
    visited: Visited, alice: Client, root: Client, job: str
) -> None:
    ticket = visited.ticket(alice, job)
    browser = visited.browser(job)
    first = browser.get(ticket)
    assert (first.status_code, first.headers["location"]) == (303, path(job))
    cookie = first.headers["set-cookie"].lower()
    assert cookie.startswith("corral_service=") and "httponly" in cookie and "samesite=lax" in cookie
    assert "domain" not in cookie and "path=/;" in cookie and first.headers["referrer-policy"] == "no-referrer"
    browser.cookies.clear()
    again = browser.get(ticket)
    assert again.status_code == 401 and "was used or has expired" in again.text
    browser.headers["Cookie"] = first.headers["set-cookie"].partition(";")[0]
    for _ in range(3):
        line, _ = echoed(browser.get(path(job, "some/page?a=1&b=%20")))
        assert line == "GET /some/page?a=1&b=%20 HTTP/1.1"
    noted = [each for each in root.audit(limit=200)["items"] if each["resource"] == f"job:{job}"]
    assert [each["action"] for each in noted if each["action"] == "job.open"] == ["job.open"]


def test_a_ticket_is_good_for_a_minute_at_its_own_job_and_not_to_sign_in(
    visited: Visited, server: Server, alice: Client, job: str
) -> None:
    other = visited.submit(alice)
    wrong = visited.browser(other).get(visited.ticket(alice, job))
    assert wrong.status_code == 401
    late = visited.ticket(alice, job)
    server.clock.advance(61)
    assert visited.browser(job).get(late).status_code == 401
    text = visited.ticket(alice, job).partition("=")[2]
    answer = httpx2.post(f"{server.url}/api/v3/login", json={"link": text[:1024]}, trust_env=False)
    assert answer.status_code == 401
    assert visited.browser(job, **{"Sec-Fetch-Dest": "image"}).get(visited.ticket(alice, job)).status_code == 403


def test_nothing_of_the_portal_is_at_a_jobs_origin_and_nothing_of_a_job_at_the_portal(
    visited: Visited, server: Server, alice: Client, job: str, browser: httpx2.Client
) -> None:
    for each in ("/", "/api/v3/me", "/healthz", "/metrics", "/openapi.json", "/assets/index.js", "/proxy/", "/nodes"):
        answer = browser.get(each, headers={"Authorization": f"Bearer {alice.token}"})
        assert (answer.status_code, answer.headers["content-type"]) == (404, "text/plain; charset=utf-8"), each
    session = browser.headers["Cookie"]
    with httpx2.Client(base_url=server.url, trust_env=False, headers={"Cookie": session}) as portal:
        assert portal.get(path(job)).status_code == 404
        assert portal.get("/api/v3/me").status_code == 401
        token = session.partition("=")[2]
        assert portal.get("/api/v3/me", headers={"Authorization": f"Bearer {token}"}).status_code == 401
        for host in ("x.localhost", f"{job}.{job}.localhost", f"a{job}.localhost:1"):
            assert portal.get("/api/v3/me", headers={"Host": host}).status_code == 421
    with_portal_cookie = {"Cookie": f"corral_session={alice.token}"}
    assert visited.browser(job, **with_portal_cookie).get(path(job)).status_code == 401


def test_only_the_owner_and_administrators_open_a_job_and_a_session_is_of_one_job(
    visited: Visited, server: Server, alice: Client, root: Client, job: str, browser: httpx2.Client
) -> None:
    with server.client("mallory") as mallory:
        with pytest.raises(Forbidden, match=r"open the services of the job served-\d+ of alice"):
            mallory.open_service(job, "main", 0, "web")
        with pytest.raises(Forbidden):
            mallory.services(job)
        mine = visited.submit(mallory)
        session = visited.visit(mallory, mine).headers["Cookie"]
        assert visited.browser(job, Cookie=session).get(path(job)).status_code == 401
        assert visited.browser(mine, Cookie=session).get(path(job)).status_code == 404
        assert browser.get(path(mine)).status_code == 404
    echoed(visited.visit(root, job).get(path(job)))


def test_only_declared_ports_of_running_tasks_are_opened(visited: Visited, alice: Client, job: str) -> None:
    for port in ("hidden", "22", "99"):
        with pytest.raises(NotFound, match="no port"):
            alice.open_service(job, "main", 0, port)
    with pytest.raises(NotFound, match="has no task"):
        alice.open_service(job, "main", 1, "web")
    browser = visited.visit(alice, job)
    assert browser.get(path(job, port="22")).status_code == 404
    closed = browser.get(path(job, port="closed"))
    assert (closed.status_code, "Nothing answers" in closed.text) == (503, True)
    visited.running = False
    try:
        assert browser.get(path(job)).status_code == 409
        with pytest.raises(Conflict, match="not running"):
            alice.open_service(job, "main", 0, "web")
    finally:
        visited.running = True


def test_a_revoked_token_ends_its_sessions_and_open_answers(visited: Visited, server: Server, job: str) -> None:
    with server.client("alice") as client, server.client("alice") as other:
        browser = visited.visit(client, job)
        with browser.stream("GET", path(job, "large")) as answer:
            pieces = answer.iter_bytes()
            next(pieces)
            client.logout()
            with pytest.raises(httpx2.TransportError):
                for _ in pieces:
                    pass
        refused = browser.get(path(job))
        assert refused.status_code == 401
        echoed(visited.visit(other, job).get(path(job)))


def test_secrets_of_the_portal_do_not_reach_the_job(job: str, browser: httpx2.Client, alice: Client) -> None:
    session = browser.headers["Cookie"]
    cookies = f"a=1; corral_session=secret; {session}; __Host-corral_session=secret; =corral_x=secret; b=2"
    sent = {
        "Cookie": cookies,
        "Authorization": f"Bearer {alice.token}",
        "X-Corral-CSRF": "1",
        "X-Forwarded-For": "10.0.0.1",
        "Connection": "x-hop",
        "X-Hop": "1",
        "TE": "trailers",
        "Proxy-Authorization": "Basic eA==",
    }
    line, headers = echoed(browser.get(path(job, "page"), headers=sent))
    assert headers["cookie"] == "a=1; b=2"
    left = {"authorization", "x-corral-csrf", "x-forwarded-for", "x-hop", "te", "proxy-authorization"} & headers.keys()
    assert not left and "connection" not in headers
    assert "secret" not in line + json.dumps(headers) and alice.token not in json.dumps(headers)
    assert headers["x-forwarded-prefix"] == path(job).rstrip("/") and headers["host"].startswith("localhost:")
    _, headers = echoed(browser.get(path(job, "page"), headers={"Authorization": "Bearer of-the-job"}))
    assert headers["authorization"] == "bearer of-the-job"


def test_cookies_and_headers_of_the_job_stay_with_the_job(job: str, browser: httpx2.Client) -> None:
    answer = browser.get(path(job, "cookies"))
    kept = answer.headers.get_list("set-cookie")
    assert kept == [f"plain=1; Path={path(job).rstrip('/')}/app; HttpOnly", "wide=2; SameSite=Lax"]
    gone = ("clear-site-data", "service-worker-allowed", "access-control-allow-origin", "alt-svc", "keep-alive")
    assert not set(gone) & set(answer.headers)
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert "frame-ancestors 'self'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("sent", "led"),
    [
        ("http://localhost:PORT/a?b", "http://HOST/PREFIX/a?b"),
        ("http://127.0.0.1:PORT", "http://HOST/PREFIX/"),
        ("/a", "/PREFIX/a"),
        ("a/b", "a/b"),
        ("https://elsewhere.example/a", "https://elsewhere.example/a"),
        ("//elsewhere.example/a", "//elsewhere.example/a"),
        ("http://localhost:1/a", "http://localhost:1/a"),
    ],
)
def test_redirects_to_the_service_itself_are_rewritten_and_others_pass(
    visited: Visited, job: str, browser: httpx2.Client, sent: str, led: str
) -> None:
    answer = browser.get(path(job, "redirect"), params={"to": sent})
    wanted = led.replace("HOST", visited.host(job)).replace("PREFIX", path(job).strip("/"))
    assert (answer.status_code, answer.headers["location"]) == (302, wanted)


def test_pages_of_other_origins_get_nothing(visited: Visited, job: str, browser: httpx2.Client) -> None:
    own, other = f"http://{visited.host(job)}", f"http://0123456789abc.localhost:{visited.server.url[-4:]}"
    refused: list[dict[str, str]] = [
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Origin": other},
        {"Origin": other},
        {"Origin": "null"},
    ]
    before = len(visited.target.heads)
    for headers in refused:
        assert browser.get(path(job), headers=headers).status_code == 403, headers
        assert browser.post(path(job), headers=headers).status_code == 403, headers
    assert browser.post(path(job)).status_code == 403
    navigated = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert browser.post(path(job), headers=navigated | {"Origin": other}).status_code == 403
    assert len(visited.target.heads) == before
    echoed(browser.get(path(job), headers=navigated))
    posted = {"Origin": own, "Referer": f"{own}{path(job, 'a')}", "Sec-Fetch-Site": "same-origin"}
    line, headers = echoed(browser.post(path(job), headers=posted))
    assert line.startswith("POST / ") and headers["origin"] == f"http://{headers['host']}"
    assert headers["referer"] == f"http://{headers['host']}/a"


def test_the_api_takes_the_portals_cookie_from_its_own_pages_alone(server: Server, alice: Client) -> None:
    sent = {"Cookie": f"corral_session={alice.token}"}
    for site, status in (("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403)):
        answer = httpx2.get(f"{server.url}/api/v3/me", headers=sent | {"Sec-Fetch-Site": site}, trust_env=False)
        assert answer.status_code == status, site


@pytest.mark.usefixtures("way")
def test_a_large_answer_is_passed_on_no_faster_than_it_is_read(
    visited: Visited, job: str, browser: httpx2.Client
) -> None:
    read = 0
    with browser.stream("GET", path(job, "large")) as answer:
        for piece in answer.iter_bytes():
            read += len(piece)
            assert visited.target.sent - read < 40_000_000, "the server holds what its reader has not taken"
    assert read == len(PIECE) * PIECES


def test_a_large_body_is_passed_on_as_it_comes(visited: Visited, job: str, browser: httpx2.Client) -> None:
    pieces = (PIECE for _ in range(PIECES))
    answer = browser.post(path(job, "take"), content=pieces, headers={"Origin": f"http://{visited.host(job)}"})
    assert answer.text == str(len(PIECE) * PIECES)


@pytest.mark.parametrize("rest", ["gigabyte", "many", "nonsense", "control", "switch"])
def test_a_service_that_does_not_keep_to_http_is_told_apart(
    visited: Visited, job: str, browser: httpx2.Client, rest: str
) -> None:
    answer = browser.get(path(job, rest))
    assert (answer.status_code, answer.headers["content-type"]) == (502, "text/plain; charset=utf-8")
    assert "did not answer in HTTP/1.1" in answer.text
    assert visited.target.sent < 64_000_000
    echoed(browser.get(path(job)))


@pytest.mark.usefixtures("way")
def test_headers_that_never_end_are_given_up(
    visited: Visited, job: str, browser: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = http_exchange.LIMITS._replace(header_seconds=0.2)
    monkeypatch.setattr(http_exchange.HttpExchange.__init__, "__defaults__", (given,))
    answer = browser.get(path(job, "endless"))
    assert answer.status_code == 502 and "no whole headers within 0.2 seconds" in answer.text
    visited.server.call(asyncio.wait_for(visited.target.ended.wait(), 60))


@pytest.mark.usefixtures("way")
def test_a_request_ends_with_the_browser_that_made_it(visited: Visited, job: str, browser: httpx2.Client) -> None:
    visited.target.ended.clear()
    before = len(visited.target.heads)
    with socket.create_connection(("127.0.0.1", int(visited.server.url.rpartition(":")[2]))) as there:
        head = f"GET {path(job, 'endless')} HTTP/1.1\r\nHost: {visited.host(job)}\r\n"
        there.sendall(f"{head}Cookie: {browser.headers['Cookie']}\r\n\r\n".encode())
        begun = time.monotonic()
        while len(visited.target.heads) == before:
            time.sleep(pause(begun))
    visited.server.call(asyncio.wait_for(visited.target.ended.wait(), 60))
    echoed(browser.get(path(job)))


@pytest.fixture
def rested(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """A call that waits until a connection to a service rests, where it rests for longer than any test."""
    monkeypatch.setattr(kept_tunnels, "_SECONDS", 600.0)
    kept: KeptTunnels = server.app.state.kept_tunnels

    async def close() -> None:
        kept.close()

    def rests() -> None:
        begun = time.monotonic()
        while not kept:
            time.sleep(pause(begun))

    server.call(close())
    yield rests
    server.call(close())


@pytest.mark.usefixtures("way")
def test_bodies_pass_both_ways_on_either_way(visited: Visited, job: str, browser: httpx2.Client) -> None:
    origin = {"Origin": f"http://{visited.host(job)}"}
    pieces = (PIECE for _ in range(10))
    assert browser.post(path(job, "take"), content=pieces, headers=origin).text == str(10 * len(PIECE))
    assert sum(len(each) for each in browser.get(path(job, "large")).iter_bytes()) == len(PIECE) * PIECES
    with pytest.raises(httpx2.TransportError):
        browser.get(path(job, "cut"))
    closed = browser.get(path(job, port="closed"))
    assert (closed.status_code, "Nothing answers" in closed.text, "127.0.0.1" in closed.text) == (503, True, False)


def test_a_task_that_ended_a_moment_ago_is_told_as_such(visited: Visited, job: str, browser: httpx2.Client) -> None:
    assert browser.get(path(job, port="closed")).status_code == 503
    visited.running = False
    try:
        answer = browser.get(path(job, port="closed"))
    finally:
        visited.running = True
    assert (answer.status_code, "is not running" in answer.text) == (409, True)


def test_a_task_that_control_does_not_know_is_not_reached(server: Server, job: str, browser: httpx2.Client) -> None:
    before = server.app.state.is_here

    async def gone(attempt: AttemptId, _: int) -> bool:
        raise NotFound("not-running", f"{attempt} is not running on this machine.")

    server.app.state.is_here = gone
    try:
        answer = browser.get(path(job, "page"))
    finally:
        server.app.state.is_here = before
    assert (answer.status_code, "is not running on this machine" in answer.text) == (503, True)


@pytest.mark.usefixtures("way")
def test_a_connection_to_a_service_is_kept_for_the_next_request_of_the_same_sign_in(
    visited: Visited, server: Server, job: str, browser: httpx2.Client, rested: Callable[[], None]
) -> None:
    first = browser.get(path(job, "kept")).text
    rested()
    assert browser.get(path(job, "kept")).text == first
    rested()
    assert visited.visit(server.client("root", role="admin"), job).get(path(job, "kept")).text != first


@pytest.mark.usefixtures("way")
def test_a_request_that_may_not_be_made_twice_gets_a_connection_of_its_own(
    visited: Visited, job: str, browser: httpx2.Client, rested: Callable[[], None]
) -> None:
    first = browser.get(path(job, "kept")).text
    rested()
    origin = {"Origin": f"http://{visited.host(job)}"}
    posted = browser.post(path(job, "kept"), content=b"x" * 10, headers=origin).text
    assert posted != first
    assert browser.get(path(job, "kept")).text != posted, "what the service left of a body would be the next request"


@pytest.mark.usefixtures("way")
def test_a_request_is_made_again_where_the_service_leaves_a_kept_connection(
    visited: Visited, job: str, browser: httpx2.Client, rested: Callable[[], None]
) -> None:
    first = int(browser.get(path(job, "kept")).text)
    rested()
    assert int(browser.get(path(job, "leave")).text) == first + 1
    assert [each.split(" ", 2)[1] for each in visited.target.heads[-2:]] == ["/leave", "/leave"]


def test_an_answer_that_breaks_off_is_not_taken_for_whole(job: str, browser: httpx2.Client) -> None:
    with pytest.raises(httpx2.TransportError):
        browser.get(path(job, "cut"))


def test_methods_and_characters_that_http_does_not_pass_on_are_refused(
    visited: Visited, job: str, browser: httpx2.Client
) -> None:
    assert browser.request("TRACE", path(job)).status_code == 405
    port = int(visited.server.url.rpartition(":")[2])
    head = f"GET {path(job)}?a=\xff HTTP/1.1\r\nHost: {visited.host(job)}\r\n"
    with socket.create_connection(("127.0.0.1", port)) as there:
        there.sendall(f"{head}Cookie: {browser.headers['Cookie']}\r\nConnection: close\r\n\r\n".encode("latin-1"))
        answer = b"".join(iter(lambda: there.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 400 "), answer[:200]


def open_socket(visited: Visited, job: str, cookie: str, **more: Any) -> Any:
    """Open a WebSocket as a browser would; loopback names need no resolver here."""
    there = socket.create_connection(("127.0.0.1", int(visited.server.url.rpartition(":")[2])))
    headers = {"Cookie": f"{cookie}; own=1", "X-Corral-CSRF": "1"}
    address = f"ws://{visited.host(job)}{path(job, 'chat?a=1', 'ws')}"
    return connect(address, sock=there, proxy=None, additional_headers=headers, compression=None, **more)


def test_websockets_are_passed_on_both_ways(visited: Visited, job: str, browser: httpx2.Client) -> None:
    origin = f"http://{visited.host(job)}"
    with open_socket(visited, job, browser.headers["Cookie"], origin=origin, subprotocols=["chat"]) as opened:
        assert opened.subprotocol == "chat"
        subprotocol, where, headers = json.loads(opened.recv(timeout=60))
        assert (subprotocol, where, headers["cookie"]) == ("chat", "/chat?a=1", "own=1")
        assert not {"x-corral-csrf", "authorization"} & headers.keys()
        for message in ("text", b"\x00\xff", "x" * 200_000, b"y" * 200_000):
            opened.send(message)
            assert opened.recv(timeout=60) == message
        opened.send("close")
        with pytest.raises(ConnectionClosed) as ended:
            opened.recv(timeout=60)
        assert ended.value.rcvd is not None and ended.value.rcvd.code == 4321


@pytest.fixture
def memory(server: Server) -> Iterator[MessageMemory]:
    """The server's memory for large messages, with room for one of the target's."""
    before = server.app.state.message_memory
    server.app.state.message_memory = small = MessageMemory(of_user=LARGE + 1024**2)
    yield small
    server.app.state.message_memory = before


def until_counted(memory: MessageMemory, least: int, most: int = 2 * LARGE) -> None:
    """Wait until so many bytes are counted: a message that has arrived is counted for a moment longer."""
    begun = time.monotonic()
    while not least <= memory.total <= most:
        assert time.monotonic() < begun + 120, memory.total
        time.sleep(pause(begun))


def test_large_messages_are_passed_on_while_there_is_memory_for_them(
    visited: Visited, job: str, browser: httpx2.Client, memory: MessageMemory
) -> None:
    more: dict[str, Any] = {"origin": f"http://{visited.host(job)}", "subprotocols": ["chat"], "max_size": None}
    cookie = browser.headers["Cookie"]
    with ExitStack() as stack:
        usual, first, second = (stack.enter_context(open_socket(visited, job, cookie, **more)) for _ in range(3))
        for each in (usual, first, second):
            each.recv(timeout=60)
        for _ in range(3):
            usual.send("large")
            assert len(usual.recv(timeout=60)) == LARGE
            until_counted(memory, 0, 0)
        first.send("begun")
        until_counted(memory, LARGE - 256 * 1024)  # all of it is there
        second.send("begun")
        with pytest.raises(ConnectionClosed) as ended:
            second.recv(timeout=60)
        assert ended.value.rcvd is not None and ended.value.rcvd.code == 1013
        usual.send("small")
        assert usual.recv(timeout=60) == "small"


def test_large_messages_of_a_browser_are_passed_on_while_there_is_memory_for_them(
    visited: Visited, job: str, browser: httpx2.Client, memory: MessageMemory
) -> None:
    more: dict[str, Any] = {"origin": f"http://{visited.host(job)}", "subprotocols": ["chat"], "max_size": None}
    whole = b"z" * LARGE
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(open_socket(visited, job, browser.headers["Cookie"], **more)) for _ in range(2)
        )
        for each in (first, second):
            each.recv(timeout=60)
        for _ in range(3):
            first.send(whole)
            assert first.recv(timeout=60) == whole
            until_counted(memory, 0, 0)
        with first.send_context():
            first.protocol.send_binary(whole, fin=False)
        until_counted(memory, LARGE - 256 * 1024)  # all of it is there
        with second.send_context():
            second.protocol.send_binary(bytes(1024**2), fin=False)
        until_counted(memory, LARGE + 512 * 1024)
        with second.send_context():  # little is left to send when the connection ends
            second.protocol.send_continuation(bytes(1024**2), fin=True)
        with pytest.raises(ConnectionClosed) as ended:
            second.recv(timeout=60)
        assert ended.value.rcvd is not None and ended.value.rcvd.code == 1013
        with first.send_context():
            first.protocol.send_continuation(b"end", fin=True)
        assert first.recv(timeout=60) == whole + b"end"
    until_counted(memory, 0, 0)


def test_a_browser_may_send_more_in_many_messages_than_there_is_memory_for(
    visited: Visited, job: str, browser: httpx2.Client, memory: MessageMemory
) -> None:
    more: dict[str, Any] = {"origin": f"http://{visited.host(job)}", "subprotocols": ["chat"]}
    with open_socket(visited, job, browser.headers["Cookie"], **more) as opened:
        opened.recv(timeout=60)
        opened.send("count")
        for _ in range(400):
            opened.send(PIECE)
        opened.send("end")
        assert opened.recv(timeout=60) == str(400 * len(PIECE))


def test_a_message_of_a_browser_has_an_end(visited: Visited, job: str, browser: httpx2.Client) -> None:
    more: dict[str, Any] = {"origin": f"http://{visited.host(job)}", "subprotocols": ["chat"]}
    with open_socket(visited, job, browser.headers["Cookie"], **more) as opened:
        opened.recv(timeout=60)
        with opened.send_context():
            opened.protocol.send_binary(bytes(LARGE_MESSAGE_LIMIT), fin=False)
        with opened.send_context():
            opened.protocol.send_continuation(b"x", fin=True)
        with pytest.raises(ConnectionClosed) as ended:
            opened.recv(timeout=60)
        assert ended.value.rcvd is not None and ended.value.rcvd.code == 1009


def test_websockets_need_the_jobs_own_page_and_a_session(visited: Visited, job: str, browser: httpx2.Client) -> None:
    origin, cookie = f"http://{visited.host(job)}", browser.headers["Cookie"]
    for sent, given in ((None, cookie), ("http://evil.example", cookie), (origin, "corral_service=x")):
        with pytest.raises(InvalidStatus):
            open_socket(visited, job, given, origin=sent)


def test_a_websocket_ends_with_the_session(visited: Visited, server: Server, job: str) -> None:
    with server.client("alice") as client:
        cookie = visited.visit(client, job).headers["Cookie"]
        origin = f"http://{visited.host(job)}"
        with open_socket(visited, job, cookie, origin=origin, subprotocols=["chat"]) as opened:
            opened.recv(timeout=60)
            client.logout()
            with pytest.raises(ConnectionClosed):
                opened.recv(timeout=60)


def test_below_a_domain_origins_and_cookies_are_for_https_alone(
    visited: Visited, server: Server, alice: Client, job: str
) -> None:
    state = server.app.state
    before = state.services_domain, state.public_url, state.secure
    state.services_domain, state.public_url, state.secure = "jobs.example.org", "https://corral.example.org", True
    try:
        url = str(alice.open_service(job, "main", 0, "web")["url"])
        host = f"{job}.jobs.example.org"
        assert url.startswith(f"https://{host}/.corral/open?ticket=")
        opened = visited.browser(job, Host=host).get(url.removeprefix(f"https://{host}"))
        cookie = opened.headers["set-cookie"].lower()
        assert cookie.startswith("__host-corral_service=") and "secure" in cookie and "domain" not in cookie
        assert visited.browser(job, Host="jobs.example.org").get("/api/v3/version").status_code == 421
        signed = visited.browser(job, Host="corral.example.org").get(
            "/api/v3/me", headers={"Cookie": f"corral_session={alice.token}"}
        )
        assert signed.status_code == 401, "a cookie that a job's page could set is taken"
        signed = visited.browser(job, Host="corral.example.org").get(
            "/api/v3/me", headers={"Cookie": f"__Host-corral_session={alice.token}"}
        )
        assert signed.status_code == 200
    finally:
        state.services_domain, state.public_url, state.secure = before


def test_without_a_domain_services_are_opened_on_loopback_alone(server: Server, alice: Client, job: str) -> None:
    elsewhere = (
        {"Host": "corral.example.org"},
        {"Host": "corral.example.org:1:2"},
        {"Host": "localhost:8470", "Origin": "https://corral.example.org"},  # behind a proxy that changes the host
        {"Origin": "null"},
    )
    for headers in elsewhere:
        sent = headers | {"Authorization": f"Bearer {alice.token}"}
        answer = httpx2.post(f"{server.url}/api/v3/jobs/{job}/services/main/0/web", headers=sent, trust_env=False)
        assert (answer.status_code, answer.json()["code"]) == (409, "no-services-domain"), headers


@pytest.mark.parametrize(
    ("domain", "public_url"),
    [
        ("jobs.example.org", ""),
        ("jobs.example.org", "http://corral.example.org"),
        ("example.org", "https://corral.example.org"),
        ("example.org", "https://example.org"),
        ("org", "https://corral.example.org"),
        ("*.jobs.example.org", "https://corral.example.org"),
    ],
)
def test_a_domain_that_does_not_keep_the_portal_apart_is_refused(domain: str, public_url: str) -> None:
    with pytest.raises(InvalidInput, match="services_domain"):
        checked_domain(domain, public_url)
    assert checked_domain("Jobs.Example.org", "https://corral.example.org") == "jobs.example.org"
