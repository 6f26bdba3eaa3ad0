"""The log of a task across its attempts: one stream of bytes, with a mark line before each later attempt.

Outputs stand in the order of attempts. A mark line precedes the output of each attempt, except the first that printed
anything. Offsets count output and marks. They stay valid when the next attempt begins, because an attempt's mark and
output no longer change then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from corral.kernel.ids import AttemptId
from corral.model.attempts import BEFORE_ALL, AttemptChain, AttemptNumber, AttemptStep
from corral.model.exits import own_phrase
from corral.storage.log_files import begin_of_tail

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
"""Seconds between two looks for the next attempt: from the first value up to the second."""
_AT_ONCE: Final = 16
"""Most logs of earlier attempts whose sizes are asked for at the same time."""

Chain = Callable[[AttemptNumber], Awaitable[AttemptChain]]
"""Returns the attempts of a task from an attempt number on."""


class OneLog(Protocol):
    """The log of one attempt."""

    async def size(self) -> int:
        """Bytes written so far."""
        ...

    async def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        """Return up to `limit` bytes from `offset` on, and the offset at which they really begin."""
        ...

    async def wait(self, offset: int, seconds: float) -> bool:
        """Wait at most `seconds` for bytes beyond `offset`; False if there will never be any."""
        ...

    async def close(self) -> None:
        """Release the log."""
        ...


Open = Callable[[AttemptId], Awaitable[OneLog]]
"""Opens the log of one attempt."""


@dataclass(slots=True)
class _Part:
    """One attempt's place in the whole log: its mark begins at `begin`, its output follows the mark."""

    step: AttemptStep
    begin: int
    mark: bytes
    size: int = 0
    """Bytes of output as last seen; final once the attempt is over."""

    @property
    def base(self) -> int:
        return self.begin + len(self.mark)

    @property
    def end(self) -> int:
        return self.base + self.size if self.size else self.begin


class TaskHistory:
    """One stream of all attempts of a task, as one log that grows until no further attempt can follow."""

    def __init__(self, attempt: str, stream: str, chain: Chain, open_log: Open) -> None:
        """`attempt` identifies the task among others."""
        self.attempt = attempt
        self.stream = stream
        self._chain = chain
        self._open_log = open_log
        self._parts: list[_Part] = []
        self._last: OneLog | None = None
        """The log of the last part."""
        self._earlier: tuple[AttemptId, OneLog] | None = None
        """The log of an earlier part that is being read, with its attempt."""
        self._last_over = False
        self._is_over = False
        """Whether no further attempt will follow, as last known."""

    async def load(self) -> TaskHistory:
        """Find the present attempts; call this once, before any other method.

        Raises the exceptions of opening a log.
        """
        await self._add((await self._chain(BEFORE_ALL)).steps)
        return self

    async def size(self) -> int:
        """Bytes written so far, in all attempts."""
        if not self._parts or self._last is None:
            return 0
        last = self._parts[-1]
        if not self._last_over:
            last.size = await self._last.size()
        return last.end

    async def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        """Return up to `limit` bytes of one attempt or of its mark, and the offset at which they really begin."""
        for part in self._parts[:-1]:
            if offset >= part.end:
                continue
            if offset < part.base:
                return offset, part.mark[offset - part.begin :][:limit]
            begin, data = await (await self._log_of(part)).read(offset - part.base, min(limit, part.end - offset))
            if data:
                return part.base + begin, data
            offset = part.end  # the end of this part is lost: go on with the next one
        if self._last is None:
            return offset, b""
        last = self._parts[-1]
        if offset < last.base:
            await self.size()
            return offset, last.mark[offset - last.begin :][:limit] if last.size else b""
        begin, data = await self._last.read(offset - last.base, limit)  # a log that was emptied is read from its start
        return (last.base + begin if data else offset), data

    async def tail(self, lines: int) -> int:
        """The offset at which the last `lines` lines begin, marks counted."""
        return await begin_of_tail(_Filled(self), lines)

    async def wait(self, offset: int, seconds: float) -> bool:
        """Wait at most `seconds` for bytes beyond `offset`; False if the task has no more and no further attempt."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        pause = _FIRST_PAUSE
        while True:
            if await self.size() > offset:
                return True
            if self._last is not None and not self._last_over:
                inner = max(0, offset - self._parts[-1].base)
                if await self._last.wait(inner, max(0.0, deadline - loop.time())):
                    return True
                await self.size()
                self._last_over = True
                continue
            if await self._next():
                continue
            if self._is_over:
                return False
            if loop.time() >= deadline:
                return True
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def close(self) -> None:
        """Release all logs."""
        if self._last is not None:
            await self._last.close()
        if self._earlier is not None:
            await self._earlier[1].close()
            self._earlier = None

    async def _next(self) -> bool:
        """Add the attempts that began since the last look; True if there are any."""
        last = self._parts[-1].step if self._parts else None
        found = await self._chain(BEFORE_ALL if last is None else last.number)
        self._is_over = found.over
        steps = list(found.steps)
        if last is not None and steps and steps[0].number == last.number:
            self._parts[-1].step = steps.pop(0)  # its end is known by now
        await self._add(steps)
        return bool(steps)

    async def _add(self, steps: Sequence[AttemptStep]) -> None:
        """Append attempts to the known ones; all but the last of them are over."""
        if not steps:
            return
        sizes: list[int] = []
        for begin in range(0, len(steps) - 1, _AT_ONCE):
            sizes += await asyncio.gather(*map(self._size_of, steps[begin : min(begin + _AT_ONCE, len(steps) - 1)]))
        newest = await self._open_log(steps[-1].id)
        if self._last is not None:
            await self._last.close()
        self._last, self._last_over = newest, False
        for step, size in zip(steps, [*sizes, 0], strict=True):
            self._put(step, size)

    def _put(self, step: AttemptStep, size: int) -> None:
        begin = self._parts[-1].end if self._parts else 0
        printed = next((part.step for part in reversed(self._parts) if part.size), None)
        self._parts.append(_Part(step, begin, mark(printed, step) if printed else b"", size))

    async def _size_of(self, step: AttemptStep) -> int:
        log = await self._open_log(step.id)
        try:
            return await log.size()
        finally:
            await log.close()

    async def _log_of(self, part: _Part) -> OneLog:
        if self._earlier is None or self._earlier[0] != part.step.id:
            if self._earlier is not None:
                await self._earlier[1].close()
                self._earlier = None
            self._earlier = part.step.id, await self._open_log(part.step.id)
        return self._earlier[1]


class _Filled:
    """A view of a history whose reads return all bytes asked for, or those after the last gap."""

    def __init__(self, history: TaskHistory) -> None:
        self._history = history
        self.size = history.size

    async def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        """Return up to `limit` bytes from `offset` on, and the offset at which they really begin."""
        end, at, pieces, begin = offset + limit, offset, list[bytes](), offset
        while at < end:
            found, data = await self._history.read(at, end - at)
            if not data:
                break
            if found != at:
                pieces, begin = [], found
            pieces.append(data[: max(0, end - found)])
            at = found + len(data)
        return begin, b"".join(pieces)


def mark(before: AttemptStep, step: AttemptStep) -> bytes:
    """The line between the outputs of two attempts; begins with a newline, because the last line may be unfinished."""
    phrase = "" if before.code is None else " ".join(own_phrase(before.code, before.phrase).split())
    how = f"ended: {phrase} (exit code {before.code})" if before.code is not None else "is over"
    return f"\n[corral: attempt {before.number} {how}; attempt {step.number} follows]\n".encode()
