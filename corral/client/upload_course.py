"""What a client does when an upload breaks off: whether it goes on, from where, and after how long.

The client asks how far the server is, sends the rest, and does so again after an error that passes by itself, for as
long as bytes arrive now and then. It needs to remember nothing: the server knows an upload by the archive's SHA-256.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from corral.client.patience import passes_by_itself
from corral.kernel.errors import CorralError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_PIECE: Final = 256 * 1024
_STALLED: Final = 4.0
"""How many times a client's patience an upload may go without a new byte: a broken connection can take the server half
a minute to notice."""
_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 3.0
_PASSING: Final = frozenset({"upload-busy", "wrong-offset", "upload-broken", "request-too-slow"})


class UploadCourse:
    """The course of one upload of `size` bytes."""

    def __init__(self, size: int, patience: float, tell: Callable[[int], None]) -> None:
        self._size, self._patience, self._tell = size, patience * _STALLED, tell
        self._offset = -1
        self._moved_at = 0.0
        self._pauses = 0
        self._restarted = False

    def seen(self, headers: Mapping[str, str] | None, now: float) -> int | None:
        """Note how far the server is; return where to go on, None when it has all. None stands for no part at all."""
        offset = int(headers["upload-offset"]) if headers is not None else 0
        if offset > self._offset:
            self._moved_at, self._pauses = now, 0
        self._offset = offset
        if headers is not None and headers["upload-complete"] == "?1":
            self._tell(self._size)
            return None
        self._tell(offset)
        return offset

    def pause(self, error: CorralError, now: float) -> float:
        """Return the seconds to wait before the server is asked again how far it is.

        Raises `error` when it would not pass by itself, or no new byte has arrived for long.
        """
        if error.code == "digest-mismatch" and self._offset > 0 and not self._restarted:
            self._restarted, self._offset = True, -1
            return 0.0
        left = self._moved_at + self._patience - now
        if self._offset < 0 or left <= 0 or not (error.code in _PASSING or passes_by_itself(error)):
            raise error
        self._pauses += 1
        return min(left, _LONGEST_PAUSE, _PAUSE * 2.0 ** min(self._pauses - 1, 10))

    def pieces(self, file: IO[bytes], offset: int) -> Iterator[bytes]:
        """Yield the archive from `offset` on, and tell how far it is."""
        file.seek(offset)
        while piece := file.read(_PIECE):
            yield piece
            offset += len(piece)
            self._tell(offset)
