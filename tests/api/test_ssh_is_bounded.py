"""SSH at the API's socket: whose keys are accepted, and what a hostile client can do after its sign-in."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import asyncssh
import pytest
from starlette.websockets import WebSocket
from websockets.asyncio.client import connect, unix_connect
from websockets.asyncio.server import ServerConnection, unix_serve
from websockets.exceptions import ConnectionClosed

from corral.api.ssh import connection, routes
from corral.api.ssh.byte_pipe import BytePipe
from corral.api.ssh.task_program import GREETING, NO_PYTHON, PROGRAM_WORDS
from corral.client import Client
from corral.kernel.errors import Conflict, CorralError, Forbidden, InvalidInput, TooManyRequests
from corral.kernel.ids import AttemptId, JobId
from corral.kernel.tokens import mint_job_token
from corral.service.actor import Actor
from corral.service.jobs import ssh_access
from corral.service.jobs.ssh_access import Entered
from tests.api.harness import START, Server, serving
from tests.api.test_jobs_are_submitted_and_read import job

SECONDS = 300
NAMES = iter(range(1000))
SAYS: dict[tuple[str, ...], list[bytes | str]] = {}
"""What commands say, by their words: their output, and a last text frame of control."""


async def control(opened: ServerConnection) -> None:
    """A stand-in for control's side: its commands say what `SAYS` has for them, else they never say anything."""
    assert opened.request is not None
    words = tuple(parse_qs(urlsplit(opened.request.path).query).get("cmd", ()))
    with contextlib.suppress(ConnectionClosed):
        for said in SAYS.get(words, ()):
            await opened.send(said)
            if isinstance(said, str):
                return
        async for _ in opened:
            pass


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A front whose jobs all have a running worker-0, beside the stand-in."""
    folder = tmp_path_factory.mktemp("front")
    with serving(folder) as running:
        closed, done = asyncio.Event(), []

        async def serve(path: Path) -> None:
            async with unix_serve(control, str(path)):
                await closed.wait()

        done.append(asyncio.run_coroutine_threadsafe(serve(folder / "control.sock"), running.loop))
        find = running.service.context.job_for

        async def started_task(store: Any, record: Any, role: str, index: int) -> Any:
            return record, None

        async def enter(actor: Actor, ref: str, role: str, index: int) -> Entered:
            record, _ = await find(actor, ref, "job.exec")
            return Entered(record.id, f"{role}-{index}", AttemptId(f"{record.id}.0.{role}.{index}.0"), frozenset({80}))

        async def check(actor: Actor, entered: Entered) -> None:
            return

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(ssh_access, "started_task", started_task)
            patched.setattr(running.service.ssh_access, "enter", enter)
            patched.setattr(running.service.ssh_access, "check", check)
            yield running
        running.loop.call_soon_threadsafe(closed.set)
        done[0].result(60)


@pytest.fixture
def name(alice: Client) -> str:
    """A new job of alice's."""
    made = f"entered-{next(NAMES)}"
    alice.submit(job(made))
    return made


@pytest.fixture
def key() -> asyncssh.SSHKey:
    """A fresh key of a client."""
    return asyncssh.generate_private_key("ssh-ed25519")


def public(key: asyncssh.SSHKey) -> str:
    return " ".join(key.export_public_key().decode().split()[:2])


def address(server: Server, name: str) -> str:
    return f"ws{server.url.removeprefix('http')}/api/v3/jobs/{name}/tasks/worker/0/ssh"


@contextlib.asynccontextmanager
async def raw(server: Server, client: Client, name: str) -> AsyncIterator[Any]:
    """The WebSocket of a connection."""
    headers = {"Authorization": f"Bearer {client.token}"}
    async with connect(address(server, name), additional_headers=headers, proxy=None, max_size=None) as opened:
        yield opened


@contextlib.asynccontextmanager
async def entered(
    server: Server, client: Client, name: str, key: asyncssh.SSHKey, certificate: str, host_key: str
) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """A client of SSH that is signed in."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    signed = asyncssh.import_certificate(certificate)
    trusted = asyncssh.import_known_hosts(f"corral {host_key}\n")
    async with raw(server, client, name) as opened, contextlib.AsyncExitStack() as stack:
        stack.callback(ours.close)
        carried = [asyncio.create_task(inwards(opened, ours)), asyncio.create_task(outwards(opened, ours))]
        for task in carried:
            stack.callback(task.cancel)
        options: dict[str, Any] = {"config": None, "agent_path": None, "login_timeout": SECONDS}
        made = await asyncssh.connect(
            "corral", sock=theirs, client_keys=[(key, signed)], known_hosts=trusted, host_key_alias="corral", **options
        )
        async with made:
            yield made


async def inwards(opened: Any, ours: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    while data := await loop.sock_recv(ours, 65536):
        await opened.send(data)


async def outwards(opened: Any, ours: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(ConnectionClosed):
        async for frame in opened:
            if isinstance(frame, bytes):
                await loop.sock_sendall(ours, frame)
    ours.shutdown(socket.SHUT_RDWR)


def given(client: Client, name: str, key: asyncssh.SSHKey) -> tuple[str, str]:
    found = client.ssh_access(name, "worker", 0, public(key))
    return found["certificate"], found["hostKey"]


async def test_a_certificate_is_good_for_its_task_and_account_alone(
    server: Server, alice: Client, root: Client, name: str, key: asyncssh.SSHKey
) -> None:
    good, host = await asyncio.to_thread(given, alice, name, key)
    async with entered(server, alice, name, key, good, host):
        pass
    await asyncio.to_thread(alice.submit, job(f"{name}-b"))
    of_other_job, _ = await asyncio.to_thread(given, alice, f"{name}-b", key)
    of_other_account, _ = await asyncio.to_thread(given, root, name, key)
    for foreign in (of_other_job, of_other_account):
        with pytest.raises(asyncssh.PermissionDenied):
            async with entered(server, alice, name, key, foreign, host):
                pass


async def test_a_wrong_key_an_expired_one_and_one_signed_by_itself_are_refused(
    server: Server, alice: Client, name: str, key: asyncssh.SSHKey
) -> None:
    good, host = await asyncio.to_thread(given, alice, name, key)
    access, found = server.service.ssh_access, (await asyncio.to_thread(alice.job, name))["id"]
    actor = await asyncio.to_thread(server.call, server.service.authentication.authenticate(alice.token))
    authority = access._authority(actor, JobId(found), "worker-0")
    expired = authority.generate_user_certificate(key, "old", valid_before=1_700_000_000).export_certificate().decode()
    own = asyncssh.generate_private_key("ssh-ed25519")
    forged = own.generate_user_certificate(key, "own").export_certificate().decode()
    for bad in (expired, forged):
        with pytest.raises(asyncssh.PermissionDenied):
            async with entered(server, alice, name, key, bad, host):
                pass
    wrong = asyncssh.generate_private_key("ssh-ed25519")
    for_wrong, _ = await asyncio.to_thread(given, alice, name, wrong)
    with pytest.raises((asyncssh.PermissionDenied, ValueError)):
        async with entered(server, alice, name, key, for_wrong, host):
            pass
    with pytest.raises(asyncssh.HostKeyNotVerifiable):
        async with entered(server, alice, name, key, good, public(own)):
            pass


def test_who_may_not_enter_gets_no_key_and_no_socket(server: Server, alice: Client, name: str) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    with server.client("bob") as bob, pytest.raises(Forbidden):
        bob.ssh_access(name, "worker", 0, public(key))
    found = alice.job(name)["id"]
    of_job = mint_job_token(server.service.context.key, JobId(found), START + 1000)
    with Client(server.url, of_job) as task:
        with pytest.raises(Forbidden):
            task.ssh_access(name, "worker", 0, public(key))
        with pytest.raises(Forbidden):
            list(task.ssh(name, "worker", 0))
    with server.client("bob") as bob, pytest.raises(Forbidden):
        list(bob.ssh(name, "worker", 0))


@pytest.mark.parametrize(
    "bad", ["ssh-ed25519 " + "A" * 68, "ssh-rsa " + "A" * 100, "x" * 100, "ssh-ed25519 A\nB" + " " * 60]
)
def test_what_is_no_key_is_refused_in_one_sentence(alice: Client, name: str, bad: str) -> None:
    with pytest.raises(InvalidInput, match=r"^The public key .*\.$"):
        alice.ssh_access(name, "worker", 0, bad)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0" * 200_000,
        b"SSH-2.0-" + b"a" * 100_000,
        b"SSH-1.5-old\r\n",
        b"SSH-2.0-x\r\n" + struct.pack(">I", 0x7FFFFFFF) + b"\0" * 64,
        b"SSH-2.0-x\r\n" + struct.pack(">I", 300_000) + b"\xff" * 400_000,
        b"SSH-2.0-x\r\n" + bytes(range(256)) * 2000,
    ],
    ids=["http", "zeros", "endless-banner", "old", "huge-length", "huge-packet", "noise"],
)
async def test_what_is_no_ssh_ends_the_connection(server: Server, alice: Client, name: str, sent: bytes) -> None:
    async with asyncio.timeout(SECONDS), raw(server, alice, name) as opened:
        with contextlib.suppress(ConnectionClosed):
            for begin in range(0, len(sent), 65536):
                await opened.send(sent[begin : begin + 65536])
        got = await everything(opened)
    assert len(got) < 10_000


async def everything(opened: Any) -> bytes:
    """What comes until the end."""
    got = b""
    with contextlib.suppress(ConnectionClosed):
        async for frame in opened:
            got += frame if isinstance(frame, bytes) else b""
    return got


@pytest.mark.parametrize("sent", [b"", b"SSH-2.0-slow\r\n"], ids=["silent", "no-key-exchange"])
async def test_a_slow_hello_ends_the_connection(
    server: Server, alice: Client, name: str, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_SIGN_IN_SECONDS", 0.5)
    async with asyncio.timeout(SECONDS), raw(server, alice, name) as opened:
        if sent:
            await opened.send(sent)
        assert (await everything(opened)).startswith(b"SSH-2.0-Corral\r\n")


async def test_thousands_of_channels_are_refused_beyond_the_most(
    server: Server, alice: Client, name: str, key: asyncssh.SSHKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stand-in's commands never begin, so that each accepted channel stays open."""
    # The stand-in answers on the loop that refuses the other channels, which takes a slow machine long.
    monkeypatch.setattr("corral.front.unix_connect", partial(unix_connect, open_timeout=SECONDS))
    certificate, host = await asyncio.to_thread(given, alice, name, key)

    async def one(conn: asyncssh.SSHClientConnection) -> str:
        try:
            await conn.open_connection("localhost", 80)
        except asyncssh.ChannelOpenError as error:
            return error.reason
        return "open"

    async with asyncio.timeout(SECONDS), entered(server, alice, name, key, certificate, host) as conn:
        told = await asyncio.gather(*(one(conn) for _ in range(2000)))
    assert told.count("open") == connection._MOST_CHANNELS
    assert {each for each in told if each != "open"} == {
        "This connection has 64 channels open, which is the most; close one of them."
    }


async def test_channels_count_as_the_users_streams_until_they_close(
    server: Server, alice: Client, name: str, key: asyncssh.SSHKey
) -> None:
    certificate, host = await asyncio.to_thread(given, alice, name, key)
    streams = server.app.state.streams
    await until(lambda: streams.in_all == 0)  # the connections of tests before this one have ended
    async with entered(server, alice, name, key, certificate, host) as conn:
        _, writer = await conn.open_connection("localhost", 80)
        assert streams.in_all == 2
        writer.close()
        await until(lambda: streams.in_all == 1)
        await conn.open_connection("localhost", 80)
    await until(lambda: streams.in_all == 0)


async def until(holds: Any) -> None:
    async with asyncio.timeout(SECONDS):
        while not holds():
            await asyncio.sleep(0.02)


class Unread:
    """A WebSocket whose client sends without end, and reads only once it is `released`."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.sent = 0

    async def receive(self) -> dict[str, Any]:
        """The next message."""
        return {"type": "websocket.receive", "bytes": b"x" * 65536}

    async def send_bytes(self, data: bytes) -> None:
        """Send, once the client reads."""
        await self.released.wait()
        self.sent += len(data)


class Echo:
    """A receiver that says three times what it is told."""

    def __init__(self, pipe: BytePipe) -> None:
        self._pipe = pipe
        self.taken = 0

    def data_received(self, data: bytes) -> None:
        """Answer."""
        self.taken += len(data)
        self._pipe.write(data * 3)

    def connection_lost(self, exc: Exception | None) -> None:
        """Do nothing."""


async def test_nothing_is_read_from_a_client_that_does_not_take_its_answers() -> None:
    opened = Unread()
    pipe = BytePipe(cast(WebSocket, opened))
    echo = Echo(pipe)
    carried = asyncio.create_task(pipe.carry(echo))
    await until(lambda: not pipe._room.is_set())
    before = echo.taken
    for _ in range(100):  # turns of the loop, in each of which one more message could be read
        await asyncio.sleep(0)
    assert echo.taken == before and len(pipe._unsent) < 1024 * 1024
    opened.released.set()
    await until(lambda: echo.taken > before + 1024 * 1024)
    pipe.close()
    await asyncio.wait_for(carried, SECONDS)


async def test_other_hosts_and_sockets_are_refused(
    server: Server, alice: Client, name: str, key: asyncssh.SSHKey
) -> None:
    certificate, host = await asyncio.to_thread(given, alice, name, key)
    async with entered(server, alice, name, key, certificate, host) as conn:
        for other, port in (("10.0.0.1", 80), ("localhost", 0), ("localhost", 70000), ("metadata.internal", 80)):
            with pytest.raises(asyncssh.ChannelOpenError, match="Only ports of the task itself"):
                await conn.open_connection(other, port)
        with pytest.raises(asyncssh.ChannelOpenError):
            await conn.open_unix_connection("/run/docker.sock")
        with pytest.raises(asyncssh.ChannelListenError):
            await conn.forward_remote_port("", 0, "localhost", 1)
        with pytest.raises(asyncssh.ChannelListenError):
            await conn.forward_remote_path("/tmp/corral-test-socket", "/tmp/none")


async def test_a_connection_ends_with_the_account(server: Server, root: Client, key: asyncssh.SSHKey) -> None:
    with server.client("leaves-ssh") as client:
        await asyncio.to_thread(client.submit, job("left-by-ssh"))
        certificate, host = await asyncio.to_thread(given, client, "left-by-ssh", key)
        async with asyncio.timeout(SECONDS):
            with contextlib.suppress(asyncssh.Error, OSError):
                async with entered(server, client, "left-by-ssh", key, certificate, host) as conn:
                    await asyncio.to_thread(root.change_user, "leaves-ssh", disabled=True)
                    await conn.wait_closed()
        with pytest.raises(CorralError, match="disabled"):
            list(client.ssh("left-by-ssh", "worker", 0))


def test_connections_in_a_minute_are_limited(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with server.client("eager") as eager:
        eager.submit(job("eager"))
        limit = server.app.state.ssh_connections
        for _ in range(routes.CONNECTIONS_A_MINUTE):
            limit.take("eager", "connections by SSH")
        with pytest.raises(TooManyRequests, match="Too many connections by SSH"):
            list(eager.ssh("eager", "worker", 0))


def test_a_server_without_the_library_says_so(
    server: Server, alice: Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    key = public(asyncssh.generate_private_key("ssh-ed25519"))
    monkeypatch.setitem(sys.modules, "asyncssh", None)
    for ask in (lambda: alice.ssh_access(name, "worker", 0, key), lambda: list(alice.ssh(name, "worker", 0))):
        with pytest.raises(Conflict, match=r"installed without SSH.*corral\[ssh\]"):
            ask()


def test_a_page_of_another_origin_may_not_connect_with_the_cookie(server: Server, alice: Client, name: str) -> None:
    from websockets.sync.client import connect as connect_now

    headers = {"Cookie": f"corral_session={alice.token}", "Origin": "http://evil.example"}
    with connect_now(address(server, name), additional_headers=headers, proxy=None) as opened:
        assert json.loads(opened.recv(SECONDS))["error"]["code"] == "csrf"


@pytest.fixture
def says() -> Iterator[dict[tuple[str, ...], list[bytes | str]]]:
    """What commands say, for one test."""
    yield SAYS
    SAYS.clear()


async def test_a_task_without_python_runs_commands_with_merged_streams_and_serves_no_files(
    server: Server, alice: Client, name: str, key: asyncssh.SSHKey, says: dict[tuple[str, ...], list[bytes | str]]
) -> None:
    certificate, host = await asyncio.to_thread(given, alice, name, key)
    says[PROGRAM_WORDS] = [NO_PYTHON, '{"exit": 0}']
    shell = 'if command -v bash >/dev/null 2>&1; then exec bash "$@"; else exec sh "$@"; fi'
    says["sh", "-c", shell, "sh", "-c", "make"] = [b"both\n", '{"exit": 3}']
    async with asyncio.timeout(SECONDS), entered(server, alice, name, key, certificate, host) as conn:
        done = await conn.run("make")
        assert (done.stdout, done.stderr, done.exit_status) == ("both\n", "", 3)
        process = await conn.create_process(subsystem="sftp", encoding=None)
        assert b"The task has no Python 3.7 or later" in await process.stderr.read()
        with pytest.raises(asyncssh.ChannelOpenError, match=r"The task has no Python 3\.7"):
            await conn.open_connection("localhost", 8888)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ([b"sh: not found\n", '{"exit": 127}'], "The task did not start the command: sh: not found."),
        ([b"x" * 100_000], "The task did not start the command: xxx"),
        ([GREETING, b"o\xff\xff\xff\xff"], "The command's streams cannot be told apart any more."),
        ([GREETING, b"Traceback (most recent call last):"], "The command's streams cannot be told apart any more."),
        (['{"error": {"code": "x", "message": "The pod is gone."}}'], "The pod is gone."),
    ],
    ids=["no-shell", "endless", "huge-frame", "no-frame", "no-pod"],
)
async def test_a_task_that_answers_nonsense_ends_the_command_in_one_sentence(
    server: Server,
    alice: Client,
    name: str,
    key: asyncssh.SSHKey,
    says: dict[tuple[str, ...], list[bytes | str]],
    said: list[bytes | str],
    told: str,
) -> None:
    certificate, host = await asyncio.to_thread(given, alice, name, key)
    says[PROGRAM_WORDS] = said
    async with asyncio.timeout(SECONDS), entered(server, alice, name, key, certificate, host) as conn:
        done = await conn.run("make")
    assert done.exit_status == 255 and told in str(done.stderr) and "Traceback" not in str(done.stderr)


async def test_a_command_that_is_too_long_is_refused(
    server: Server, alice: Client, name: str, key: asyncssh.SSHKey
) -> None:
    certificate, host = await asyncio.to_thread(given, alice, name, key)
    async with asyncio.timeout(SECONDS), entered(server, alice, name, key, certificate, host) as conn:
        done = await conn.run("x" * 9000, request_pty="force", term_type="xterm")
        assert "The command is too long; put it into a file in the task." in str(done.stdout) + str(done.stderr)
        with pytest.raises(asyncssh.ChannelOpenError):
            await conn.run("x" * 140_000)
