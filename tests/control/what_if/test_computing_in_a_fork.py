"""A computation in a forked process: its answer, its refusals, its limits, and its end."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from corral.control.what_if.forked import USUAL, Fork, ForkLimits
from corral.kernel.errors import CorralError, NotFound, Unavailable


async def answer_of(compute: Callable[[], bytes], limits: ForkLimits = USUAL) -> bytes:
    """What a fork answers; it is ended in any case."""
    fork = Fork(compute, limits)
    try:
        return await fork.answer()
    finally:
        await fork.end()


async def test_the_answer_comes_whole_however_long_it_is() -> None:
    data = os.urandom(3_000_000)
    assert await answer_of(lambda: data) == data


async def test_a_loop_that_tells_of_an_empty_pipe_is_not_blocked_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, go = asyncio.get_running_loop(), tmp_path / "go"
    add_reader = loop.add_reader

    def told_at_once(descriptor: int, told: Callable[[], object]) -> None:
        add_reader(descriptor, told)
        loop.call_soon(told)
        loop.call_later(0.1, go.touch)

    def compute() -> bytes:
        for _ in range(2000):
            if go.exists():
                return b"went on"
            time.sleep(0.01)
        return b"was blocked"

    monkeypatch.setattr(loop, "add_reader", told_at_once)
    assert await answer_of(compute) == b"went on"


async def test_what_the_child_changes_stays_with_it() -> None:
    state = [1]

    def compute() -> bytes:
        state.append(2)
        return str(state).encode()

    assert await answer_of(compute) == b"[1, 2]"
    assert state == [1]


async def test_a_refusal_keeps_its_code_and_status() -> None:
    def refuse() -> bytes:
        raise NotFound("node-not-found", "There is no node x.")

    with pytest.raises(CorralError, match=r"There is no node x\.") as refused:
        await answer_of(refuse)
    assert (refused.value.code, refused.value.status) == ("node-not-found", 404)


async def test_other_errors_are_told() -> None:
    def fail() -> bytes:
        raise ValueError("no such thing")

    with pytest.raises(Unavailable, match="answered: ValueError: no such thing"):
        await answer_of(fail)


async def test_memory_is_bounded() -> None:
    with pytest.raises(Unavailable, match="more memory than it may have"):
        await answer_of(lambda: bytes(bytearray(1 << 30))[:1], ForkLimits(memory=64 << 20))


async def test_time_is_bounded_and_the_child_is_gone_then() -> None:
    def never() -> bytes:
        while True:
            time.sleep(1)

    fork = Fork(never, ForkLimits(seconds=0.5))
    assert Path(f"/proc/{fork._pid}").exists()
    with pytest.raises(Unavailable, match=r"not answered in 0\.5 seconds"):
        await fork.answer()
    await fork.end()
    assert not Path(f"/proc/{fork._pid}").exists()


async def test_a_caller_that_goes_ends_the_child(tmp_path: Path) -> None:
    def never() -> bytes:
        (tmp_path / "pid").write_text(str(os.getpid()))
        while True:
            time.sleep(1)

    waiting = asyncio.create_task(answer_of(never))
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()


async def test_the_child_has_no_descriptor_of_its_parent() -> None:
    with open("/dev/null", "rb") as file:
        held = str(file.fileno())
        found = await answer_of(lambda: " ".join(os.listdir("/proc/self/fd")).encode())
    assert held not in found.decode().split()


async def test_no_process_to_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(Unavailable, match="No process can be started for the question"):
        Fork(lambda: b"", USUAL)
    assert len(os.listdir("/proc/self/fd")) == before


_ASKS = """
import asyncio, contextlib, os, time
from corral.control.what_if.forked import USUAL, Fork
from corral.running import new_loop

async def ask(compute, looks):
    fork = Fork(compute, USUAL)
    answer = asyncio.ensure_future(fork.answer())
    for _ in range(looks):
        await asyncio.sleep(0)
    if looks:
        answer.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await answer
    await fork.end()

async def main():
    before = len(os.listdir("/proc/self/fd"))
    await ask(lambda: b"answer", 0)
    for looks in range(1, 5):
        await ask(lambda: time.sleep(60), looks)
    never_asked = Fork(lambda: time.sleep(60), USUAL)
    await never_asked.end()
    print(len(os.listdir("/proc/self/fd")) - before)

with asyncio.Runner(loop_factory=new_loop) as runner:
    runner.run(main())
"""


def test_each_descriptor_is_closed_once_also_when_the_caller_goes(tmp_path: Path) -> None:
    library = tmp_path / "failed_closes.so"
    source = Path(__file__).with_name("failed_closes.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    env = {**os.environ, "LD_PRELOAD": str(library)}
    done = subprocess.run([sys.executable, "-c", _ASKS], env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("0\n", "")
