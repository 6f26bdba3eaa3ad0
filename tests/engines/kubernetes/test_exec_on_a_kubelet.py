"""Commands beside a task on a real kubelet end with their own exit codes, also where the cluster loses ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from corral.engines.base import ExecSession
from corral.engines.kubernetes.pods.exec_session import LOST
from corral.kernel.errors import Unavailable
from corral.kernel.ids import AttemptId
from tests.engines.kubernetes.engine_harness import Harness, launch
from tests.testbeds.docker import static_busybox
from tests.testbeds.kubernetes import images
from tests.testbeds.kubernetes.controlplane import ControlPlane
from tests.testbeds.kubernetes.kubelet import KubeletNode

pytestmark = [pytest.mark.kubernetes, pytest.mark.kubelet]
BARE = "corral.test/bare:1"
SESSIONS, AT_ONCE = 60, 12


@pytest.fixture
def at(control_plane: ControlPlane, kubelet_node: KubeletNode, namespace: str, tmp_path: Path) -> Harness:
    return Harness(control_plane, namespace, tmp_path)


@asynccontextmanager
async def task(at: Harness, node: KubeletNode, image: str = images.BUSYBOX) -> AsyncIterator[AttemptId]:
    """A running task that waits."""
    started = launch(node.name, "sleep", "600", image=image)
    async with at:
        await at.engine.start(started)
        await at.started(started.attempt)
        yield started.attempt


async def ran(at: Harness, attempt: AttemptId, *words: str, tty: bool = False) -> tuple[int, bytes]:
    """The exit code and output of a command whose input stays open."""
    session = await at.engine.exec(attempt, words, tty=tty)
    said = b"".join([data async for data in session.output()])
    code = await session.exit_code()
    await session.close()
    return code, said


@asynccontextmanager
async def stuttering(*pids: int) -> AsyncIterator[None]:
    """Stop and continue these processes in turns, beside two programs that take all processor time."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]

    async def stutter() -> None:
        order = random.Random(7)
        while True:
            pid = order.choice(pids)
            os.kill(pid, signal.SIGSTOP)
            try:
                await asyncio.sleep(order.uniform(0.01, 0.12))
            finally:
                os.kill(pid, signal.SIGCONT)
            await asyncio.sleep(order.uniform(0.01, 0.05))

    running = asyncio.create_task(stutter())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        for each in busy:
            each.kill()
            each.wait()


async def test_no_end_is_lost_on_a_busy_node_while_input_arrives(at: Harness, kubelet_node: KubeletNode) -> None:
    """A session that ends while input is on its way had exit code 0 in 4 of 100 cases, and 255 in 7."""
    delays = random.Random(7)

    async def begun(attempt: AttemptId) -> ExecSession:
        while True:
            with contextlib.suppress(Unavailable):  # the kubelet may be stopped for too long
                return await at.engine.exec(attempt, ["sh", "-c", "sleep 0.05; exit 7"], tty=False)

    async def fails(attempt: AttemptId) -> tuple[int, bytes]:
        session = await begun(attempt)

        async def types() -> None:
            await asyncio.sleep(delays.uniform(0, 0.2))
            with contextlib.suppress(Unavailable):
                for _ in range(4):
                    await session.send(b"x" * 100)
                await session.send(b"")

        typing = asyncio.create_task(types())
        said = b"".join([data async for data in session.output()])
        code = await session.exit_code()
        typing.cancel()
        await asyncio.gather(typing, return_exceptions=True)
        await session.close()
        return code, said

    async with task(at, kubelet_node) as attempt:
        room = asyncio.Semaphore(AT_ONCE)

        async def one() -> tuple[int, bytes]:
            async with room:
                return await fails(attempt)

        async with stuttering(kubelet_node.kubelet.pid, kubelet_node.containerd.pid):
            found = await asyncio.gather(*(one() for _ in range(SESSIONS)))
    assert found == [(7, b"")] * SESSIONS


async def test_ends_that_are_not_plain(at: Harness, kubelet_node: KubeletNode) -> None:
    async with task(at, kubelet_node) as attempt:
        assert await ran(at, attempt, "true") == (0, b"")
        assert await ran(at, attempt, "sh", "-c", "kill -KILL $$") == (137, b"")
        code, said = await ran(at, attempt, "nowhere")
        assert code == 127 and b"nowhere: not found" in said
        late = "(while kill -0 $$; do :; done 2>&-; echo late) & echo early; exit 5"
        assert await ran(at, attempt, "sh", "-c", late) == (5, b"early\nlate\n")
        code, said = await ran(at, attempt, "sh", "-c", "seq 1000000; exit 3")
        assert code == 3 and said == b"".join(b"%d\n" % number for number in range(1, 1_000_001))
        killed = await ran(at, attempt, "sh", "-c", "kill -KILL $PPID; exec sleep 0.01")
        assert killed == (137, b""), "the shell around it is killed"
        assert (await ran(at, attempt, "sh", "-c", "exit 4", tty=True)) == (4, b"")


async def test_a_kubelet_that_ends_is_no_success_of_the_command(at: Harness, kubelet_node: KubeletNode) -> None:
    async with task(at, kubelet_node) as attempt:
        session = await at.engine.exec(attempt, ["sh", "-c", "echo ready; exec sleep 600"], tty=False)
        output = session.output()
        assert await anext(output) == b"ready\n"
        kubelet_node.restart_kubelet()  # in the main thread: the daemon ends with the thread that started it
        said = b"".join([data async for data in output])
        assert await session.exit_code() == LOST
        assert said.startswith(b"corral: ") and said.endswith(b".\n")
        await session.close()


async def test_ctrl_c_ends_a_command_on_a_terminal(at: Harness, kubelet_node: KubeletNode) -> None:
    async with task(at, kubelet_node) as attempt:
        session = await at.engine.exec(attempt, ["sh", "-c", "echo ready; exec sleep 600"], tty=True)
        said = b""
        async for data in session.output():
            said += data
            if said.endswith(b"ready\r\n"):
                await session.send(b"\x03")
        assert await session.exit_code() == 130
        assert said.replace(b"^C", b"") == b"ready\r\n"
        await session.close()


async def test_an_image_without_a_shell_runs_commands(at: Harness, kubelet_node: KubeletNode) -> None:
    def fill(tree: Path) -> Path:
        busybox = static_busybox()
        assert busybox is not None
        (tree / "bin").mkdir(parents=True)
        shutil.copy(busybox, tree / "bin" / "sleep")
        for name in ("cat", "false", "true"):
            (tree / "bin" / name).symlink_to("sleep")
        return tree

    kubelet_node.provide(BARE, fill)
    async with task(at, kubelet_node, BARE) as attempt:
        assert await ran(at, attempt, "true") == (0, b"")
        assert await ran(at, attempt, "false") == (1, b"")
        session = await at.engine.exec(attempt, ["cat"], tty=False)
        await session.send(b"words")
        await session.send(b"")
        assert b"".join([data async for data in session.output()]) == b"words"
        assert await session.exit_code() == 0
        await session.close()
        code, said = await ran(at, attempt, "nowhere")
        assert code == LOST and b"nowhere" in said
