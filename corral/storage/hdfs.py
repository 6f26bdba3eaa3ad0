"""HDFS through fsspec's WebHDFS client and hdfs-native, with fixes for cases in which they lose data.

As they are, a rename onto an existing file does nothing, `#` and `?` end a file's name, a DataNode's error is read as
data, an append writes nothing, and no user is sent. Here HDFS behaves like every other store. The user is
`HADOOP_USER_NAME`, else the process's own. `HADOOP_CONF_DIR` configures name services, whose active NameNode is called.
A NameNode that asks for Kerberos gets the delegation token that YARN gave the container (`HADOOP_TOKEN_FILE_LOCATION`),
else a ticket by the keytab `KRB5_CLIENT_KTNAME` or from the ticket cache `KRB5CCNAME`.
"""

from __future__ import annotations

import getpass
import json
import os
import re
from typing import Any, Final
from urllib.parse import urlsplit

from corral.storage import name_services
from corral.storage.web_session import session

SCHEMES: Final = ("hdfs", "webhdfs", "swebhdfs")
"""`swebhdfs` is WebHDFS over TLS."""
_WEB_PORTS: Final = {"webhdfs": 9870, "swebhdfs": 9871}
_ONE_NAME_NODE: Final = {"dfs.client.failover.max.attempts": "3"}
"""Without a configuration there is one NameNode and no failover, so the client must not retry for minutes."""
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

        def mv(self, path1: str, path2: str, **_: Any) -> None:
            self.client.rename(path1, path2, True)

    return Native(host or None, port, **({} if "HADOOP_CONF_DIR" in os.environ else _ONE_NAME_NODE))


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
