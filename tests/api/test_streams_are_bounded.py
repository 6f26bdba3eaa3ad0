"""Streams over the limit are refused before they begin; unread streams cost little memory and are closed."""

from __future__ import annotations

import contextlib
import resource
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from corral.api.connection_limits import ConnectionLimits, ReadSpeed
from corral.api.http_protocol import TOO_SLOW
from corral.api.log_reader import LogSource
from corral.api.stream_limits import StreamCaps, Streams
from corral.client import Client
from corral.kernel.errors import TooManyRequests, Unavailable
from corral.kernel.ids import AttemptId
from corral.service.actor import Actor
from tests.api.harness import Server, serving
from tests.api.test_exec_passes_frames_on import server as server_with_control
from tests.api.test_jobs_are_submitted_and_read import job

PATIENCE = 120.0
MIB = 1024 * 1024
entered = server_with_control


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that closes slow readers soon and allows few open streams."""

    def prepare(server: Server) -> None:
        server.settings = {"reading_seconds": 2.0}
        server.app.state.streams = Streams(StreamCaps(events=2, logs=2, in_all=5))

    with serving(tmp_path_factory.mktemp("front"), prepare) as running:
        yield running


@pytest.fixture
def log(server: Server, alice: Client, request: pytest.FixtureRequest) -> tuple[str, Path]:
    """A job whose worker-0 has a growing log: the job's id and the file."""
    made = alice.submit(job(f"log-{abs(hash(request.node.name)) % 10**8}"))
    path = Path(server.logs.prepare(AttemptId(f"{made['id']}.0.worker.0.0"))[0])
    path.write_bytes(b"a line of a log that is long\n" * 10)
    return made["id"], path


def with_tasks(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the log of worker-0 every job's log, as control would have reported it."""

    async def job_logs(actor: Actor, ref: str, **_: int) -> list[tuple[str, int, LogSource]]:
        attempt = f"{ref}.0.worker.0.0"
        return [
            (
                "worker",
                0,
                await server.service.task_logs.of_task(actor, ref, "worker", 0, attempt=attempt, stream="all"),
            )
        ]

    monkeypatch.setattr(server.service.task_logs, "of_job", job_logs)


def resident() -> int:
    """Resident memory in bytes of this process, which includes the server."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def settled() -> int:
    """The value of `resident` once it has not changed for a second."""
    found, since, end = resident(), time.monotonic(), time.monotonic() + PATIENCE
    while time.monotonic() - since < 1.0:
        assert time.monotonic() < end, "memory grows on and on"
        if abs((now := resident()) - found) > MIB // 4:
            found, since = now, time.monotonic()
        time.sleep(0.02)
    return found


def until(true: Callable[[], bool], what: str) -> None:
    """Wait for a state."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.01)


@contextlib.contextmanager
def reading(server: Server, client: Client, path: str) -> Iterator[socket.socket]:
    """A connection that has requested `path` and reads nothing."""
    parts = urlsplit(server.url)
    with socket.socket() as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.settimeout(PATIENCE)
        made.connect((parts.hostname, parts.port))
        head = f"GET /api/v3{path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {client.token}\r\n\r\n"
        made.sendall(head.encode())
        yield made


def rest(connection: socket.socket) -> bytes:
    """All bytes until the connection ends."""
    pieces = []
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(MIB):
            pieces.append(piece)
    return b"".join(pieces)


def get(client: Client, server: Server, path: str) -> httpx2.Response:
    """An answer that is refused, or of which the beginning is enough."""
    headers = {"authorization": f"Bearer {client.token}"}
    with httpx2.Client(base_url=server.url, headers=headers, trust_env=False, timeout=PATIENCE) as http:
        with http.stream("GET", f"/api/v3{path}") as answer:
            if answer.status_code != 200:
                answer.read()
            return answer


@pytest.mark.parametrize("kind", ["events", "logs"])
def test_a_user_has_so_many_streams_and_others_have_theirs(
    server: Server, alice: Client, log: tuple[str, Path], kind: str
) -> None:
    path = {"events": "/events", "logs": f"/jobs/{log[0]}/logs?follow=true"}[kind]
    streams: Streams = server.app.state.streams
    with contextlib.ExitStack() as open_:
        for _ in range(2):
            assert b" 200 " in open_.enter_context(reading(server, alice, path)).recv(100)
        refused = get(alice, server, path)
        assert (refused.status_code, refused.json()["code"]) == (429, "too-many-streams")
        assert refused.headers["retry-after"] == "10"
        with server.client("bob") as bob:
            assert get(bob, server, "/events").status_code == 200
    until(lambda: streams.in_all == 0, "streams kept their places")
    assert get(alice, server, path).status_code == 200


def test_the_server_has_so_many_streams(server: Server) -> None:
    streams: Streams = server.app.state.streams
    until(lambda: streams.in_all == 0, "streams kept their places")
    with contextlib.ExitStack() as open_:
        for name in ("ann", "ben", "cas", "dan", "eva"):
            client = open_.enter_context(server.client(name))
            assert b" 200 " in open_.enter_context(reading(server, client, "/events")).recv(100)
        with server.client("fay") as late:
            refused = get(late, server, "/events")
        assert (refused.status_code, refused.json()["code"]) == (503, "too-many-streams")
    until(lambda: streams.in_all == 0, "streams kept their places")


def test_commands_and_forwards_are_counted_too(entered: Server) -> None:
    token = entered.token("alice")
    with Client(entered.url, token) as alice:
        alice.submit(job("counted"))
        entered.app.state.streams = Streams(StreamCaps(exec=1, forward=1))
        with alice.exec("counted", "worker", 0, ["true"]) as first:
            assert next(iter(first))
            with pytest.raises(TooManyRequests, match="commands in tasks"):
                list(alice.exec("counted", "worker", 0, ["true"]))
        until(lambda: entered.app.state.streams.in_all == 0, "the command kept its place")
        entered.app.state.streams = Streams(StreamCaps(in_all=0))
        with pytest.raises(Unavailable):
            list(alice.exec("counted", "worker", 0, ["true"]))


def test_a_reader_of_nothing_is_cut_and_told_why(
    server: Server, alice: Client, log: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_tasks(server, monkeypatch)
    log[1].write_bytes(b"a line of a log that is long\n" * (32 * MIB // 29))
    streams: Streams = server.app.state.streams
    with reading(server, alice, f"/jobs/{log[0]}/logs?follow=true") as connection:
        assert b" 200 " in connection.recv(100)
        until(lambda: streams.in_all == 0, "a reader of nothing was kept")
        said = rest(connection)
    assert len(said) < 16 * MIB
    assert said.endswith(f"(the log ends here: {TOO_SLOW})\n\r\n".encode())


def test_bytes_that_a_reader_counts_get_nothing_added(server: Server, alice: Client, log: tuple[str, Path]) -> None:
    log[1].write_bytes(b"a line of a log that is long\n" * (32 * MIB // 29))
    streams: Streams = server.app.state.streams
    with reading(server, alice, f"/jobs/{log[0]}/tasks/worker/0/logs?follow=true") as connection:
        assert b" 200 " in connection.recv(100)
        until(lambda: streams.in_all == 0, "a reader of nothing was kept")
        said = rest(connection)
    assert TOO_SLOW.encode() not in said and not said.endswith(b"0\r\n\r\n")


def test_readers_of_nothing_cost_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readers = 30
    with serving(tmp_path) as server, server.client("alice") as alice, contextlib.ExitStack() as open_:
        with_tasks(server, monkeypatch)
        made = alice.submit(job("unread"))
        path = Path(server.logs.prepare(AttemptId(f"{made['id']}.0.worker.0.0"))[0])
        path.write_bytes(b"a line of a log that is long\n" * (32 * MIB // 29))
        assert get(alice, server, f"/jobs/{made['id']}/logs").status_code == 200
        before = resident()
        for _ in range(readers):
            connection = open_.enter_context(reading(server, alice, f"/jobs/{made['id']}/logs?follow=true"))
            assert b" 200 " in connection.recv(100)
        until(lambda: server.counter.count >= readers, "not all are there")
        assert settled() - before < readers * MIB


def test_a_slow_reader_who_takes_something_is_let_be() -> None:
    speed = ReadSpeed(ConnectionLimits(reading_seconds=60.0, reading_bytes=1000))
    left = 100_000
    for now in range(1, 1000):
        left -= 20
        assert not speed.is_too_slow(True, left, float(now))
    assert not speed.is_too_slow(False, 0, 1000.0)
    assert not any(speed.is_too_slow(True, 100_000, float(now)) for now in range(1001, 1061))
    assert speed.is_too_slow(True, 99_500, 1062.0)


def test_a_command_whose_output_nobody_reads_is_cut(entered: Server, caplog: pytest.LogCaptureFixture) -> None:
    entered.app.state.streams = streams = Streams(StreamCaps())
    entered.counter.bounds = entered.counter.bounds._replace(reading_seconds=1.0, closing_seconds=1.0)
    with Client(entered.url, entered.token("alice")) as alice:
        alice.submit(job("unheard"))
        address = f"ws{entered.url.removeprefix('http')}/api/v3/jobs/unheard/tasks/worker/0/exec"
        headers = {"Authorization": f"Bearer {alice.token}"}
        with connect(
            address, additional_headers=headers, proxy=None, max_queue=1, compression=None, ping_interval=None
        ) as command:
            assert command.recv()
            with contextlib.suppress(ConnectionClosed):
                while True:  # all arrive, and the last one waits until the connection is closed
                    command.send(b"x" * 65536)
            until(lambda: streams.in_all == 0, "a reader of nothing was kept")
            with pytest.raises(ConnectionClosed):
                while True:
                    command.recv(timeout=PATIENCE)
    assert any("cut a reader of /api/v3/jobs/unheard" in each.getMessage() for each in caplog.records)
