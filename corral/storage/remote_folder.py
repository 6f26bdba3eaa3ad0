"""A remote folder at a URI, where replicas share logs and code.

A file is there whole or not at all: it is written under another name and renamed, except in object stores. Calls run in
threads of their own, so that a slow or unavailable store blocks nothing else. Credentials come from the environment, as
for the data of tasks (`stage`).
"""

from __future__ import annotations

import asyncio
import posixpath
import secrets
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

from corral.kernel.errors import CorralError, InvalidInput, NotFound, Unavailable
from corral.storage.staging import is_object_store, place, words_of

_T = TypeVar("_T")
_AT_ONCE: Final = 16
"""Calls in progress at once."""
_CHUNK: Final = 4 << 20
_PART: Final = ".corral-part"


class RemoteFolder:
    """A folder of files at a URI, or a subfolder of one."""

    def __init__(self, filesystem: Any, root: str, shown: str, threads: ThreadPoolExecutor | None = None) -> None:
        """`filesystem` is fsspec's, `root` a path in it; `shown` is the name in messages."""
        self._fs, self._root, self.shown = filesystem, root.rstrip("/"), shown.rstrip("/")
        self._objects = is_object_store(filesystem)
        self._threads = threads or ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="blobs")

    def below(self, name: str) -> RemoteFolder:
        """The subfolder of that name."""
        return RemoteFolder(self._fs, f"{self._root}/{name}", f"{self.shown}/{name}", self._threads)

    async def check(self) -> None:
        """Write, read and remove a file to test the folder.

        Raises Unavailable with the store's message when one of these fails.
        """
        name = f"corral-{secrets.token_hex(4)}.probe"
        await self.write(name, b"corral\n")
        found = await self.read(name, 0, 7)
        await self.remove(name)
        if found != b"corral\n":
            raise Unavailable("blob-store-unavailable", f"{self.shown} does not give back what was written there.")

    async def close_to_others(self) -> None:
        """Make the folder, and let its owner alone enter it. An object store knows no users: there nothing is done.

        Raises Unavailable.
        """
        if not self._objects:
            await self._do(self._close)

    async def put(self, name: str, source: Path) -> None:
        """Upload a local file, replacing an existing one.

        Raises Unavailable.
        """
        await self._do(self._put, name, source)

    async def write(self, name: str, data: bytes) -> None:
        """Write a small file, replacing an existing one.

        Raises Unavailable.
        """
        await self._do(self._write, name, data)

    async def get(self, name: str, target: Path) -> None:
        """Download a file into a local one.

        Raises NotFound, Unavailable.
        """
        await self._do(self._get, name, target)

    async def read(self, name: str, begin: int, end: int) -> bytes:
        """The bytes from `begin` to `end` of a file.

        Raises NotFound, Unavailable.
        """
        return await self._do(self._read, name, begin, end)

    async def size(self, name: str) -> int | None:
        """The size of a file in bytes; None when it does not exist.

        Raises Unavailable.
        """
        return await self._do(self._size, name)

    async def files(self, folder: str = "") -> dict[str, int]:
        """The files of a folder with their sizes in bytes; empty when it does not exist.

        Raises Unavailable.
        """
        return await self._do(self._files, folder)

    async def remove(self, name: str) -> None:
        """Delete a file, if it exists.

        Raises Unavailable.
        """
        await self._do(self._remove, name, recursive=False)

    async def remove_folder(self, name: str) -> None:
        """Delete a folder with its content, if it exists.

        Raises Unavailable.
        """
        await self._do(self._remove, name, recursive=True)

    async def _do(self, call: Callable[..., _T], *words: Any, **more: Any) -> _T:
        def run() -> _T:
            try:
                return call(*words, **more)
            except CorralError:
                raise
            except FileNotFoundError as error:
                if call not in (self._get, self._read):  # for example, a missing bucket
                    raise self._cannot(error) from error
                raise NotFound("no-such-blob", f"There is nothing at {self.shown}/{words[0]}.") from None
            except Exception as error:  # each library has errors of its own
                raise self._cannot(error) from error

        return await asyncio.get_running_loop().run_in_executor(self._threads, run)

    def _cannot(self, error: Exception) -> Unavailable:
        message = f"The blob store {self.shown} cannot be used: {words_of(error)}."
        return Unavailable("blob-store-unavailable", message, retry_after=10)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def _close(self) -> None:
        self._fs.makedirs(self._root, exist_ok=True)
        self._fs.chmod(self._root, 0o700)

    def _put(self, name: str, source: Path) -> None:
        if self._objects:
            self._fs.put_file(str(source), self._path(name))
            return
        with open(source, "rb") as reader:
            self._beside(name, lambda writer: shutil.copyfileobj(reader, writer, _CHUNK))

    def _write(self, name: str, data: bytes) -> None:
        if self._objects:
            self._fs.pipe_file(self._path(name), data)
        else:
            self._beside(name, lambda writer: writer.write(data))

    def _beside(self, name: str, fill: Callable[[BinaryIO], Any]) -> None:
        path = self._path(name)
        part = f"{path}.{secrets.token_hex(4)}{_PART}"
        self._fs.makedirs(posixpath.dirname(path), exist_ok=True)
        try:
            with self._fs.open(part, "wb") as writer:
                fill(writer)
            self._fs.mv(part, path)
        except BaseException:
            self._unlink(part)
            raise

    def _unlink(self, path: str) -> None:
        try:
            self._fs.rm(path)
        except Exception:  # noqa: S110  the earlier error is the one to report
            pass

    def _get(self, name: str, target: Path) -> None:
        with self._fs.open(self._path(name), "rb") as reader, open(target, "wb") as writer:
            shutil.copyfileobj(reader, writer, _CHUNK)

    def _read(self, name: str, begin: int, end: int) -> bytes:
        return bytes(self._fs.cat_file(self._path(name), start=begin, end=end)) if begin < end else b""

    def _size(self, name: str) -> int | None:
        try:
            return int(self._fs.info(self._path(name))["size"])
        except FileNotFoundError:
            return None

    def _files(self, folder: str) -> dict[str, int]:
        path = self._path(folder)
        try:
            found = self._fs.ls(path, detail=True)
        except FileNotFoundError:
            return {}
        names = {posixpath.basename(each["name"]): each for each in found if each["type"] == "file"}
        return {name: int(each["size"]) for name, each in names.items() if name and not name.endswith(_PART)}

    def _remove(self, name: str, *, recursive: bool) -> None:
        path = self._path(name)
        try:
            if recursive or not self._objects:
                self._fs.rm(path, recursive=recursive)
            else:
                self._fs.rm_file(path)
        except FileNotFoundError:
            pass


async def open_folder(uri: str) -> RemoteFolder:
    """Open and test the folder at a storage URI.

    Raises InvalidInput for a URI that cannot be used here, Unavailable when the folder cannot be written.
    """
    if "://" not in uri:
        raise InvalidInput("bad-blob-store", f"{uri} (blobs) is not a storage URI such as s3://bucket/prefix.")
    filesystem, root = await asyncio.to_thread(place, uri, use_listings_cache=False)
    if not root.strip("/"):
        raise InvalidInput("bad-blob-store", f"{uri} (blobs) names no folder or bucket of its own.")
    folder = RemoteFolder(filesystem, root, uri)
    await folder.check()
    return folder
