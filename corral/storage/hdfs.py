"""HDFS through fsspec's WebHDFS client and hdfs-native, with fixes for cases in which they lose data.

As they are, a rename onto an existing file does nothing, `#` and `?` end a file's name, a DataNode's error is read as
data, an append writes nothing, and no user is sent. Here HDFS behaves like every other store. The user is
`HADOOP_USER_NAME`, else the process's own. `HADOOP_CONF_DIR` configures name services, whose active NameNode is called.
A NameNode that asks for Kerberos gets the delegation token that YARN gave the container (`HADOOP_TOKEN_FILE_LOCATION`),
else a ticket by the keytab `KRB5_CLIENT_KTNAME` or from the ticket cache `KRB5CCNAME`.
"""

from __future__ import annotations

import getpass
import io
import json
import os
import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from corral.storage import name_services
from corral.storage.web_session import session

SCHEMES: Final = ("hdfs", "webhdfs", "swebhdfs")
"""`swebhdfs` is WebHDFS over TLS."""
_WEB_PORTS: Final = {"webhdfs": 9870, "swebhdfs": 9871}
_ONE_NAME_NODE: Final = {"dfs.client.failover.max.attempts": "3"}
"""Without a configuration there is one NameNode and no failover, so the client must not retry for minutes."""
_STREAMED_BYTES: Final = 2**20
"""A read of fewer bytes opens no stream: it is one of many at other places, or of a small file."""
_TOKEN: Final = re.compile(r"(delegation=)[^&\s\"')]+")
"""A delegation token in a URL: with Kerberos a NameNode gives one to whom it sends to a DataNode."""
_REMOTE: Final = re.compile(r'RPCError\("[\w.$]+", "(.*)', re.DOTALL)


def place(uri: str) -> tuple[Any, str]:
    """The file system and the path of `hdfs://…`, `webhdfs://…` or `swebhdfs://…`.

    Raises ImportError where its library is not installed, ValueError for an invalid port.
    """
    scheme, _, rest = uri.partition("://")
    address = urlsplit(f"//{rest.partition('/')[0]}")
    host, port = address.hostname or "", address.port
    return _native(host, port) if scheme == "hdfs" else _web(scheme, host, port), path_of(uri)


def path_of(uri: str) -> str:
    """The path of a URI as it stands: `%`, `#` and `?` are characters of names."""
    return f"/{uri.partition('://')[2].partition('/')[2]}"


def plain_words(text: str) -> str:
    """A NameNode's error message without the exception's class, the server's stack trace, and tokens."""
    found = _REMOTE.match(text)
    first = re.split(r"\\n|\n", found[1] if found else text, maxsplit=1)[0].removesuffix('")')
    return _TOKEN.sub(r"\1…", first)


def _native(host: str, port: int | None) -> Any:
    from hdfs_native.fsspec import HdfsFileSystem

    class Native(HdfsFileSystem):
        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return path

        def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:  # type: ignore[override]
            opened = super()._open(path, mode, **options)
            return StreamedFile(opened) if mode == "rb" else opened

        def mv(self, path1: str, path2: str, **_: Any) -> None:
            self.client.rename(path1, path2, True)

        def chmod(self, path: str, mode: int) -> None:
            self.client.set_permission(path, mode)

    return Native(host or None, port, **({} if "HADOOP_CONF_DIR" in os.environ else _ONE_NAME_NODE))


class StreamedFile(io.RawIOBase):
    """A file of hdfs-native whose large reads, one after the other, come from one stream of the DataNode.

    Each of the library's own reads is a question of its own, which took four times as long for a large file.
    """

    def __init__(self, file: Any) -> None:
        self._file, self._at = file, 0
        self._stream: Iterator[bytes] | None = None
        self._rest = b""
        """What came of the stream and was not read."""

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def seekable(self) -> bool:
        """Whether `seek` works: always."""
        return True

    def tell(self) -> int:
        """The place of the next read."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Choose the place of the next read."""
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: len(self._file)}[whence]
        if begin + offset != self._at:
            self._at, self._stream, self._rest = begin + offset, None, b""
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Read `size` bytes, fewer at the end of the file alone; without a size all that is left."""
        left = max(0, len(self._file) - self._at)
        size = left if size < 0 else min(size, left)
        if self._stream is None and size < _STREAMED_BYTES:
            found: bytes = self._file.read_range(self._at, size) if size else b""
        else:
            found = self._streamed(size)
        self._at += len(found)
        return found

    def pieces(self) -> Iterator[bytes]:
        """Yield all that is left as it comes: putting it together to larger reads costs more than the rest."""
        if self._stream is None and self._at < len(self._file):
            self._stream = iter(self._file.read_range_stream(self._at, len(self._file) - self._at))
        while piece := self._rest or next(self._stream or iter(()), b""):
            self._at, self._rest = self._at + len(piece), b""
            yield piece

    def _streamed(self, size: int) -> bytes:
        if self._stream is None:
            self._stream = iter(self._file.read_range_stream(self._at, len(self._file) - self._at))
        pieces, count = [self._rest], len(self._rest)
        while count < size and (piece := next(self._stream, b"")):
            pieces.append(piece)
            count += len(piece)
        found = b"".join(pieces)
        self._rest = found[size:]
        return found[:size] if self._rest else found


def _web(scheme: str, host: str, port: int | None) -> Any:
    from fsspec.implementations.webhdfs import WebHDFile, WebHDFS

    pair = name_services.addresses(host, secure=scheme == "swebhdfs") if port is None else ()
    bases = pair or (f"{f'[{host}]' if ':' in host else host}:{port or _WEB_PORTS[scheme]}",)

    class File(WebHDFile):  # type: ignore[misc]
        _made = False
        """Whether the file was made, which the first bytes do: a small file is one call of each daemon."""

        def _initiate_upload(self) -> None:
            self._made = "w" not in self.mode

        def _upload_chunk(self, final: bool = False) -> bool:
            if self._made:
                self._write("APPEND", "POST", self.buffer.getvalue())
            else:
                self._write("CREATE", "PUT", self.buffer.getvalue(), overwrite="true")
            self._made = True
            return True

        def _write(self, operation: str, method: str, data: bytes, **parameters: str) -> None:
            """Get the DataNode's address from the NameNode, which receives no data, and send the data there."""
            told = self.fs._call(operation, method, self.path, redirect=False, **parameters)
            where, kind = told.headers["Location"], {"Content-Type": "application/octet-stream"}
            answer = self.fs.session.request(method, where, data=data, headers=kind)
            if answer.status_code >= 400:
                raise OSError(_refusal(answer.content) or f"HTTP {answer.status_code}")

        def _fetch_range(self, start: int, end: int) -> bytes:
            length = min(end, self.size) - start
            found: bytes = (
                self.fs._call("OPEN", path=self.path, offset=start, length=length).content if length > 0 else b""
            )
            if len(found) != max(0, length):
                raise OSError(f"{len(found)} bytes came of {length}")
            return found

    class Web(WebHDFS):  # type: ignore[misc]
        def _connect(self) -> None:
            self.session = session(bases)

        def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:
            return File(self, path, mode=mode, block_size=self.blocksize, tempdir="", autocommit=True)

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return path

        def mv(self, path1: str, path2: str, **_: Any) -> None:
            self._call("RENAME", method="put", path=path1, destination=path2, renameoptions="overwrite")

        def chmod(self, path: str, mode: int) -> None:
            super().chmod(path, f"{mode:o}")

    # one of a name service's own: a file system of one NameNode may be kept for the same host and port
    more = {"name_service": host} if pair else {}
    first, _, number = bases[0].rpartition(":")
    return Web(first, int(number), user=user(), use_https=scheme == "swebhdfs", **more)


def _refusal(body: bytes) -> str:
    """A DataNode's error message; "" when it sent none."""
    try:
        return str(json.loads(body)["RemoteException"]["message"])
    except (ValueError, LookupError, TypeError):
        return ""


def user() -> str | None:
    """The user name for clusters without authentication, chosen as Hadoop's own clients do."""
    try:
        return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    except (KeyError, OSError):  # a uid without a name
        return None
