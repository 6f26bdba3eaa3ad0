"""Where jobs have no hosts of their own, each has a port of the server, with which it gets no cookie of the host."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack

import httpx2
import pytest
import trustme
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from corral.api.services.job_ports import MOST, JobPorts, checked_ports
from corral.client import Client
from corral.kernel.errors import Conflict, InvalidInput
from corral.kernel.ids import JobId
from tests.api.harness import Server, serving
from tests.api.service_target import running
from tests.api.test_services_of_jobs import Visited, path
from tests.reserved import first_of_free

HOST = "corral.test"
OWN_PAGE = {"Sec-Fetch-Site": "same-origin"}
PREFIX = "__Host-Http-corral_"
AUTHORITY = trustme.CA()


def a_range(size: int = 24) -> range:
    """Free ports that no other test process gets."""
    first = first_of_free(size)
    return range(first, first + size)


@pytest.fixture(scope="module")
def visited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visited]:
    """A front with a certificate whose jobs have ports, a stand-in for control, and a target."""
    folder = tmp_path_factory.mktemp("front")
    issued = AUTHORITY.issue_cert("127.0.0.1", HOST)
    AUTHORITY.cert_pem.write_to_path(str(folder / "ca"))
    issued.private_key_pem.write_to_path(str(folder / "key"))
    issued.cert_chain_pems[0].write_to_path(str(folder / "certificate"))

    def prepare(server: Server) -> None:
        server.settings = {"tls_certificate": folder / "certificate", "tls_key": folder / "key"}
        server.app.state.job_ports = JobPorts(a_range())
        server.app.state.secure = True

    with serving(folder, prepare) as server:
        server.url = server.url.replace("http:", "https:")
        stack = AsyncExitStack()
        target = server.call(stack.enter_async_context(running(folder / "control.sock")))
        made = Visited(server, target)
        server.store.task = made.task  # type: ignore[method-assign]
        yield made
        server.call(stack.aclose())


class Browser:
    """A browser that reaches the server by a name which is no loopback address; it keeps no cookies by itself."""

    def __init__(self, visited: Visited, token: str) -> None:
        self.port = int(visited.server.url.rpartition(":")[2])
        self.token = token
        context = ssl.create_default_context()
        AUTHORITY.configure_trust(context)
        self.context = context
        self.client = httpx2.Client(verify=context, trust_env=False, timeout=60)

    def ask(self, port: int, target: str, method: str = "GET", **headers: str) -> httpx2.Response:
        """Send one request to a port of the server."""
        self.client.cookies.clear()
        sent = {"Host": f"{HOST}:{port}"} | {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.request(method, f"https://127.0.0.1:{port}{target}", headers=sent)

    def address(self, job: str) -> tuple[int, str]:
        """The port of a job and the path of a fresh one-time address there."""
        answer = self.ask(
            self.port, f"/api/v3/jobs/{job}/services/main/0/web", "POST", Authorization=f"Bearer {self.token}"
        )
        assert answer.status_code == 200, answer.text
        host, _, rest = answer.json()["url"].removeprefix("https://").partition("/")
        name, _, port = host.partition(":")
        assert name == HOST
        return int(port), f"/{rest}"

    def visit(self, job: str) -> tuple[int, str]:
        """The port of a job, and the cookies of a session there."""
        port, ticket = self.address(job)
        answer = self.ask(port, ticket)
        assert (answer.status_code, answer.headers["location"]) == (303, path(job)), answer.text
        return port, "; ".join(each.partition(";")[0] for each in answer.headers.get_list("set-cookie"))


@pytest.fixture
def alice(visited: Visited) -> Iterator[Client]:
    """Alice, who submits."""
    server = visited.server
    with Client(server.url, server.token("alice"), ca=str(server.folder / "ca")) as client:
        yield client


@pytest.fixture
def browser(visited: Visited) -> Iterator[Browser]:
    """A browser that is signed in as alice."""
    made = Browser(visited, visited.server.token("alice"))
    yield made
    made.client.close()


def test_each_job_has_a_port_of_its_own_where_nothing_of_the_portal_is(
    visited: Visited, browser: Browser, alice: Client
) -> None:
    job, other = visited.submit(alice), visited.submit(alice)
    port, session = browser.visit(job)
    assert browser.address(job)[0] == port != browser.address(other)[0]
    answer = browser.ask(port, path(job, "a?b=1"), Cookie=session, **OWN_PAGE)
    assert answer.json()[0] == "GET /a?b=1 HTTP/1.1"
    for each in ("/", "/api/v3/me", "/healthz", "/metrics", "/openapi.json", path(other)):
        refused = browser.ask(port, each, Cookie=session, Authorization=f"Bearer {browser.token}", **OWN_PAGE)
        assert (refused.status_code, refused.headers["content-type"]) == (404, "text/plain; charset=utf-8"), each
    assert browser.ask(browser.address(other)[0], path(other), Cookie=session, **OWN_PAGE).status_code == 401


def test_cookies_of_the_host_reach_no_service_and_services_set_none(
    visited: Visited, browser: Browser, alice: Client
) -> None:
    job = visited.submit(alice)
    port, session = browser.visit(job)
    cookies = f"{session}; {PREFIX}session={browser.token}; corral_session=x; of_another_job=secret"
    answer = browser.ask(port, path(job), Cookie=cookies, **OWN_PAGE)
    told = "\n".join(answer.json()).lower()
    assert "cookie" not in told and browser.token.lower() not in told and "secret" not in told
    assert "set-cookie" not in browser.ask(port, path(job, "cookies"), Cookie=session, **OWN_PAGE).headers


def test_cookies_of_corral_can_be_set_by_its_answers_alone_and_are_the_jobs_or_the_portals(
    visited: Visited, browser: Browser, alice: Client
) -> None:
    job = visited.submit(alice)
    port, ticket = browser.address(job)
    first, second = browser.ask(port, ticket).headers.get_list("set-cookie")
    assert first.startswith(f"{PREFIX}service_{job}=") and second.startswith(f"{PREFIX}port_{port}={job};")
    for each in (first.lower(), second.lower()):
        assert "secure" in each and "httponly" in each and "path=/;" in each and "domain" not in each
    for name, status in ((f"{PREFIX}session", 200), ("__Host-corral_session", 401), ("corral_session", 401)):
        assert browser.ask(browser.port, "/api/v3/me", Cookie=f"{name}={browser.token}").status_code == status, name


@pytest.mark.parametrize("site", ["same-site", "cross-site", ""])
def test_a_page_of_another_port_asks_a_job_for_nothing(
    visited: Visited, browser: Browser, alice: Client, site: str
) -> None:
    job = visited.submit(alice)
    port, session = browser.visit(job)
    before = len(visited.target.heads)
    headers = {"Sec-Fetch-Site": site} if site else {}
    assert browser.ask(port, path(job), Cookie=session, **headers).status_code == 403
    with (
        pytest.raises(InvalidStatus),
        connect(
            f"wss://127.0.0.1:{port}{path(job, port='ws')}",
            ssl=browser.context,
            origin=Origin(f"https://{HOST}:{browser.port}"),
            additional_headers={"Cookie": session, "Host": f"{HOST}:{port}"},
        ),
    ):
        pass
    assert len(visited.target.heads) == before
    headers |= {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert browser.ask(port, path(job), Cookie=session, **headers).status_code == 200, "a window of its own is shown"


def test_a_browser_that_opened_one_job_at_a_port_opens_no_other_there(
    visited: Visited, browser: Browser, alice: Client
) -> None:
    job = visited.submit(alice)
    port, ticket = browser.address(job)
    refused = browser.ask(port, ticket, Cookie=f"{PREFIX}port_{port}=00000000000aa")
    assert refused.status_code == 409 and "end the browser" in refused.text
    assert browser.ask(port, ticket, Cookie=f"{PREFIX}port_{port}={job}").status_code == 303, "the ticket is still good"


def test_a_port_is_given_back_when_its_job_is_over(visited: Visited, browser: Browser, alice: Client) -> None:
    job = visited.submit(alice)
    port, session = browser.visit(job)
    ports: JobPorts = visited.server.app.state.job_ports
    services = visited.server.service.job_services
    visited.server.call(ports.give_back(services.alive))
    assert browser.ask(port, path(job), Cookie=session, **OWN_PAGE).status_code == 200
    assert visited.server.call(services.alive([JobId(job), JobId("00000000000aa")])) == {job}
    visited.server.call(ports.give_back(none_alive))
    assert browser.ask(port, path(job), Cookie=session, **OWN_PAGE).status_code == 421, "an open connection is refused"
    browser.client.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=60)


async def none_alive(jobs: Iterable[JobId]) -> frozenset[JobId]:
    """All jobs are over."""
    return frozenset()


def listening(taken: Iterable[int], open_ports: set[int]) -> Callable[[int], Callable[[], None]]:
    def listen(port: int) -> Callable[[], None]:
        if port in taken:
            raise Conflict("port-in-use", "Another program has it.")
        open_ports.add(port)
        return lambda: open_ports.discard(port)

    return listen


def test_ports_are_refused_when_none_is_left_and_rest_before_they_serve_another_job() -> None:
    now, open_ports = [0.0], set[int]()
    ports = JobPorts(range(20_000, 20_003), lambda: now[0])
    ports.attach(listening({20_001}, open_ports), [8470])
    first, second = ports.take(JobId("a")), ports.take(JobId("b"))
    assert {first, second} == open_ports == {20_000, 20_002} and ports.take(JobId("a")) == first
    with pytest.raises(Conflict, match=r"Each of the 3 ports of job_ports serves another job, or did within 12 hours"):
        ports.take(JobId("c"))

    async def alive(jobs: Iterable[JobId]) -> frozenset[JobId]:
        return frozenset({JobId("b")}) & frozenset(jobs)

    asyncio.run(ports.give_back(alive))
    assert open_ports == {second} and (ports.label(first), ports.label(second), ports.label(8470)) == ("", "b", None)
    with pytest.raises(Conflict):
        ports.take(JobId("c"))
    now[0] += 12 * 3600.0
    assert ports.take(JobId("c")) == first
    ports.close()
    assert open_ports == set() and ports.label(first) == ""


@pytest.mark.parametrize(
    "text", ["20000", "20000-", "80-90", "20099-20000", "60000-70000", f"2000-{2000 + MOST}", "a-b"]
)
def test_a_range_of_ports_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="write at most 1000 ports from 1024 to 65535"):
        checked_ports(text, tls=True, domain="")


def test_ports_of_jobs_need_tls_and_no_domain_and_leave_out_the_servers_own() -> None:
    assert checked_ports("", tls=False, domain="x.example.org") == range(0)
    assert checked_ports("20000-20099", tls=True, domain="") == range(20_000, 20_100)
    with pytest.raises(InvalidInput, match="needs a certificate"):
        checked_ports("20000-20099", tls=False, domain="")
    with pytest.raises(InvalidInput, match="a job has one origin"):
        checked_ports("20000-20099", tls=True, domain="jobs.example.org")
    with pytest.raises(InvalidInput, match="must not contain the server's own port 20005"):
        JobPorts(range(20_000, 20_100)).attach(listening((), set()), [20_005])
