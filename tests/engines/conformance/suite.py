"""The conformance suite of engines: start, adoption, stop, lost answers, logs, exec, hints, at most one instance.

An engine passes it with a class that inherits `EngineConformance` and a fixture `place`. Tasks run `sh` with the usual
small programs. A crash of the server is an engine object that is dropped; the next one is opened over the same place.
"""

from __future__ import annotations

import asyncio
import struct
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol

import msgspec
import pytest

from corral.api.ssh.task_program import GREETING, NO_PYTHON, PROGRAM_WORDS, program_input
from corral.engines.base import Engine, JobHints
from corral.kernel.errors import NotFound
from corral.kernel.ids import AttemptId, JobId, job_id, parse_attempt_id
from corral.model.launch import EngineEvent, Exited, GangPart, Started, TaskLaunch

PATIENCE: Final = 150.0
"""Seconds after which something that should have come never will."""


class Opened(Protocol):
    """An engine that is open, whose events are collected."""

    engine: Engine
    seen: list[EngineEvent]

    async def started(self, which: AttemptId) -> Started:
        """Wait until the attempt has started."""
        ...

    async def exited(self, which: AttemptId) -> Exited:
        """Wait until the attempt has ended."""
        ...

    def log(self, which: AttemptId) -> str:
        """What the attempt has printed so far."""
        ...


class Place(Protocol):
    """Where an engine's tasks run; it outlives engine objects."""

    def open(self) -> AbstractAsyncContextManager[Opened]:
        """Open an engine; leaving it ends no task, like a killed server."""
        ...

    def launch(self, *command: str, **fields: Any) -> TaskLaunch:
        """The launch of a new attempt on some node."""
        ...


class EngineConformance:
    """Inherit it, and give it a fixture `place`."""

    async def test_a_task_prints_and_ends_with_its_code(self, place: Place) -> None:
        task = place.launch("sh", "-c", "echo one; echo $CORRAL_ROLE; exit 3")
        async with place.open() as at:
            await at.engine.start(task)
            exited = await at.exited(task.attempt)
            assert exited.code == 3
            assert at.log(task.attempt) == "one\nworker\n"
            assert exited.log_bytes == len("one\nworker\n"), "the log is complete when the end is told"

    async def test_a_start_is_told_before_the_end_and_each_once(self, place: Place) -> None:
        task = place.launch("sh", "-c", "sleep 1")
        async with place.open() as at:
            await at.engine.start(task)
            await at.exited(task.attempt)
            told = [type(event) for event in at.seen if getattr(event, "attempt", "") == task.attempt]
            assert [kind for kind in told if kind in (Started, Exited)] == [Started, Exited]

    async def test_a_start_whose_answer_was_lost_is_repeated_without_a_second_instance(self, place: Place) -> None:
        task = place.launch("sh", "-c", "echo begun; sleep 2")
        async with place.open() as at:
            await asyncio.gather(*(at.engine.start(task) for _ in range(5)))
            await at.started(task.attempt)
            await at.engine.start(task)
            assert (await at.exited(task.attempt)).code == 0
            await at.engine.start(task)
            assert at.log(task.attempt) == "begun\n"

    async def test_a_stop_leaves_the_grace_and_the_last_lines(self, place: Place) -> None:
        script = "trap 'echo saving; sleep 1; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done"
        task = place.launch("sh", "-c", script)
        async with place.open() as at:
            await at.engine.start(task)
            await printed(at, task.attempt, "ready")
            await at.engine.stop(task.attempt, grace_seconds=60)
            assert (await at.exited(task.attempt)).code == 0
            assert at.log(task.attempt).splitlines()[-2:] == ["saving", "saved"]

    async def test_a_task_that_ignores_the_signal_is_killed_after_its_grace(self, place: Place) -> None:
        task = place.launch("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done")
        async with place.open() as at:
            await at.engine.start(task)
            await printed(at, task.attempt, "ready")
            await at.engine.stop(task.attempt, grace_seconds=1)
            assert (await at.exited(task.attempt)).code == 137

    async def test_an_attempt_that_was_stopped_before_its_start_never_starts(self, place: Place) -> None:
        task = place.launch("sh", "-c", "echo ran")
        async with place.open() as at:
            await at.engine.stop(task.attempt, grace_seconds=1)
            await at.exited(task.attempt)
            await at.engine.start(task)
            assert task.attempt in at.engine.attempts()
            assert not any(isinstance(each, Started) and each.attempt == task.attempt for each in at.seen)

    async def test_the_next_server_adopts_what_runs(self, place: Place) -> None:
        script = (
            "go=/tmp/$CORRAL_ATTEMPT.go; echo ready; until [ -e $go ]; do sleep 0.1; done; rm $go; echo done; exit 4"
        )
        task = place.launch("sh", "-c", script)
        async with place.open() as first:
            await first.engine.start(task)
            await printed(first, task.attempt, "ready")
        async with place.open() as second:
            assert task.attempt in second.engine.attempts(), "complete as soon as it is open"
            await second.started(task.attempt)
            await second.engine.start(task)
            await run(second, task.attempt, f"touch /tmp/{task.attempt}.go")
            assert (await second.exited(task.attempt)).code == 4
            assert second.log(task.attempt) == "ready\ndone\n"

    async def test_an_end_that_nobody_saw_is_told_by_the_next_server(self, place: Place) -> None:
        task = place.launch("sh", "-c", "echo ready; sleep 2; exit 5")
        async with place.open() as first:
            await first.engine.start(task)
            await printed(first, task.attempt, "ready")  # before that a server that closes may leave no trace of it
        async with place.open() as second:
            assert (await second.exited(task.attempt)).code == 5
        async with place.open() as third:
            assert (await third.exited(task.attempt)).code == 5, "repeated until it is forgotten"

    async def test_what_is_forgotten_is_told_no_more_and_may_be_forgotten_again(self, place: Place) -> None:
        task = place.launch("sh", "-c", "echo kept")
        async with place.open() as at:
            await at.engine.start(task)
            await at.exited(task.attempt)
            await at.engine.forget([task.attempt])
            await at.engine.forget([task.attempt])
            async with asyncio.timeout(PATIENCE):
                while task.attempt in at.engine.attempts():
                    await asyncio.sleep(0.05)
            assert at.log(task.attempt) == "kept\n", "logs stay"
        async with place.open() as later:
            assert task.attempt not in later.engine.attempts()

    async def test_a_command_runs_beside_the_task_in_its_environment(self, place: Place) -> None:
        task = place.launch("sh", "-c", "echo ready; exec sleep 600", env={"COLOUR": "teal"})
        async with place.open() as at:
            await at.engine.start(task)
            await printed(at, task.attempt, "ready")
            session = await at.engine.exec(task.attempt, ["sh", "-c", "echo $COLOUR; exit 7"], tty=False)
            assert b"".join([chunk async for chunk in session.output()]) == b"teal\n"
            assert await session.exit_code() == 7
            await session.close()
            await at.engine.stop(task.attempt, grace_seconds=0)
            await at.exited(task.attempt)
            with pytest.raises(NotFound):
                await at.engine.exec(task.attempt, ["true"], tty=False)

    async def test_the_program_for_ssh_keeps_streams_apart(self, place: Place) -> None:
        """In an image without Python it says so."""
        task = place.launch("sh", "-c", "echo ready; exec sleep 600", env={"COLOUR": "teal"})
        order = {"command": ["sh", "-c", "cat; echo $COLOUR >&2; exit 7"]}
        given = b"bytes\0\xff\n"
        async with place.open() as at:
            await at.engine.start(task)
            await printed(at, task.attempt, "ready")
            session = await at.engine.exec(task.attempt, PROGRAM_WORDS, tty=False)
            output = session.output()
            said = b""
            async with asyncio.timeout(PATIENCE):
                while b"\n" not in said:
                    said += await anext(output)
                if said != NO_PYTHON:
                    assert said == GREETING
                    await session.send(program_input("ssh_command", order))
                    await session.send(b"i" + struct.pack(">I", len(given)) + given + b"e" + struct.pack(">I", 0))
                    frames = streams(b"".join([piece async for piece in output]))
                    assert frames[b"o"] == given and frames[b"r"] == b"teal\n" and frames[b"x"] == b"7"
            await session.close()
            await at.engine.stop(task.attempt, grace_seconds=0)
            await at.exited(task.attempt)

    async def test_a_start_may_carry_its_whole_gang(self, place: Place) -> None:
        task = place.launch("sh", "-c", "echo ran")
        gang = (GangPart("worker", task.node, 2), GangPart("server", f"{task.node}-beside", 1))
        task = msgspec.structs.replace(task, gang=gang)
        async with place.open() as at:
            await at.engine.start(task)
            assert (await at.exited(task.attempt)).code == 0
            assert at.log(task.attempt) == "ran\n"

    async def test_hints_about_jobs_end_no_task_of_a_live_one_and_may_be_repeated(self, place: Place) -> None:
        task = place.launch("sh", "-c", "echo ready; exec sleep 600")
        job, stranger = parse_attempt_id(task.attempt).job, job_id(1, 1)
        async with place.open() as at:
            hint(at.engine, stranger, live={job})
            await at.engine.start(task)
            await printed(at, task.attempt, "ready")
            hint(at.engine, stranger, live={job})
            hint(at.engine, stranger, live={job})
            await run(at, task.attempt, "true")
            await at.engine.stop(task.attempt, grace_seconds=0)
            await at.exited(task.attempt)
            await at.engine.forget([task.attempt])
            hint(at.engine, job, live=set())
            hint(at.engine, job, live=set())
        async with place.open() as later:
            hint(later.engine, job, live=set())
            assert task.node in {node.name for node in (await later.engine.inventory()).nodes}

    async def test_the_inventory_has_the_node_that_tasks_run_on(self, place: Place) -> None:
        task = place.launch("true")
        async with place.open() as at:
            assert task.node in {node.name for node in (await at.engine.inventory()).nodes if node.ready}


def streams(data: bytes) -> dict[bytes, bytes]:
    """The contents of a program's frames, joined by kind."""
    found: dict[bytes, bytes] = {}
    while data:
        size = struct.unpack(">I", data[1:5])[0]
        found[data[:1]] = found.get(data[:1], b"") + data[5 : 5 + size]
        data = data[5 + size :]
    return found


def hint(engine: Engine, over: JobId, live: set[JobId]) -> None:
    """Give both hints to an engine that takes them."""
    if isinstance(engine, JobHints):
        engine.live_jobs(frozenset(live))
        engine.job_over(over)


async def printed(at: Opened, attempt: AttemptId, text: str) -> None:
    """Wait until an attempt has printed a text."""
    await at.started(attempt)
    async with asyncio.timeout(PATIENCE):
        while text not in at.log(attempt):
            await asyncio.sleep(0.05)


async def run(at: Opened, attempt: AttemptId, script: str) -> None:
    """Run a script beside a task."""
    session = await at.engine.exec(attempt, ["sh", "-c", script], tty=False)
    assert await session.exit_code() == 0
    await session.close()
