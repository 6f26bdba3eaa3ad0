"""The log archive: each log as segments in a remote folder, because object stores cannot append.

`JOB/REST-OF-ATTEMPT.STREAM/OFFSET` holds the bytes from that offset on. The name may carry the follower's mark at the
segment's end (`OFFSET-MARK`), and ends in `.end` when nothing comes after it. A small last segment is written again
together with later bytes, and then removed. Where two segments overlap, the one that reaches further counts.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from corral.kernel.errors import NotFound
from corral.kernel.ids import AttemptId
from corral.storage.log_files import begin_of_tail

if TYPE_CHECKING:
    from corral.storage.remote_folder import RemoteFolder  # its library is loaded only where there is a remote folder

_NAME: Final = re.compile(r"(\d{20})(?:-([0-9.]{1,80}))?(\.end)?")
_SMALL: Final = 256 * 1024
"""Bytes below which a last segment is written again with the bytes that follow it."""
_BLOCK: Final = 2 << 20
"""Bytes that a reader fetches at once and keeps in memory."""
_LOOK_SECONDS: Final = 1.0


class Segment(NamedTuple):
    """One file of a log: its offset and size in bytes, its writer's mark at the end, and whether it is the last one."""

    name: str
    begin: int
    size: int
    mark: str = ""
    last: bool = False

    @property
    def end(self) -> int:
        """The offset after its last byte."""
        return self.begin + self.size


@dataclass(frozen=True)
class Archived:
    """The archived segments of a log in order; each begins where the one before ends, or later (a gap)."""

    segments: tuple[Segment, ...] = ()
    complete: bool = False

    @property
    def size(self) -> int:
        """The offset at which the archived bytes end."""
        return max((segment.end for segment in self.segments), default=0)

    @property
    def mark(self) -> tuple[str, int]:
        """The latest mark and its offset; "" and 0 when there is none."""
        marked = [segment for segment in self.segments if segment.mark]
        return (marked[-1].mark, marked[-1].end) if marked else ("", 0)

    def next_begin(self) -> int:
        """The offset of the next segment: that of the last one while it is small, else the end."""
        last = self.segments[-1] if self.segments else None
        return last.begin if last is not None and last.size < _SMALL else self.size


class LogArchive:
    """The logs of all attempts in one remote folder."""

    def __init__(self, folder: RemoteFolder) -> None:
        self._folder = folder

    async def look(self, attempt: AttemptId, stream: str) -> Archived:
        """The archived part of a log now.

        Raises Unavailable.
        """
        return _joined(_segments(await self._folder.files(_place(attempt, stream))))

    async def add(
        self, attempt: AttemptId, stream: str, there: Archived, begin: int, data: bytes, *, mark: str, last: bool
    ) -> Archived:
        """Add the bytes from `begin` on to a log; returns its archived part afterwards.

        Raises Unavailable.
        """
        name = f"{begin:020d}{f'-{mark}' if mark else ''}{'.end' if last else ''}"
        new = Segment(name, begin, len(data), mark, last)
        place = _place(attempt, stream)
        await self._folder.write(f"{place}/{name}", data)
        over = [old for old in there.segments if old.begin >= begin and old.end <= new.end and old.name != name]
        for old in over:
            await self._folder.remove(f"{place}/{old.name}")
        kept = [segment for segment in there.segments if segment not in over and segment.name != name]
        return _joined([*kept, new])

    async def read(self, attempt: AttemptId, stream: str, segment: Segment, begin: int, end: int) -> bytes:
        """The bytes between two offsets of a log, from the segment that has them.

        Raises NotFound when the segment has been rewritten, Unavailable.
        """
        place = f"{_place(attempt, stream)}/{segment.name}"
        return await self._folder.read(place, begin - segment.begin, min(end, segment.end) - segment.begin)

    async def remove(self, job: str) -> None:
        """Delete all logs of a job.

        Raises Unavailable.
        """
        await self._folder.remove_folder(job)


class ArchivedLog:
    """A reader of one archived log."""

    def __init__(self, archive: LogArchive, attempt: AttemptId, stream: str, there: Archived) -> None:
        self._archive, self.attempt, self.stream, self._there = archive, attempt, stream, there
        self._block = (0, b"")

    def exists(self) -> bool:
        """Whether anything is archived."""
        return bool(self._there.segments)

    async def size(self) -> int:
        """The archived size in bytes."""
        return self._there.size

    async def complete(self) -> bool:
        """Whether nothing will come after it."""
        return self._there.complete

    async def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        """Up to `limit` bytes from `offset` on, with the offset at which they really begin: later, after a gap.

        Raises Unavailable.
        """
        begin, data = await self._piece(offset, limit)
        while data and len(data) < limit:
            at, more = await self._piece(begin + len(data), limit - len(data))
            if not more or at > begin + len(data):
                break
            data += more
        return begin, data

    async def tail(self, lines: int) -> int:
        """The offset at which the last `lines` lines begin."""
        return await begin_of_tail(self, lines)

    async def wait(self, offset: int, seconds: float) -> bool:
        """Wait at most `seconds` for bytes beyond `offset`; False once the log is complete and has no more."""
        deadline = asyncio.get_running_loop().time() + seconds
        while self._there.size <= offset and not self._there.complete:
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return True
            await asyncio.sleep(min(_LOOK_SECONDS, left))
            await self._look()
        return self._there.size > offset

    async def close(self) -> None:
        """Do nothing."""

    async def _look(self) -> None:
        self._there = await self._archive.look(self.attempt, self.stream)

    async def _piece(self, offset: int, limit: int) -> tuple[int, bytes]:
        begin, block = self._block
        if not begin <= offset < begin + len(block):
            begin, block = self._block = await self._fetch(offset)
            offset = max(begin, offset)
        return offset, block[offset - begin : offset - begin + limit]

    async def _fetch(self, offset: int) -> tuple[int, bytes]:
        """A block of bytes from `offset` on; looks again when the segment was rewritten meanwhile."""
        for tried in (False, True):
            segment = next((each for each in self._there.segments if each.end > offset), None)
            if segment is None:
                break
            begin = max(offset, segment.begin)
            try:
                return begin, await self._archive.read(self.attempt, self.stream, segment, begin, begin + _BLOCK)
            except NotFound:
                if tried:
                    raise
                await self._look()
        return offset, b""


def _place(attempt: AttemptId, stream: str) -> str:
    job, _, rest = attempt.partition(".")
    return f"{job}/{rest}.{stream}"


def _segments(files: dict[str, int]) -> Iterable[Segment]:
    for name, size in files.items():
        if (match := _NAME.fullmatch(name)) is not None:
            yield Segment(name, int(match[1]), size, match[2] or "", bool(match[3]))


def _joined(segments: Iterable[Segment]) -> Archived:
    """Segments in reading order, without those that another one contains."""
    chain: list[Segment] = []
    complete = False
    for segment in sorted(segments, key=lambda each: (each.begin, -each.end, not each.mark)):
        complete = complete or segment.last
        at = chain[-1].end if chain else -1
        if segment.end > at or (segment.end == at and not chain[-1].mark and segment.mark):
            chain.append(segment)
    return Archived(tuple(chain), complete)
