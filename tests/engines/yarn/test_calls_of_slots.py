"""What strangers, users and the slots of other users may ask of the address that slots call: nothing."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import httpx2
import msgspec
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from corral.api.rate_limits import CallLimit
from corral.api.slots import PREFIX, SlotCalls
from corral.control.control_api import below
from corral.engines.yarn.engine import YarnEngine
from corral.engines.yarn.kind import YarnKind, YarnOptions, settings_of
from corral.engines.yarn.service_spec import SlotShape
from corral.engines.yarn.sessions import SlotSession
from corral.engines.yarn.slot_api import SlotApi
from corral.engines.yarn.slots import Attempt, Phase, Service, Slot
from corral.kernel.errors import NotFound
from corral.kernel.ids import AttemptId, JobId, job_id
from corral.model.launch import Exited, Started, TaskLaunch
from corral.runtime import slot_calls as agent
from corral.runtime.peers import Refused
from corral.storage.log_files import LogStore
from tests.api.harness import Server, serving

SECRET = b"s" * 32
SHAPE = SlotShape("main", "nm1", 1000, 64 * 2**20, 0)
ADA, BOB = job_id(1_700_000_000_000, 1), job_id(1_700_000_000_000, 2)
CONTAINERS = {ADA: "container_1700000000000_0001_01_000002", BOB: "container_1700000000000_0002_01_000002"}


class Place:
    """A front, and behind it a control whose YARN engine has one service of Ada's and one of Bob's."""

    def __init__(self, engine: YarnEngine, server: Server) -> None:
        self.engine, self._server = engine, server
        self.url = f"{server.url}/api/v3/slots/yarn"
        self._client = httpx2.Client(base_url=f"{server.url}/api/v3/slots/", timeout=120)

    def call(self, method: str, path: str, token: str = "", body: Any = None) -> tuple[int, Any]:
        """One call; the status and the JSON."""
        content = body if isinstance(body, bytes) else msgspec.json.encode(body) if body is not None else b""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        answer = self._client.request(method, path, content=content, headers=headers)
        return answer.status_code, answer.json()

    def admission(self, job: JobId) -> str:
        """The token that the containers of a job's service are given."""
        return self.engine._tokens.of_service(service(job))

    def hello(self, job: JobId, container: str = "", *, of: JobId | None = None) -> tuple[int, Any]:
        """Say hello for a job's service with its token, or with that of another job."""
        told = {
            "service": service(job),
            "instance": "main-n0-0",
            "container": container or CONTAINERS[job],
            "host": "127.0.0.2",
        }
        return self.call("POST", "yarn/hello", self.admission(of or job), told)

    def token(self, job: JobId) -> str:
        """The token of a job's slot."""
        status, told = self.hello(job)
        assert status == 200, told
        return str(told["token"])

    def limits(self) -> CallLimit:
        """The limits of slots' calls in front."""
        routes = self._server.app.router.routes
        found = next(each.app for each in routes if isinstance(each, Route) and each.path.startswith(PREFIX))
        assert isinstance(found, SlotCalls)
        return found._limit

    def user_token(self) -> str:
        return self._server.token("alice")


def service(job: JobId) -> str:
    return f"corral-test-{job.lower()}-1"


def attempt(job: JobId) -> AttemptId:
    return AttemptId(f"{job}.0.main.0.0")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    nowhere = "http://127.0.0.1:1"
    options = YarnOptions(yarn_resource_managers=nowhere, yarn_name_nodes=nowhere, yarn_idle_seconds=86_400)
    settings = settings_of(options, "test", "http://127.0.0.1:1")
    engine = YarnEngine(settings, secret=SECRET, logs=LogStore(tmp_path / "logs"))
    (tmp_path / "logs").mkdir()
    for job, user in ((ADA, "ada"), (BOB, "bob")):
        made = Service(service(job), job, user, "default", {"main-n0": SHAPE}, {"main-n0": 1}, busy_at=monotonic())
        engine._table.services[made.name] = made
        launch = TaskLaunch(attempt(job), user, "yarn/nm1", ("echo", f"secret of {user}"), {})
        found = Attempt(attempt(job), Phase.ASSIGNED, CONTAINERS[job], launch=launch, shape=SHAPE)
        engine._table.attempts[attempt(job)] = found
    engine._serving = True

    agents = {"yarn": lambda token: YarnKind().agent(SECRET, token)}
    with _control(engine, tmp_path / "control.sock"), serving(tmp_path, agents=agents) as server:
        yield Place(engine, server)


class _control:
    """The engine's calls on control's socket, in a thread of its own."""

    def __init__(self, engine: YarnEngine, path: Path) -> None:
        application = Starlette(routes=[Mount("/slots/yarn", app=below(SlotApi(engine)))])
        config = uvicorn.Config(application, log_config=None, lifespan="off")
        self._server = uvicorn.Server(config)
        self._server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._server.serve(sockets=[self._listener])), daemon=True
        )

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()


@pytest.mark.parametrize("path", ["hello", "sync", "log?attempt=a&stream=all&offset=0", f"sessions/{'0' * 32}/output"])
def test_strangers_and_users_are_refused_before_control_is_asked(place: Place, path: str) -> None:
    for token in ("", "x", place.user_token(), "slot.x.y", f"service.{service(ADA)}.{'0' * 64}"):
        status, told = place.call("POST", f"yarn/{path}", token, {})
        assert (status, told["code"]) == (401, "slot-refused"), token


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "yarn/hello"),
        ("POST", "yarn/anything"),
        ("POST", "local/hello"),
        ("POST", "yarn/sessions/../hello/output"),
        ("POST", "yarn/hello/more"),
    ],
)
def test_only_the_calls_of_slots_exist(place: Place, method: str, path: str) -> None:
    assert place.call(method, path, place.admission(ADA), {})[0] in (404, 405)


def test_a_slot_gets_the_attempts_of_its_own_container(place: Place) -> None:
    status, orders = place.call("POST", "yarn/sync", place.token(ADA), {"attempts": {}})
    assert status == 200
    assert [order["command"] for order in orders["start"]] == [["echo", "secret of ada"]]


def test_a_service_admits_to_itself_alone(place: Place) -> None:
    assert place.hello(BOB, of=ADA) == (
        401,
        {"code": "slot-refused", "message": "This token is of another service."},
    )


def test_a_container_that_takes_another_ones_name_gets_nothing_of_it(place: Place) -> None:
    for first in (True, False):  # before the other one has said hello, and after
        status, told = place.hello(ADA, CONTAINERS[BOB])
        assert status == 200
        status, orders = place.call("POST", "yarn/sync", told["token"], {"attempts": {}})
        assert (status, orders) == (200, {}), "it has no attempt"
        ended = {"state": "ended", "pid": 1, "code": 0}
        status, orders = place.call("POST", "yarn/sync", told["token"], {"attempts": {attempt(BOB): ended}})
        assert status == 200
        assert place.engine._table.attempts[attempt(BOB)].exited is None
        if first:
            orders = place.call("POST", "yarn/sync", place.token(BOB), {"attempts": {}})[1]
            assert [order["command"] for order in orders["start"]] == [["echo", "secret of bob"]]


def test_a_slot_writes_into_no_other_ones_log_and_joins_no_other_ones_session(place: Place) -> None:
    mine = place.token(ADA)
    place.token(BOB)
    status, told = place.call("POST", f"yarn/log?attempt={attempt(BOB)}&stream=all&offset=0", mine, b"forged")
    assert (status, told["code"]) == (404, "no-attempt")
    session = place.engine._sessions
    made = asyncio.run(_opened(session, place.engine._table.slots[f"{BOB}/{CONTAINERS[BOB]}"].key))
    for method, end in (("POST", "output"), ("GET", "input")):
        status, told = place.call(method, f"yarn/sessions/{made}/{end}", mine)
        assert (status, told["code"]) == (404, "no-session")


async def _opened(sessions: Any, key: str) -> str:
    return str(sessions.open("0" * 32, key).id)


@pytest.mark.parametrize(
    "body",
    [
        b"no json",
        {"attempts": 1},
        {"attempts": {"a": {"state": "dancing"}}},
        {"attempts": {}, "wait": 1e9},
        {"attempts": {"a": {"state": "ended", "code": 256}}},
        {"attempts": {"a": {"state": "running", "pid": 1, "ports": {"web": [70000]}}}},
        {"attempts": {"a": {"state": "ended", "reason": "x" * 2000}}},
    ],
)
def test_what_a_slot_may_not_say_is_refused_in_one_sentence(place: Place, body: Any) -> None:
    status, told = place.call("POST", "yarn/sync", place.token(ADA), body)
    assert (status, told["code"]) == (400, "bad-slot-call")
    assert told["message"].endswith(".")


def test_a_body_is_bounded(place: Place) -> None:
    path = f"yarn/log?attempt={attempt(ADA)}&stream=all&offset=0"
    status, told = place.call("POST", path, place.token(ADA), b"x" * (2**20 + 1))
    assert (status, told["code"]) == (413, "body-too-large")


def test_the_calls_of_one_slot_are_bounded_and_others_are_not_held_up(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = place.token(ADA), place.token(BOB)
    monkeypatch.setattr(place.limits(), "_calls", 3)
    codes = [place.call("POST", "yarn/sync", mine, {"attempts": {}})[0] for _ in range(4)]
    assert codes == [200, 200, 200, 429]
    assert place.call("POST", "yarn/sync", other, {"attempts": {}})[0] == 200


def test_a_service_has_no_more_slots_than_it_was_asked_for(place: Place) -> None:
    codes = [
        place.call(
            "POST",
            "yarn/hello",
            place.admission(ADA),
            {"service": service(ADA), "instance": f"main-n0-{n}", "container": f"container_1_1_1_{n}", "host": "h"},
        )[0]
        for n in range(40)
    ]
    assert codes.count(200) == 2 + 16
    assert set(codes) == {200, 429}


def test_slots_are_answered_only_while_the_engine_is_open(place: Place) -> None:
    token = place.token(ADA)
    place.engine._serving = False
    for path, given in (("hello", place.admission(ADA)), ("sync", token)):
        body = {"service": service(ADA), "instance": "main-n0-0", "container": CONTAINERS[ADA], "host": "h"}
        status, told = place.call("POST", f"yarn/{path}", given, body if path == "hello" else {"attempts": {}})
        assert (status, told["code"]) == (503, "engine-closed"), "the slot asks again, and keeps its task"


def test_an_attempt_that_an_agent_reports_as_lost_ends_as_a_lost_slot_and_is_not_given_again(place: Place) -> None:
    lost = {"attempts": {attempt(ADA): {"state": "lost"}}}
    status, orders = place.call("POST", "yarn/sync", place.token(ADA), lost)
    assert (status, orders) == (200, {})
    found = place.engine._table.attempts[attempt(ADA)]
    assert found.exited is not None
    assert (found.exited.code, found.exited.reason) == (-101, "its YARN container was started again")


def test_a_log_goes_on_after_a_restart_of_the_server_before_the_slot_has_said_hello_again(place: Place) -> None:
    given = {"url": place.url, "service": service(ADA), "token": place.admission(ADA)}
    slot = agent.SlotCalls(given, "main-n0-0", CONTAINERS[ADA], "127.0.0.2")
    slot.sync({}, 0)
    assert slot.append(attempt(ADA), "all", 0, b"before\n") == 7
    place.engine._table.slots.clear()  # a restarted server knows its services, and no slot
    assert slot.append(attempt(ADA), "all", 7, b"after\n") == 13
    del place.engine._table.attempts[attempt(ADA)]
    with pytest.raises(Refused):
        slot.append(attempt(ADA), "all", 13, b"of an attempt that is forgotten\n")


async def test_a_session_waits_for_the_container_of_an_attempt_that_an_earlier_server_started(tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:1"
    options = YarnOptions(yarn_resource_managers=nowhere, yarn_name_nodes=nowhere, yarn_idle_seconds=86_400)
    engine = YarnEngine(settings_of(options, "test", nowhere), secret=SECRET, logs=LogStore(tmp_path))
    slot = Slot(service(ADA), ADA, "main-n0", "main-n0-0", CONTAINERS[ADA], "127.0.0.2")
    engine._table.attempts[attempt(ADA)] = Attempt(attempt(ADA), Phase.ASSIGNED, CONTAINERS[ADA])
    engine._table.attempts[attempt(BOB)] = Attempt(
        attempt(BOB), Phase.ASSIGNED, CONTAINERS[BOB], launch=TaskLaunch(attempt(BOB), "bob", "yarn/nm1", ("true",), {})
    )
    with pytest.raises(NotFound, match="is not running"):
        await engine.exec(attempt(BOB), ["true"], tty=False)  # this server's own, which has not begun
    waiting = asyncio.create_task(engine.exec(attempt(ADA), ["true"], tty=False))
    await asyncio.sleep(0)
    assert not waiting.done() and slot.sessions == []
    engine._table.slots[slot.key] = slot
    engine._table.attempts[attempt(ADA)].started = Started(attempt(ADA), 1.0, slot.host, {}, "process")
    assert isinstance(await waiting, SlotSession)
    assert [(order["attempt"], order["argv"]) for order in slot.sessions] == [(attempt(ADA), ["true"])]
    engine._table.attempts[attempt(ADA)].exited = Exited(attempt(ADA), 2.0, 0)
    with pytest.raises(NotFound, match="is not running"):
        await engine.exec(attempt(ADA), ["true"], tty=False)
