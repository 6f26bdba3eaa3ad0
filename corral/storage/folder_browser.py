"""List folders of a storage and read its files, for users who may read them.

Links are never followed, neither on the way nor at the end. Every part of a path is opened relative to the folder
before it, so that neither `..` nor a link leads out. The server may read everything, so it checks what the user's
system account may read. Each call works in a thread with a deadline, because a file server that is away may never
answer. Each storage has few such threads at once.
"""

from __future__ import annotations

import asyncio
import errno
import heapq
import os
import pwd
import stat
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeVar

from corral.kernel.errors import Forbidden, InvalidInput, NotFound, Unavailable
from corral.storage.call_slots import CallSlots
from corral.storage.staging import place, words_of

Answer = TypeVar("Answer")
SECONDS: Final = 10.0
"""Seconds that a listing or a piece of a file may take."""
WAIT: Final = 2.0
"""Seconds that a listing or a file's first call waits for one of the storage's slots."""
PIECE_WAIT: Final = 60.0
"""Seconds that a later piece of a file waits for a slot; longer, because a truncated file is useless."""
PIECE: Final = 1 << 20
"""Bytes of a file that are read at once."""
MOST_SEEN: Final = 200_000
"""Entries of one folder that are read at most."""
_DEEPEST: Final = 64
_LONGEST: Final = 4096


class Entry(NamedTuple):
    """One entry of a folder."""

    name: str
    kind: Literal["folder", "file", "link", "other"]
    size: int
    changed_at: float


class Listing(NamedTuple):
    """A page of entries in the order of their names."""

    entries: list[Entry]
    next: str = ""
    """The name after which the next page starts, as the storage has it; "" on the last page."""


class Account(NamedTuple):
    """The system account whose permissions apply."""

    uid: int
    groups: frozenset[int]

    def may(self, status: os.stat_result, *, enter: bool = False) -> bool:
        """Whether the account may read a file, or read and enter a folder, by its mode bits. ACLs are ignored."""
        shift = 6 if status.st_uid == self.uid else 3 if status.st_gid in self.groups else 0
        wanted = 0o5 if enter else 0o4
        return self.uid == 0 or (status.st_mode >> shift) & wanted == wanted


def account_of(uid: int | None) -> Account | None:
    """The account that a user's tasks read files as; None where the server has no more rights than they.

    Blocks: the system's account database may be a directory server (LDAP).
    """
    if os.geteuid() != 0:
        return None
    if uid is None:
        return Account(-1, frozenset())
    try:
        known = pwd.getpwuid(uid)
    except KeyError:
        return Account(uid, frozenset({uid}))
    return Account(uid, frozenset(os.getgrouplist(known.pw_name, known.pw_gid)))


def parts_of(path: str) -> tuple[str, ...]:
    """The names in a path of a storage.

    Raises InvalidInput `bad-path` for a path that leads out or is too long.
    """
    parts = tuple(part for part in path.split("/") if part and part != ".")
    if ".." in parts or "\0" in path or len(path) > _LONGEST or len(parts) > _DEEPEST:
        message = f"A path has up to {_DEEPEST} names, none of them .., and {_LONGEST} characters."
        raise InvalidInput("bad-path", message)
    return parts


class Folder(Protocol):
    """The folder of a storage as one user sees it. Its calls block."""

    def entries(self, parts: tuple[str, ...], after: str, limit: int) -> Listing:
        """The entries of a folder whose names come after `after`."""
        ...

    def entry(self, parts: tuple[str, ...]) -> Entry:
        """What is at a path."""
        ...

    def size(self, parts: tuple[str, ...]) -> int:
        """The size in bytes of a readable file."""
        ...

    def read(self, parts: tuple[str, ...], begin: int, end: int) -> bytes:
        """The bytes from `begin` to `end` of a file."""
        ...


class LocalFolder:
    """A folder of this machine."""

    def __init__(self, root: str, own: str, account: Callable[[], Account | None] | None) -> None:
        """`own` is the user's folder in it, "" for all of it. `account` may block; the first call calls it once."""
        self._root, self._own, self._ask = root, own, account
        self._account: Account | None = None

    def entries(self, parts: tuple[str, ...], after: str, limit: int) -> Listing:
        """The entries of a folder.

        Raises NotFound, Forbidden.
        """
        with self._opened(parts, os.O_DIRECTORY) as (descriptor, _), os.scandir(descriptor) as found:
            names = (entry.name for _, entry in zip(range(MOST_SEEN), found, strict=False))
            wanted = heapq.nsmallest(limit + 1, (name for name in names if name > after))
            shown = [_entry(descriptor, name) for name in wanted[:limit]]
            return Listing(
                [each for each in shown if each is not None], wanted[limit - 1] if len(wanted) > limit else ""
            )

    def entry(self, parts: tuple[str, ...]) -> Entry:
        """The file or folder at a path.

        Raises NotFound, Forbidden.
        """
        with self._opened(parts, os.O_NONBLOCK) as (_, status):
            return _entry_of(parts[-1] if parts else "", status)

    def size(self, parts: tuple[str, ...]) -> int:
        """The size of a file in bytes.

        Raises NotFound, Forbidden, InvalidInput `not-a-file`.
        """
        with self._opened(parts, os.O_NONBLOCK) as (_, status):
            if not stat.S_ISREG(status.st_mode):
                raise InvalidInput("not-a-file", f"{'/'.join(parts)[-200:]} is not a file; list it instead.")
            return status.st_size

    def read(self, parts: tuple[str, ...], begin: int, end: int) -> bytes:
        """The bytes from `begin` to `end` of a file; raises like `size`."""
        with self._opened(parts, os.O_NONBLOCK) as (descriptor, status):
            if not stat.S_ISREG(status.st_mode):
                raise InvalidInput("not-a-file", f"{'/'.join(parts)[-200:]} is not a file; list it instead.")
            return os.pread(descriptor, end - begin, begin)

    @contextmanager
    def _opened(self, parts: tuple[str, ...], flags: int) -> Iterator[tuple[int, os.stat_result]]:
        """Open a path part by part, each relative to the folder before."""
        ways = (*((self._own,) if self._own else ()), *parts)
        shown = "/".join(parts)[-200:] or "/"
        descriptor = -1
        try:
            if self._ask is not None:
                self._account, self._ask = self._ask(), None
            descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            status = self._checked(descriptor, shown)
            for at, part in enumerate(ways, 1):
                how = flags if at == len(ways) else os.O_DIRECTORY
                inner = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | how, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
                status = self._checked(descriptor, shown)
            yield descriptor, status
        except OSError as error:
            raise _refused(error, shown) from None
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def _checked(self, descriptor: int, shown: str) -> os.stat_result:
        status = os.fstat(descriptor)
        if self._account is not None and not self._account.may(status, enter=stat.S_ISDIR(status.st_mode)):
            raise _unreadable(shown)
        return status


class RemoteStorage:
    """A folder at a URI, opened with the server's own credentials."""

    def __init__(self, uri: str, own: str) -> None:
        self._uri, self._own = uri, own

    def entries(self, parts: tuple[str, ...], after: str, limit: int) -> Listing:
        """The entries of a folder.

        Raises NotFound, Unavailable.
        """
        filesystem, path = self._at(parts)
        try:
            infos = filesystem.ls(path, detail=True)
        except FileNotFoundError:
            raise _missing("/".join(parts)[-200:] or "/") from None
        except Exception as error:
            raise _away(words_of(error)) from None
        found = [_remote_entry(info) for info in infos[:MOST_SEEN] if info["name"].rstrip("/") != path.rstrip("/")]
        wanted = heapq.nsmallest(limit + 1, (each for each in found if each.name > after))
        return Listing(wanted[:limit], wanted[limit - 1].name if len(wanted) > limit else "")

    def entry(self, parts: tuple[str, ...]) -> Entry:
        """The file or folder at a path; raises like `entries`."""
        filesystem, path = self._at(parts)
        try:
            return _remote_entry(filesystem.info(path))
        except FileNotFoundError:
            raise _missing("/".join(parts)[-200:]) from None
        except Exception as error:
            raise _away(words_of(error)) from None

    def size(self, parts: tuple[str, ...]) -> int:
        """The size of a file in bytes.

        Raises NotFound, InvalidInput `not-a-file`, Unavailable.
        """
        found = self.entry(parts)
        if found.kind != "file":
            raise InvalidInput("not-a-file", f"{'/'.join(parts)[-200:]} is not a file; list it instead.")
        return found.size

    def read(self, parts: tuple[str, ...], begin: int, end: int) -> bytes:
        """The bytes from `begin` to `end` of a file; raises like `size`."""
        filesystem, path = self._at(parts)
        try:
            data: bytes = filesystem.cat_file(path, start=begin, end=end)
        except FileNotFoundError:
            raise _missing("/".join(parts)[-200:]) from None
        except Exception as error:
            raise _away(words_of(error)) from None
        return data

    def _at(self, parts: tuple[str, ...]) -> tuple[Any, str]:
        filesystem, root = place(self._uri, use_listings_cache=False)
        return filesystem, "/".join((root.rstrip("/"), *((self._own,) if self._own else ()), *parts))


class Browser:
    """Calls folders of storages in threads, few at once for each storage."""

    def __init__(self, seconds: float = SECONDS, wait: float = WAIT, piece_wait: float = PIECE_WAIT) -> None:
        self._seconds, self._wait, self._piece_wait = seconds, wait, piece_wait
        self._slots: dict[str, CallSlots] = {}

    async def entries(
        self, storage: str, folder: Folder, path: str, after: str, limit: int, *, user: str = ""
    ) -> Listing:
        """A page of a folder's entries.

        Raises the folder's errors, and Unavailable when it does not answer in time, or the storage or user is busy.
        """
        parts = parts_of(path)
        return await self._call(storage, user, self._wait, lambda: folder.entries(parts, after, limit))

    async def file(
        self, storage: str, folder: Folder, path: str, *, user: str = ""
    ) -> tuple[int, AsyncIterator[bytes]]:
        """The size of a file, and its bytes in pieces up to that size.

        Raises like `entries`.
        """
        parts = parts_of(path)
        size = await self._call(storage, user, self._wait, lambda: folder.size(parts))

        def piece(at: int) -> bytes:
            return folder.read(parts, at, min(size, at + PIECE))

        return size, self._pieces(storage, user, piece, size)

    async def entry(self, storage: str, folder: Folder, path: str, *, user: str = "") -> Entry:
        """What is at a path; raises like `entries`."""
        parts = parts_of(path)
        return await self._call(storage, user, self._wait, lambda: folder.entry(parts))

    async def beginning(
        self, storage: str, folder: Folder, path: str, most: int, *, user: str = ""
    ) -> tuple[int, bytes]:
        """The size of a file, and its first bytes, `most` at most; raises like `entries`."""
        parts = parts_of(path)

        def look() -> tuple[int, bytes]:
            size = folder.size(parts)
            return size, folder.read(parts, 0, min(size, most)) if size else b""

        return await self._call(storage, user, self._wait, look)

    async def _pieces(self, storage: str, user: str, read: Callable[[int], bytes], size: int) -> AsyncIterator[bytes]:
        at = 0
        while at < size:
            piece = await self._call(storage, user, self._piece_wait, partial(read, at))
            if not piece:
                raise Unavailable("file-changed", f"The file became shorter while it was read: {at} of {size} bytes.")
            yield piece
            at += len(piece)

    async def _call(self, storage: str, user: str, wait: float, function: Callable[[], Answer]) -> Answer:
        slots = self._slots.setdefault(storage, CallSlots(storage))
        await slots.take(user, wait)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()

        def done(result: Answer | None, error: BaseException | None) -> None:
            self._free(storage, user)
            if answer.done():
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(result)  # type: ignore[arg-type]

        def run() -> None:
            result, failure = None, None
            try:
                result = function()
            except BaseException as error:
                failure = error
            try:
                loop.call_soon_threadsafe(done, result, failure)
            except RuntimeError:
                return  # the server has ended meanwhile

        try:
            threading.Thread(target=run, name=f"browse {storage}", daemon=True).start()
        except RuntimeError:
            self._free(storage, user)
            raise Unavailable("server-busy", "The server can begin no more threads; try again in a moment.") from None
        try:
            async with asyncio.timeout(self._seconds):
                return await answer
        except TimeoutError:
            raise _away(f"no answer in {self._seconds:g} seconds") from None

    def _free(self, storage: str, user: str) -> None:
        slots = self._slots[storage]
        slots.give_back(user)
        if slots.idle:
            del self._slots[storage]


def _entry(folder: int, name: str) -> Entry | None:
    """One entry; None when it is gone meanwhile."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
    return _entry_of(name, status)


def _entry_of(name: str, status: os.stat_result) -> Entry:
    kinds: dict[int, Literal["folder", "file", "link"]] = {
        stat.S_IFDIR: "folder",
        stat.S_IFREG: "file",
        stat.S_IFLNK: "link",
    }
    shown = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return Entry(shown, kinds.get(stat.S_IFMT(status.st_mode), "other"), status.st_size, status.st_mtime)


def _remote_entry(info: dict[str, Any]) -> Entry:
    changed = info.get("LastModified") or info.get("mtime") or info.get("modificationTime") or 0
    at = changed.timestamp() if hasattr(changed, "timestamp") else float(changed or 0)
    at = at / 1000 if at > 1e11 else at  # WebHDFS counts in milliseconds
    name = str(info["name"]).rstrip("/").rpartition("/")[2]
    kind: Literal["folder", "file"] = "folder" if info.get("type") == "directory" else "file"
    return Entry(name, kind, int(info.get("size") or 0), at)


def _missing(shown: str) -> NotFound:
    return NotFound("path-not-found", f"There is no {shown} in the storage.")


def _unreadable(shown: str) -> Forbidden:
    return Forbidden("path-unreadable", f"{shown} is not readable for your account.")


def _away(said: str) -> Unavailable:
    return Unavailable("storage-away", f"The storage does not answer: {said}.", retry_after=10)


def _refused(error: OSError, shown: str) -> Exception:
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
        return _missing(shown)
    if error.errno == errno.ELOOP:
        return InvalidInput("path-is-link", f"{shown} is behind a symbolic link; links are not followed here.")
    if error.errno in (errno.EACCES, errno.EPERM):
        return _unreadable(shown)
    return _away(error.strerror or "an error of the system")
