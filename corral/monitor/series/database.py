"""The file that series are kept in: an SQLite database of its own, so that it never stops what the main store does."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from corral.monitor.series.frames import NOTHING, Frame

FileError = sqlite3.Error
"""Whatever SQLite says is wrong."""
BrokenFile = sqlite3.DatabaseError
"""The file is no database, or a damaged one, unless it is `NotNow`."""
NotNow = sqlite3.OperationalError
"""The file cannot be used now: it is locked or full, or its disk fails."""
_VERSION: Final = 1
_MOST_FRAME_BYTES: Final = 1 << 24
_WAIT_SECONDS: Final = 5.0
_CACHE_KIB: Final = 1024
_TABLES: Final = f"""
CREATE TABLE series (
    number INTEGER PRIMARY KEY, family TEXT NOT NULL, labels TEXT NOT NULL, job TEXT NOT NULL, last INTEGER NOT NULL
);
CREATE UNIQUE INDEX series_by_name ON series (family, labels);
CREATE INDEX series_by_job ON series (job) WHERE job != '';
CREATE TABLE frames (step INTEGER PRIMARY KEY, numbers BLOB, points BLOB NOT NULL);
CREATE TABLE fine (chunk INTEGER, number INTEGER, data BLOB NOT NULL, PRIMARY KEY (chunk, number)) WITHOUT ROWID;
CREATE TABLE coarse (chunk INTEGER, number INTEGER, data BLOB NOT NULL, PRIMARY KEY (chunk, number)) WITHOUT ROWID;
CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
PRAGMA user_version = {_VERSION};
"""


class StoredSeries(NamedTuple):
    """The name of one series."""

    number: int
    family: str
    labels: str
    """The values of its family's labels, as a JSON array."""
    job: str
    """The job that it is of; "" is none."""
    last: int
    """The hour since 1970 in which it last had a value."""


class Database:
    """One connection; SQLite's errors (`sqlite3.Error`) are the caller's to handle."""

    def __init__(self, path: Path, *, most_bytes: int = 0, read_only: bool = False) -> None:
        """Open the file, or begin a new one; `most_bytes` is the size that the file never exceeds, 0 is any.

        Raises sqlite3.Error if it cannot be opened, or has another version's tables.
        """
        if read_only:
            self._db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_WAIT_SECONDS)
            return
        with contextlib.suppress(OSError):  # other accounts may pass through the folder; -wal and -shm get its mode
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._db = sqlite3.connect(path, timeout=_WAIT_SECONDS, check_same_thread=False, isolation_level=None)
        try:
            self._begin(most_bytes)
        except sqlite3.Error:
            self._db.close()
            raise

    def _begin(self, most_bytes: int) -> None:
        # A kill of the process loses nothing that was committed; a power cut may lose some minutes.
        self._db.executescript(
            f"PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -{_CACHE_KIB}"
        )
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version == 0:
            self._db.executescript(f"BEGIN; {_TABLES} COMMIT;")
        elif version != _VERSION:
            raise sqlite3.DatabaseError(f"its tables have version {version}, not {_VERSION}")
        if most_bytes:
            (page,) = self._db.execute("PRAGMA page_size").fetchone()
            self._db.execute(f"PRAGMA max_page_count = {max(16, most_bytes // page)}")

    def __enter__(self) -> Database:
        """Begin a transaction."""
        self._db.execute("BEGIN IMMEDIATE")
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._db.execute("COMMIT")
        elif self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def used_bytes(self) -> int:
        """Bytes of the pages that hold data."""
        pages, free, size = (
            self._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def mark(self, name: str) -> int:
        """A number that was kept under a name; 0 if none was."""
        found = self._db.execute("SELECT value FROM marks WHERE name = ?", (name,)).fetchone()
        return 0 if found is None else int(found[0])

    def set_mark(self, name: str, value: int) -> None:
        """Keep a number under a name."""
        self._db.execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", (name, value))

    # names

    def newest_number(self) -> int:
        """The greatest number of a series; 0 if there is none."""
        return int(self._db.execute("SELECT coalesce(max(number), 0) FROM series").fetchone()[0])

    def number(self, family: str, labels: str) -> int | None:
        """The number of a series; None if it is not stored."""
        found = self._db.execute(
            "SELECT number FROM series WHERE family = ? AND labels = ?", (family, labels)
        ).fetchone()
        return None if found is None else int(found[0])

    def add_names(self, names: Iterable[StoredSeries]) -> None:
        """Store the names of new series."""
        self._db.executemany("INSERT OR IGNORE INTO series VALUES (?, ?, ?, ?, ?)", names)

    def seen(self, last: int, numbers: Iterable[int]) -> None:
        """Store that these series had values in the hour `last`."""
        self._db.executemany("UPDATE series SET last = ? WHERE number = ?", ((last, each) for each in numbers))

    def names(self, family: str, job: str, limit: int) -> list[StoredSeries]:
        """At most `limit` series of a family ("" is any) and job ("" is any), the oldest first."""
        where, given = ["1"], []
        for column, value in (("family", family), ("job", job)):
            if value:
                where.append(f"{column} = ?")
                given.append(value)
        query = f"SELECT * FROM series WHERE {' AND '.join(where)} ORDER BY number LIMIT ?"  # noqa: S608
        return [StoredSeries(*row) for row in self._db.execute(query, (*given, limit))]

    def forget_names(self, before: int) -> None:
        """Delete the series without values since the hour `before`."""
        self._db.execute("DELETE FROM series WHERE last < ?", (before,))

    # frames

    def put_frame(self, step: int, frame: Frame, before: Frame | None) -> None:
        """Store a frame; its series are left out where they are those of `before`, the last stored one of its hour."""
        same = before is not None and before.numbers is frame.numbers
        numbers = None if same else zlib.compress(frame.numbers.tobytes(), 1)
        self._db.execute(
            "INSERT OR REPLACE INTO frames VALUES (?, ?, ?)", (step, numbers, zlib.compress(frame.values.tobytes(), 1))
        )

    def frames(self) -> Iterator[tuple[int, Frame]]:
        """All stored frames, in ascending order.

        Raises sqlite3.DatabaseError for one that is broken.
        """
        numbers = NOTHING.numbers
        for step, packed, points in self._db.execute("SELECT * FROM frames ORDER BY step"):
            try:
                if packed is not None:
                    numbers = array("I", _inflated(packed))
                values = array("d", _inflated(points))
            except (zlib.error, ValueError) as error:
                raise sqlite3.DatabaseError(f"frame {step} is broken: {error}") from None
            if len(values) != len(numbers):
                raise sqlite3.DatabaseError(f"frame {step} has {len(values)} values of {len(numbers)} series")
            yield int(step), Frame(numbers, values)

    def drop_frames(self, begin: int, end: int) -> None:
        """Delete the frames from `begin` to before `end`."""
        self._db.execute("DELETE FROM frames WHERE step >= ? AND step < ?", (begin, end))

    # chunks; `table` is "fine" or "coarse"

    def put_chunks(self, table: str, chunks: Iterable[tuple[int, int, bytes]]) -> None:
        """Store chunks: which, the number of the series, and the packed values."""
        self._db.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", chunks)  # noqa: S608

    def chunk(self, table: str, chunk: int, number: int) -> bytes | None:
        """One chunk of a series; None if there is none."""
        query = f"SELECT data FROM {table} WHERE chunk = ? AND number = ?"  # noqa: S608
        found = self._db.execute(query, (chunk, number)).fetchone()
        return None if found is None else bytes(found[0])

    def chunks(self, table: str) -> list[int]:
        """The chunks of which anything is stored, in ascending order."""
        found: list[int] = []
        query = f"SELECT min(chunk) FROM {table} WHERE chunk > ?"  # noqa: S608
        at: int | None = -1
        while (at := self._db.execute(query, (at,)).fetchone()[0]) is not None:
            found.append(at)
        return found

    def numbers_in(self, table: str, begin: int, end: int) -> list[int]:
        """The series that have chunks from `begin` to before `end`."""
        query = f"SELECT DISTINCT number FROM {table} WHERE chunk >= ? AND chunk < ?"  # noqa: S608
        return [row[0] for row in self._db.execute(query, (begin, end))]

    def drop_chunks(self, table: str, begin: int, end: int) -> None:
        """Delete the chunks from `begin` to before `end`."""
        self._db.execute(f"DELETE FROM {table} WHERE chunk >= ? AND chunk < ?", (begin, end))  # noqa: S608


def is_full(error: NotNow) -> bool:
    """Whether the file has its full size, or the disk is full."""
    return error.sqlite_errorcode == sqlite3.SQLITE_FULL


def _inflated(data: bytes) -> bytes:
    inflater = zlib.decompressobj()
    made = inflater.decompress(data, _MOST_FRAME_BYTES)
    if not inflater.eof:
        raise ValueError(f"it has more than {_MOST_FRAME_BYTES} bytes, or is cut")
    return made
