"""An exec session runs in the task's folder and environment, and ends no later than the task."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from corral.kernel.errors import NotFound, Unavailable
from tests.engines.local_harness import Harness, attempt, collect, launch, of_attempt, until


@pytest.fixture
async def task(local: Harness) -> Harness:
    await local.engine.start(launch("sh", "-c", "echo ready; exec sleep 1000", env={"COLOUR": "teal"}))
    await local.line("ready")
    return local


async def test_it_runs_where_the_task_runs_with_what_the_task_has(task: Harness) -> None:
    session = await task.engine.exec(attempt(), ["sh", "-c", "echo $COLOUR $CORRAL_ATTEMPT; pwd; exit 3"], tty=False)
    lines = (await collect(session.output())).decode().splitlines()
    assert lines[0] == f"teal {attempt()}" and lines[1].endswith("/work")
    assert await session.exit_code() == 3
    await session.close()


async def test_bytes_pass_unchanged_both_ways_without_a_terminal(task: Harness) -> None:
    session = await task.engine.exec(attempt(), ["cat"], tty=False)
    data = bytes(range(256)) * 400
    await session.send(data)
    await session.send(b"")
    assert await collect(session.output()) == data
    assert await session.exit_code() == 0
    with pytest.raises(Unavailable, match="takes no more"):
        await session.send(b"more")
    await session.close()


async def test_a_terminal_has_a_size_and_control_keys(task: Harness) -> None:
    session = await task.engine.exec(attempt(), ["sh"], tty=True)
    await session.resize(33, 44)
    waiting = b"echo up$((40+2)); while :; do sleep 0.1; done"
    await session.send(b'stty size; tty; sh -c \'trap "echo caught$((40+4)); exit 0" INT; ' + waiting + b"'\n")
    seen = b""
    output = session.output()
    while b"up42" not in seen:
        seen += await anext(output)
    assert b"33 44" in seen and b"/dev/pts/" in seen
    await session.send(b"\x03")
    while b"caught44" not in seen:
        seen += await anext(output)
    await session.send(b"exit 5\n")
    async for chunk in output:
        seen += chunk
    assert await session.exit_code() == 5
    await session.close()


async def test_closing_ends_the_command(task: Harness) -> None:
    session = await task.engine.exec(attempt(), ["sh", "-c", "trap '' HUP; echo deaf; sleep 1000"], tty=False)
    assert await anext(session.output()) == b"deaf\n"
    await session.close()
    assert await session.exit_code() == 137
    await until(lambda: len(of_attempt(attempt())) == 2)  # the shim and the task


async def test_closing_ends_the_wait_for_output_that_something_left_behind_could_still_write(task: Harness) -> None:
    session = await task.engine.exec(attempt(), ["sh", "-c", "trap '' HUP; sleep 1000 & echo $!"], tty=False)
    seen: list[bytes] = []

    async def read() -> None:
        async for chunk in session.output():
            seen.append(chunk)

    reading = asyncio.create_task(read())
    assert await session.exit_code() == 0
    await until(lambda: bool(seen))
    await session.close()
    async with asyncio.timeout(120):
        await reading
    os.kill(int(b"".join(seen)), signal.SIGKILL)
    for _ in range(3):  # the closed descriptors' numbers are reused for these files
        again = await task.engine.exec(attempt(), ["echo", "heard"], tty=False)
        async with asyncio.timeout(120):
            assert await collect(again.output()) == b"heard\n"
            assert await again.exit_code() == 0
        await again.close()


async def test_input_that_nobody_takes_is_refused_when_the_session_is_closed(task: Harness) -> None:
    session = await task.engine.exec(attempt(), ["sleep", "1000"], tty=False)
    sending = asyncio.create_task(session.send(bytes(1 << 20)))
    await asyncio.sleep(0)  # it is waiting for room in the pipe by now
    assert not sending.done()
    await session.close()
    with pytest.raises(Unavailable, match="takes no more"):
        await sending


@pytest.mark.parametrize("command", [["sleep", "1000"], ["env", "-i", "sleep", "1000"]])
async def test_the_end_of_the_task_is_the_end_of_its_sessions(task: Harness, command: list[str]) -> None:
    session = await task.engine.exec(attempt(), command, tty=False)
    await task.engine.stop(attempt(), grace_seconds=60)
    await task.exited(attempt())
    assert await session.exit_code() != 0
    assert not of_attempt(attempt())
    await session.close()


async def test_there_is_no_session_without_a_running_task(local: Harness) -> None:
    with pytest.raises(NotFound, match="not running"):
        await local.engine.exec(attempt(), ["true"], tty=False)
    await local.run("true")
    with pytest.raises(NotFound, match="not running"):
        await local.engine.exec(attempt(), ["true"], tty=False)
