"""Where a journal is read from, several times: an exported file, or the folder that a server writes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Protocol

from corral.control.journal.blocks import BlockReader
from corral.control.journal.folder import OPEN, PACKED
from corral.control.journal.records import beginning_at
from corral.kernel.errors import Forbidden, InvalidInput, NotFound


class Source(Protocol):
    """A journal; `problem` says after each reading why it ended early, in one sentence."""

    problem: str

    def records(self, since: float) -> Iterator[bytes]:
        """Its records, at least from the last beginning before a time on, in seconds since 1970."""
        ...


class FileSource:
    """The journal of a file."""

    def __init__(self, path: Path) -> None:
        """Raises NotFound."""
        if not path.is_file():
            raise NotFound("no-journal-file", f"{path} is not there; `corral journal export` writes such a file.")
        self._path = path
        self.problem = ""

    def records(self, since: float) -> Iterator[bytes]:
        """All records up to the last whole block; raises InvalidInput for a file that is no journal, or a newer one."""
        with self._path.open("rb") as opened:
            reader = BlockReader(opened)
            yield from reader
            self.problem = reader.problem


class FolderSource:
    """The journal of a server, which may go on writing it; only its files are read."""

    def __init__(self, folder: Path) -> None:
        """Raises NotFound."""
        if not folder.is_dir():
            message = f"{folder} is not there; a server with `journal_days` above 0 writes it."
            raise NotFound("no-journal-folder", message)
        self._folder = folder
        self._at = "", 0
        """The name of the file that was read last, and how many records of it were read."""
        self.problem = ""

    def records(self, since: float) -> Iterator[bytes]:
        """The records from the last beginning before `since` on, or from the oldest file on.

        Raises InvalidInput for a file of a newer version, and Forbidden if the folder is somebody else's.
        """
        self._at = "", 0
        yield from self.more(since)

    def more(self, since: float) -> Iterator[bytes]:
        """The records after those that were read before, at first as `records` gives them; raises as it does.

        Files may have been packed meanwhile, and those that were read may have been deleted.
        """
        try:
            names = sorted({each.stem for each in self._folder.iterdir() if each.suffix in (OPEN, PACKED)})
            last, read = self._at
            first = bisect_left(names, last) if last else self._first(names, since)
            self.problem = ""
            for name in names[first:]:
                read = read if name == last else 0
                for record in islice(self._file(name), read, None):
                    read += 1
                    self._at = name, read
                    yield record
                if self.problem:
                    return
        except PermissionError:
            message = f"{self._folder} may be read by its owner alone; run the command as the user of the server."
            raise Forbidden("not-the-owner", message) from None

    def _first(self, names: list[str], since: float) -> int:
        """The position of the last file before a time that begins with the state of a core; 0 if there is none."""
        for position in range(len(names) - 1, 0, -1):
            begun = self._begins(names[position])
            if begun is not None and begun <= since:
                return position
        return 0

    def _begins(self, name: str) -> float | None:
        first = next(self._file(name), None)
        return None if first is None else beginning_at(first)

    def _file(self, name: str) -> Iterator[bytes]:
        """The records of a file that may be packed meanwhile, or deleted as the oldest of all."""
        for ending in (OPEN, PACKED):
            try:
                opened = (self._folder / f"{name}{ending}").open("rb")
            except FileNotFoundError:
                continue
            with opened:
                try:
                    reader = BlockReader(opened)
                except InvalidInput as error:
                    if error.code == "newer-journal" or ending == PACKED:
                        raise
                    return  # its process ended before the header was written
                yield from reader
                if reader.problem and not (ending == OPEN and reader.cut_off):
                    self.problem = f"{name}{ending}: {reader.problem}"
            return
