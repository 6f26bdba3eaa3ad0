"""A task's log across its attempts: every way of reading gives the same bytes, which never change."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from corral.api.log_reader import follow_source, read_source
from corral.kernel.ids import AttemptId, JobId, attempt_id
from corral.model.attempts import AttemptChain, AttemptNumber, AttemptStep
from corral.service.logs.task_history import TaskHistory, mark

JOB = JobId("j000000000000")


class Paper:
    """The log of one attempt in memory; its first `gone` bytes are lost."""

    def __init__(self, data: bytes = b"", *, gone: int = 0, ended: bool = True) -> None:
        self.data, self.gone, self.ended = data, gone, ended
        self.changed = asyncio.Event()

    def write(self, data: bytes) -> None:
        self.data += data
        self.changed.set()

    def end(self) -> None:
        self.ended = True
        self.changed.set()

    async def size(self) -> int:
        return len(self.data)

    async def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        begin = max(offset, self.gone)
        data = self.data[begin : begin + limit]
        return (begin if data else offset), data

    async def wait(self, offset: int, seconds: float) -> bool:
        while len(self.data) <= offset and not self.ended:
            self.changed.clear()
            await self.changed.wait()
        return len(self.data) > offset

    async def close(self) -> None:
        return None


class Task:
    """A task and its attempts."""

    def __init__(self, *logs: Paper) -> None:
        self.logs: dict[AttemptId, Paper] = {}
        self.steps: list[AttemptStep] = []
        self.over = False
        self.opened = 0
        for log in logs:
            self.begin(log)

    def begin(self, log: Paper) -> Paper:
        if self.steps:
            last = self.steps[-1]
            self.steps[-1] = AttemptStep(last.id, last.number, -210, "StopRequested")
        number = AttemptNumber(len(self.steps), 0)
        identity = attempt_id(JOB, number.job_attempt, "worker", 0, number.task_attempt)
        self.logs[identity] = log
        self.steps.append(AttemptStep(identity, number))
        return log

    async def chain(self, since: AttemptNumber) -> AttemptChain:
        return AttemptChain(tuple(step for step in self.steps if step.number >= since), self.over)

    async def open(self, attempt: AttemptId) -> Paper:
        self.opened += 1
        return self.logs[attempt]

    async def history(self) -> TaskHistory:
        return await TaskHistory(f"{JOB}.worker.0", "all", self.chain, self.open).load()

    def whole(self) -> bytes:
        """The expected log, from the attempts that printed."""
        text, before = b"", None
        for step in self.steps:
            if data := self.logs[step.id].data:
                text += (mark(before, step) if before else b"") + data
                before = step
        return text


outputs = st.lists(st.binary(max_size=40) | st.just(b"") | st.just(b"line\nline\n"), min_size=1, max_size=6)


@given(outputs, st.data())
def test_every_offset_limit_and_piece_gives_the_same_bytes(printed: list[bytes], data: st.DataObject) -> None:
    async def run() -> None:
        task = Task(*map(Paper, printed))
        whole = task.whole()
        history = await task.history()
        assert await history.size() == len(whole)
        begin = data.draw(st.integers(0, len(whole)))
        end = data.draw(st.integers(begin, len(whole)))
        piece = data.draw(st.integers(1, 50))
        assert b"".join([part async for part in read_source(history, begin, end, piece)]) == whole[begin:end]

    asyncio.run(run())


@given(outputs, st.integers(0, 12))
def test_the_last_lines_are_counted_across_attempts(printed: list[bytes], lines: int) -> None:
    async def run() -> None:
        task = Task(*map(Paper, printed))
        whole = task.whole()
        begin = await (await task.history()).tail(lines)
        ended = whole if not whole or whole.endswith(b"\n") else whole + b"\n"
        wanted = ended.split(b"\n")[:-1]
        shown = whole[begin:].removesuffix(b"\n").split(b"\n") if whole[begin:] else []
        assert shown == (wanted[-lines:] if lines else [])

    asyncio.run(run())


@given(outputs, outputs)
def test_what_was_there_stays_where_it_was_when_more_attempts_follow(first: list[bytes], more: list[bytes]) -> None:
    async def run() -> None:
        task = Task(*map(Paper, first))
        before = await (await task.history()).size()
        read = b"".join([part async for part in read_source(await task.history(), 0, before)])
        for text in more:
            task.begin(Paper(text))
        history = await task.history()
        after = b"".join([part async for part in read_source(history, 0, await history.size())])
        assert after.startswith(read) and after == task.whole()

    asyncio.run(run())


async def test_a_follower_goes_on_into_the_next_attempt_and_ends_with_the_task() -> None:
    first = Paper(b"one\n", ended=False)
    task = Task(first)
    pieces = follow_source(await task.history(), 0)
    assert await anext(pieces) == b"one\n"
    waiting = asyncio.ensure_future(anext(pieces))
    task.begin(Paper())  # it never started, so it never wrote
    third = task.begin(Paper(ended=False))
    first.end()
    third.write(b"two\n")
    said = b"\n[corral: attempt 0.0 ended: StopRequested (exit code -210); attempt 2.0 follows]\n"
    assert await asyncio.wait_for(waiting, 120) == said
    assert await anext(pieces) == b"two\n"
    task.over = True
    third.end()
    assert [piece async for piece in pieces] == []


async def test_a_follower_of_a_task_of_which_nothing_is_known_yet_waits_for_it() -> None:
    task = Task()
    history = await task.history()
    assert await history.size() == 0 and await history.wait(0, 0.01)
    task.begin(Paper(b"late\n"))
    task.over = True
    assert b"".join([piece async for piece in follow_source(history, 0)]) == b"late\n"


async def test_what_is_lost_of_an_earlier_attempt_is_passed_over() -> None:
    task = Task(Paper(b"0123456789", gone=6), Paper(b"next\n"))
    history = await task.history()
    assert await history.read(0, 100) == (6, b"6789")
    assert await history.tail(100) == 6
    task.logs[task.steps[0].id].data = b"012345678"  # its last bytes were on a machine that is gone
    begin, data = await history.read(9, 100)
    assert (begin, data[:2]) == (10, b"\n[")


async def test_two_logs_at_most_are_open_whatever_the_attempts() -> None:
    task = Task(*(Paper(b"x\n") for _ in range(40)))
    history = await task.history()
    opened = task.opened
    assert b"".join([part async for part in read_source(history, 0, await history.size())]) == task.whole()
    assert (opened, task.opened) == (40, 40 + 39)
