"""A session with a pod says 0 only for a command that reported it, and leaves no task or connection when it is closed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from corral.engines.kubernetes.api.access import kubeconfig_access
from corral.engines.kubernetes.api.transport import Transport
from corral.engines.kubernetes.pods import exec_session
from corral.engines.kubernetes.pods.exec_session import LOST, PodSession, open_session
from corral.kernel.errors import Unavailable
from corral.kernel.ids import JobId, attempt_id
from tests.engines.kubernetes.faulty_server import Answer, kubeconfig, serving

ATTEMPT = attempt_id(JobId("j"), 0, "worker", 0, 0)
OUTPUT, ERRORS, END = b"\x01", b"\x02", b"\x03"
SUCCESS = END + b'{"metadata":{},"status":"Success"}'
COMMAND = ["a", "command"]
UNKNOWN = b"corral: The cluster did not report how the command ended. The end of its output may be missing.\n"
CUT = b"corral: The end of the command's output may be missing.\n"


def failure(message: str, code: int | None = None) -> bytes:
    """A Status that is no success, with an exit code or without."""
    causes = [] if code is None else [{"reason": "ExitCode", "message": str(code)}]
    status = {"kind": "Status", "status": "Failure", "message": message, "code": 500, "details": {"causes": causes}}
    return END + json.dumps(status).encode()


def name_in(words: Sequence[str]) -> str:
    """The name of a session's marks, from the command line that a pod is asked for."""
    assert words[:2] == ["sh", "-c"] and words[-2:] == COMMAND
    return words[4]


def says(*messages: bytes, stays: bool = False) -> Answer:
    """A pod that sends these messages, with BEGIN and CODE replaced by the marks of the session."""

    async def answer(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=("v5.channel.k8s.io",))
        await socket.prepare(request)
        words = request.query.getall("command")
        mark = b"\x1e" + name_in(words).encode() if words[0] == "sh" else b"no shell"
        for message in messages:
            await socket.send_bytes(message.replace(b"BEGIN", mark + b"+").replace(b"CODE", mark + b"="))
        while stays and not socket.closed:
            await socket.receive()
        await socket.close()
        return socket

    return answer


@asynccontextmanager
async def entered(
    folder: Path, *commands: Answer, tty: bool = False, reports: bool = True
) -> AsyncIterator[PodSession]:
    """A session with a pod whose command gives this answer."""
    async with serving(*commands) as server, asyncio.timeout(120):
        transport = Transport(kubeconfig_access(str(kubeconfig(folder, server.url))))
        await transport.open()
        yield await open_session(transport, "x", ATTEMPT, COMMAND, tty=tty, reports=reports)
        await transport.close()


async def told(folder: Path, *commands: Answer, **options: bool) -> tuple[int, bytes]:
    """A session's exit code and whole output."""
    async with entered(folder, *commands, **options) as session:
        said = b"".join([piece async for piece in session.output()])
        code = await session.exit_code()
        await session.close()
        return code, said


@pytest.mark.parametrize(
    ("messages", "code", "said"),
    [
        ([b"BEGINout", ERRORS + b"err", OUTPUT + b"CODE0;", SUCCESS], 0, b"outerr"),
        ([b"BEGINoutCODE7;", failure("exit 7", 7)], 7, b"out"),
        ([b"BEGINoutCODE7;", SUCCESS], 7, b"out"),
        ([b"BEGINCODE7;", OUTPUT + b"of a child", SUCCESS], 7, b"of a child"),
        ([b"BEGINoutCODE0;"], 0, b"out"),
        ([b"BEGINout", SUCCESS], LOST, b"out" + UNKNOWN),
        ([b"", SUCCESS], LOST, UNKNOWN),
        ([b"BEGINCODE0", SUCCESS], LOST, None),
        ([b"BEGINout", failure("exit 7", 7)], 7, b"out" + CUT),
        ([b"BEGINout", failure("exit 137", 137)], 137, b"out"),
        ([b"BEGINout", failure("the kubelet left")], LOST, b"outcorral: the kubelet left\n"),
        ([b"BEGINout"], LOST, b"outcorral: The connection to the command broke. The command may still run.\n"),
        ([b"", ERRORS + b"ld.so: wrong\n", OUTPUT + b"BEGINout", OUTPUT + b"CODE0;"], 0, b"ld.so: wrong\nout"),
    ],
)
@pytest.mark.parametrize("tty", [False, True])
async def test_only_a_report_is_a_success(
    tmp_path: Path, messages: list[bytes], code: int, said: bytes | None, tty: bool
) -> None:
    found = await told(tmp_path, says(OUTPUT + messages[0], *messages[1:]), tty=tty)
    assert found[0] == code and said in (found[1], None)


async def test_a_report_may_come_in_pieces_and_output_may_look_like_one(tmp_path: Path) -> None:
    like = b"\x1e0123456789ABCDEF0123456789ABCDEF=0;"
    pieces = says(OUTPUT + b"BEGIN" + like + b"CODE", OUTPUT + b"4", OUTPUT + b"2;", SUCCESS)
    assert await told(tmp_path, pieces) == (42, like)
    assert await told(tmp_path, says(OUTPUT + b"BEGIN" + like, SUCCESS)) == (LOST, like + UNKNOWN)


@pytest.mark.parametrize(
    "refusal",
    [
        [failure('exec: "sh": executable file not found in $PATH: unknown')],
        [ERRORS + b"executable file `sh` not found in $PATH: No such file or directory", failure("exit 255", 255)],
        [OUTPUT + b"printf: not found\n", failure("exit 126", 126)],
    ],
)
async def test_without_a_shell_the_command_runs_alone(tmp_path: Path, refusal: list[bytes]) -> None:
    alone = says(OUTPUT + b"done", failure("exit 3", 3))
    assert await told(tmp_path, says(*refusal), alone) == (3, b"done")
    assert await told(tmp_path, says(*refusal), says(SUCCESS)) == (0, b"")
    assert await told(tmp_path, says(*refusal), says()) == (
        LOST,
        b"corral: The connection to the command broke. The command may still run.\n",
    )


async def test_a_command_that_may_have_run_is_not_run_again(tmp_path: Path) -> None:
    again = says(OUTPUT + b"again", SUCCESS)
    for first in (says(SUCCESS), says(), says(failure("timeout")), says(failure("exit 7", 7))):
        code, said = await told(tmp_path, first, again)
        assert code in (LOST, 7) and b"again" not in said
    code, said = await told(tmp_path, says(OUTPUT + b"BEGINa file is not found", failure("exit 1", 1)), again)
    assert (code, said) == (1, b"a file is not found" + CUT)


async def test_input_waits_for_the_program_that_reads_it(tmp_path: Path) -> None:
    heard: list[list[bytes]] = []

    async def listens(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=("v5.channel.k8s.io",))
        await socket.prepare(request)
        heard.append([])
        if "sh" in request.query.getall("command"):
            await socket.send_bytes(failure("exec: sh: no such file or directory"))
        else:
            async for message in socket:
                heard[-1].append(message.data)
                if message.data == b"\xff\x00":
                    break
            await socket.send_bytes(SUCCESS)
        await socket.close()
        return socket

    async with entered(tmp_path, listens) as session:
        await session.send(b"hello")
        await session.send(b"")
        assert await session.exit_code() == 0
        await session.close()
    assert heard == [[], [b"\x00hello", b"\xff\x00"]]


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
async def test_a_command_that_has_ended_gets_the_end_of_its_input(tmp_path: Path, protocol: str) -> None:
    """The shell waits for it, so that no input is on its way when the connection ends."""
    heard: list[bytes] = []

    async def drains(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=(protocol,))
        await socket.prepare(request)
        mark = b"\x01\x1e" + name_in(request.query.getall("command")).encode()
        await socket.send_bytes(mark + b"+")
        assert await socket.receive_bytes() == b"\x00hello"
        await socket.send_bytes(mark + b"=3;")
        async for message in socket:
            heard.append(message.data)
            if message.data == b"\xff\x00":
                break
        await socket.close()
        return socket

    async with entered(tmp_path, drains) as session:
        await session.send(b"hello")
        assert await session.exit_code() == 3
        with pytest.raises(Unavailable):
            await session.send(b"more")
        await session.close()
    assert heard == ([b"\xff\x00"] if protocol.startswith("v5") else [])


async def test_a_terminal_keeps_its_size_without_a_shell(tmp_path: Path) -> None:
    sized = asyncio.Queue[bytes]()

    async def listens(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=("v5.channel.k8s.io",))
        await socket.prepare(request)
        await sized.put(await socket.receive_bytes())
        refusal = "sh" in request.query.getall("command")
        await socket.send_bytes(failure("sh: not found") if refusal else SUCCESS)
        await socket.close()
        return socket

    async with entered(tmp_path, listens, tty=True) as session:
        await session.resize(33, 77)
        assert await session.exit_code() == 0
        await session.close()
    size = b'\x04{"Width": 77, "Height": 33}'
    assert [sized.get_nowait(), sized.get_nowait()] == [size, size]


async def test_closing_ends_who_waits_for_output(tmp_path: Path) -> None:
    async with entered(tmp_path, says(stays=True)) as session:
        reading = asyncio.ensure_future(anext(session.output()))
        writing = asyncio.create_task(session.send(b"input"))
        await asyncio.sleep(0)  # they are waiting by now
        await session.close()
        with pytest.raises(StopAsyncIteration):
            await reading
        with pytest.raises(Unavailable):
            await writing
        assert await session.exit_code() == LOST


async def test_closing_drops_what_nobody_has_read(tmp_path: Path) -> None:
    chatty = says(OUTPUT + b"BEGIN", *[OUTPUT + b"a line\n"] * 1000, stays=True)
    async with entered(tmp_path, chatty) as session:
        output = session.output()
        assert await anext(output) == b"a line\n"
        await session.close()
        assert [chunk async for chunk in output] == []
        assert await session.exit_code() == LOST


async def test_a_session_without_reports_has_the_clusters_word(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.query.getall("command") == COMMAND
        return await says(OUTPUT + b"sent", SUCCESS)(request)

    assert await told(tmp_path, answer, reports=False) == (0, b"sent")


async def test_input_for_a_command_that_does_not_begin_ends_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exec_session, "_BEGINS_WITHIN", 0.05)
    async with entered(tmp_path, says(b"", stays=True)) as session:
        with pytest.raises(Unavailable, match="did not begin in time"):
            await session.send(b"words")
        assert [piece async for piece in session.output()] == []
        assert await session.exit_code() == LOST


async def test_a_session_that_fails_in_an_unforeseen_way_ends_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: bytes) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(exec_session, "end_of", fail)
    code, said = await told(tmp_path, says(OUTPUT + b"BEGINout", SUCCESS))
    assert code == LOST and said.startswith(b"outcorral: The connection to the command broke.")
    assert "a session in a pod failed" in caplog.text
