"""Front bounds the data that one client sends into a task, whether the task reads it or not."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from websockets.asyncio.server import ServerConnection, unix_serve
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from corral import front
from corral.api.rate_limits import SCALARS_A_MINUTE, CallLimit
from corral.api.websocket_protocol import MESSAGE_LIMIT, BoundedSocket
from corral.client import Client
from corral.front import ControlSocket
from corral.kernel.errors import Conflict, InvalidInput
from corral.kernel.ids import AttemptId, JobId
from corral.kernel.tokens import mint_job_token
from corral.service import watched_socket
from corral.service.actor import Actor
from corral.service.watched_socket import UNREAD
from tests.api.harness import Server, serving
from tests.api.test_jobs_are_submitted_and_read import job
from tests.waiting import pause

PATIENCE = 120.0
MUCH = 64 << 20
"""Bytes that no buffers of the system hold."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A front with a control whose sessions read one message and nothing more."""
    folder = tmp_path_factory.mktemp("front")
    with serving(folder) as running:
        closed = asyncio.Event()

        async def deaf(socket: ServerConnection) -> None:
            await socket.send(b"ready")
            if await socket.recv() == b"say much":
                for _ in range(MUCH >> 18):
                    await socket.send(bytes(1 << 18))
            socket.transport.pause_reading()  # type: ignore[attr-defined]
            await closed.wait()

        async def serve(path: Path) -> None:
            async with unix_serve(deaf, str(path), close_timeout=0.1):
                await closed.wait()

        done = asyncio.run_coroutine_threadsafe(serve(folder / "control.sock"), running.loop)

        async def open_exec(actor: Actor, ref: str, role: str, index: int) -> AttemptId:
            record, _ = await running.service.context.job_for(actor, ref, "job.exec")
            return AttemptId(f"{record.id}.0.{role}.{index}.0")

        running.service.task_connections.open_exec = open_exec  # type: ignore[method-assign]
        yield running
        running.loop.call_soon_threadsafe(closed.set)
        done.result(PATIENCE)


@pytest.fixture
def shell(server: Server, alice: Client) -> Iterator[ClientConnection]:
    """A session with a command that reads nothing."""
    alice.submit(job("deaf"), idempotency_key="deaf")
    address = f"ws{server.url.removeprefix('http')}/api/v3/jobs/deaf/tasks/worker/0/exec"
    with connect(address, additional_headers={"Authorization": f"Bearer {alice.token}"}, proxy=None) as session:
        assert session.recv(PATIENCE) == b"ready"
        yield session


@pytest.fixture
def raw(server: Server, alice: Client) -> Iterator[socket.socket]:
    """The connection of such a session; the test does not read from it."""
    with _entered(server, alice) as opened:
        yield opened


@contextlib.contextmanager
def _entered(server: Server, user: Client) -> Iterator[socket.socket]:
    user.submit(job("deaf"), idempotency_key="deaf")
    host, _, port = server.url.removeprefix("http://").partition(":")
    lines = (
        "GET /api/v3/jobs/deaf/tasks/worker/0/exec HTTP/1.1",
        f"Host: {host}:{port}",
        f"Authorization: Bearer {user.token}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    )
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as opened:
        opened.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode())
        seen = b""
        while b"ready" not in seen:
            piece = opened.recv(4096)
            assert piece, seen
            seen += piece
        yield opened


def test_a_word_with_a_nul_is_no_command(alice: Client) -> None:
    alice.submit(job("nul"))
    with pytest.raises(InvalidInput, match="NUL"):
        list(alice.exec("nul", "worker", 0, ["echo", "a\0b"]))


def test_messages_are_bounded_and_nothing_is_inflated(shell: ClientConnection) -> None:
    assert shell.protocol.extensions == []
    shell.send(bytes(MESSAGE_LIMIT + 1))
    with pytest.raises(ConnectionClosed) as ended:
        shell.recv(PATIENCE)
    assert ended.value.rcvd is not None and ended.value.rcvd.code == 1009


def test_input_that_nobody_reads_stays_with_the_client(raw: socket.socket) -> None:
    raw.settimeout(2)
    sent = 0
    with contextlib.suppress(TimeoutError):
        while sent < 64 << 20:
            sent += raw.send(_frame(0x82, bytes(60_000)))
    assert sent < 32 << 20


def test_a_session_whose_client_is_gone_ends_although_its_input_is_unread(
    server: Server, raw: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_socket, "LAST_INPUT_SECONDS", 0.2)
    _fill(raw)
    assert server.app.state.streams.in_all
    raw.close()
    _until_no_session(server)


def test_a_session_whose_account_is_gone_ends_although_its_input_is_unread(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(front._WEB_SOCKET, "ping_interval", 0.05)  # so that a ping waits behind the input
    with server.client("leaver") as leaver, _entered(server, leaver) as opened:
        _fill(opened)
        server.call(server.store.change_user("leaver", disabled=True))
        _until_no_session(server)


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="TCP does not tell here")
def test_a_session_whose_clients_machine_is_gone_ends_although_its_input_is_unread(
    server: Server, raw: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_socket, "LAST_INPUT_SECONDS", 0.2)
    monkeypatch.setattr(watched_socket, "_SILENT_SECONDS", 0.2)
    _fill(raw)
    _take_nothing(raw)
    _until_no_session(server)


def test_a_side_that_reads_nothing_is_not_taken_for_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_socket, "_SILENT_SECONDS", 0.2)
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as sender,
        listening.accept()[0],
    ):
        sender.settimeout(2)
        with pytest.raises(TimeoutError):
            while True:
                sender.send(bytes(60_000))
        assert not watched_socket._is_unreachable(sender)


def test_a_client_that_leaves_output_unread_may_ping(raw: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    unread: list[bool] = []
    answer = BoundedSocket.handle_ping

    def counted(self: BoundedSocket) -> None:
        unread.append(self.transport.get_write_buffer_size() > UNREAD)
        answer(self)

    monkeypatch.setattr(BoundedSocket, "handle_ping", counted)
    raw.sendall(_frame(0x82, b"say much"))
    begun = time.monotonic()
    while sum(unread) < 20:
        raw.sendall(_frame(0x89, b""))
        time.sleep(pause(begun))
    missing = MUCH
    while missing > 0:
        piece = raw.recv(1 << 20)
        assert piece, f"{missing} bytes are missing"
        missing -= len(piece)


@pytest.mark.parametrize(
    ("head", "rest"), [((0x02, b"x"), (0x00, b"")), ((0x82, b"x"), (0x89, bytes(125)))], ids=["fragments", "pings"]
)
def test_frames_that_never_make_a_message_end_the_connection(
    raw: socket.socket, head: tuple[int, bytes], rest: tuple[int, bytes]
) -> None:
    raw.settimeout(PATIENCE)
    many = _frame(*rest) * 2000
    raw.sendall(_frame(*head))
    with pytest.raises(ConnectionError):
        for _ in range(400):  # 100 MB of pings while nothing is read
            raw.sendall(many)


def _fill(opened: socket.socket) -> None:
    """Send until nothing more is taken."""
    opened.settimeout(2)
    with contextlib.suppress(TimeoutError):
        while True:
            opened.send(_frame(0x82, bytes(60_000)))


def _until_no_session(server: Server) -> None:
    begun = time.monotonic()
    while server.app.state.streams.in_all:
        assert time.monotonic() - begun < PATIENCE, "the session is still open"
        time.sleep(pause(begun))


def _take_nothing(connected: socket.socket) -> None:
    """Drop all that comes, before it is acknowledged: a filter that keeps 0 bytes of each packet."""
    keep_nothing = ctypes.create_string_buffer(struct.pack("=HBBI", 0x06, 0, 0, 0))
    connected.setsockopt(
        socket.SOL_SOCKET, 26, struct.pack("HL", 1, ctypes.addressof(keep_nothing))
    )  # SO_ATTACH_FILTER


def _frame(first: int, data: bytes) -> bytes:
    """A client's WebSocket frame; a mask of zeros leaves the data as it is."""
    size = len(data)
    length = bytes((0x80 | size,)) if size < 126 else bytes((0x80 | 126,)) + size.to_bytes(2, "big")
    return bytes((first,)) + length + bytes(4) + data


def test_the_tasks_of_a_job_report_sixty_times_a_minute_at_most(server: Server, alice: Client) -> None:
    made = alice.submit(job("noisy"))
    token = mint_job_token(server.service.context.key, JobId(made["id"]), server.clock.now() + 100)
    with httpx2.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}) as task:
        answers = [task.post("/api/v3/runtime/report", json={"kind": "noise"}) for _ in range(61)]
    assert [answer.status_code for answer in answers] == [204] * 60 + [429]
    assert answers[-1].json()["code"] == "too-many-calls" and int(answers[-1].headers["retry-after"]) <= 60


def test_a_job_tells_scalars_as_often_as_its_tasks_may_whatever_attempts_it_invents(
    server: Server, alice: Client
) -> None:
    made = alice.submit(job("inventor"))
    token = mint_job_token(server.service.context.key, JobId(made["id"]), server.clock.now() + 100)
    attempts = [f"{made['id']}.0.invented-{number}.0.0" for number in range(20)] + [f"{made['id']}.0.main.0.0"] * 11
    with httpx2.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}) as task:
        answers = [task.post("/api/v3/runtime/scalars", json={"attempt": each, "scalars": []}) for each in attempts]
    assert [answer.status_code for answer in answers] == [503] * 30 + [429], "no control answers here"


def test_one_attempt_in_several_spellings_is_counted_once_and_others_count_nothing(
    server: Server, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = alice.submit(job("speller"))
    token = mint_job_token(server.service.context.key, JobId(made["id"]), server.clock.now() + 100)
    calls = CallLimit(SCALARS_A_MINUTE, 60.0)
    monkeypatch.setattr(server.app.state, "scalars", calls)
    with httpx2.Client(base_url=server.url) as anyone:
        body = {"attempt": f"{made['id']}.0.main.0.0", "scalars": []}
        for headers in ({}, {"Authorization": f"Bearer {server.token('alice')}"}):
            assert anyone.post("/api/v3/runtime/scalars", json=body, headers=headers).status_code in (401, 403)
        assert not calls._seen
        for spelling in ("0.main.0.0", "00.main.0.0", "0.main.00.0"):
            told = {"attempt": f"{made['id']}.{spelling}", "scalars": []}
            anyone.post("/api/v3/runtime/scalars", json=told, headers={"Authorization": f"Bearer {token}"})
    assert list(calls._seen) == [made["id"], f"{made['id']}.0.main.0.0"]


async def test_a_conflict_that_control_finds_is_the_callers(tmp_path: Path) -> None:
    said = {"code": "attempt-over", "message": "No task runs as this attempt."}
    control = ControlSocket(tmp_path / "control.sock")
    transport = httpx2.MockTransport(lambda request: httpx2.Response(409, json=said))
    control._client = httpx2.AsyncClient(transport=transport, base_url="http://control")
    with pytest.raises(Conflict, match="No task runs"):
        await control.request("/scalars", {})
    await control.close()
