"""Exec sessions through front: it authorizes the caller and passes control's frames on unchanged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection, unix_serve

from corral.client import AsyncClient, Client
from corral.front import ControlSocket
from corral.kernel.errors import Conflict, Forbidden, NotFound, Unauthenticated, Unavailable
from corral.kernel.ids import AttemptId
from corral.service.actor import Actor
from tests.api.harness import Server, serving
from tests.api.test_jobs_are_submitted_and_read import job


async def control(socket: ServerConnection) -> None:
    """A stand-in for control's side: reports its request, echoes its input, and exits with 7 at the end of input."""
    assert socket.request is not None
    await socket.send(socket.request.path.encode())
    async for frame in socket:
        if isinstance(frame, bytes):
            await socket.send(frame)
        elif json.loads(frame).get("eof"):
            await socket.send(json.dumps({"exit": 7}))
            return
        else:
            await socket.send(frame.encode())


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
        decide = running.service.context.job_for

        async def open_exec(actor: Actor, ref: str, role: str, index: int) -> AttemptId:
            record, _ = await decide(actor, ref, "job.exec")
            if index:
                raise NotFound("task-not-found", "There is no such task.")
            return AttemptId(f"{record.id}.0.{role}.{index}.0")

        async def open_port(actor: Actor, ref: str, role: str, index: int, port: str) -> tuple[AttemptId, int]:
            return await open_exec(actor, ref, role, index), int(port)

        running.service.task_connections.open_exec = open_exec  # type: ignore[method-assign]
        running.service.task_connections.open_port = open_port  # type: ignore[method-assign]
        yield running
        running.loop.call_soon_threadsafe(closed.set)
        done[0].result(120)


def test_bytes_sizes_and_the_exit_code_pass_both_ways(alice: Client) -> None:
    made = alice.submit(job("entered"))
    with alice.exec("entered", "worker", 0, ["sh", "-c", "echo 'a b'"], tty=True) as stream:
        out = iter(stream)
        path = next(out).decode()
        assert path.startswith(f"/exec/{made['id']}.0.worker.0.0?cmd=sh&cmd=-c&cmd=echo+%27a+b%27&tty=true")
        stream.send(b"\x00\xff bytes")
        assert next(out) == b"\x00\xff bytes"
        stream.resize(24, 80)
        assert json.loads(next(out)) == {"resize": [24, 80]}
        stream.end_input()
        assert list(out) == []
        assert stream.exit_code == 7


async def test_the_async_client_does_the_same(server: Server) -> None:
    token = await asyncio.to_thread(server.token, "alice")
    async with AsyncClient(server.url, token) as client:
        await client.submit(job("entered-async"))
        async with client.exec("entered-async", "worker", 0, ["true"]) as stream:
            await stream.send(b"hello")
            await stream.end_input()
            got = [piece async for piece in stream]
        assert got[1] == b"hello" and stream.exit_code == 7


def test_the_wrong_people_are_told_why(server: Server, alice: Client) -> None:
    alice.submit(job("private"))
    with server.client("bob") as bob:
        with pytest.raises(Forbidden):
            list(bob.exec("private", "worker", 0, ["true"]))
    with Client(server.url, "crl_nobody") as nobody:
        with pytest.raises(Unauthenticated):
            list(nobody.exec("private", "worker", 0, ["true"]))
    with pytest.raises(NotFound):
        list(alice.exec("private", "worker", 3, ["true"]))


def test_a_page_of_another_origin_may_not_open_a_terminal_with_the_cookie(server: Server, alice: Client) -> None:
    from websockets.sync.client import connect

    alice.submit(job("guarded"))
    address = f"ws{server.url.removeprefix('http')}/api/v3/jobs/guarded/tasks/worker/0/exec"
    cookie = {"Cookie": f"corral_session={alice.token}"}
    for origin, allowed in (("http://evil.example", False), (server.url, True)):
        with connect(address, additional_headers=cookie | {"Origin": origin}, proxy=None) as socket:
            first = socket.recv()
            assert isinstance(first, bytes) is allowed
            if not allowed:
                assert json.loads(first)["error"]["code"] == "csrf"


def test_without_control_it_is_unavailable(server: Server, alice: Client, tmp_path: Path) -> None:
    alice.submit(job("no-control"))
    there = server.app.state.connect
    server.app.state.connect = ControlSocket(tmp_path / "nobody.sock").connect
    try:
        with pytest.raises(Unavailable):
            list(alice.exec("no-control", "worker", 0, ["true"]))
    finally:
        server.app.state.connect = there


@pytest.mark.parametrize("kind", ["exec", "forward"])
def test_a_terminal_and_a_forward_end_at_once_with_the_account(server: Server, root: Client, kind: str) -> None:
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    with server.client(f"leaving-{kind}") as client:
        client.submit(job("left"))
        where = {"exec": "exec?cmd=sh", "forward": "forward?port=1"}[kind]
        address = f"ws{server.url.removeprefix('http')}/api/v3/jobs/left/tasks/worker/0/{where}"
        with connect(address, additional_headers={"Authorization": f"Bearer {client.token}"}, proxy=None) as socket:
            assert isinstance(socket.recv(120), bytes)
            root.change_user(f"leaving-{kind}", disabled=True)
            assert json.loads(socket.recv(120))["error"]["code"] == "signed-out"
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv(120)
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 4401


def test_what_the_server_refuses_is_raised(alice: Client) -> None:
    with pytest.raises((Conflict, NotFound)):
        list(alice.exec("never-submitted", "worker", 0, ["true"]))
