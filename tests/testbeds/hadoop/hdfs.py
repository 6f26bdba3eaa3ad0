"""A real NameNode and DataNode for tests of `hdfs://` and `webhdfs://`, in a folder of their own."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

from tests.reserved import free_port
from tests.testbeds.hadoop import jars
from tests.testbeds.hadoop.configuration import write_configuration
from tests.testbeds.hadoop.tls import Tls
from tests.testbeds.kubernetes import remains
from tests.testbeds.kubernetes.daemons import Daemon

HOMES: Final = "corral-hadoop-"
"""The prefix of the temporary folders."""
READY_SECONDS: Final = 300.0
"""Seconds that guard against a daemon that never answers; a busy machine starts one in two minutes."""
SERVER: Final = "org.apache.hadoop.hdfs.server"


class Hdfs:
    """A NameNode and one DataNode, ready for writes; the user who runs the test is their superuser."""

    host = "127.0.0.1"
    """Where its clients call it."""
    data_host = "127.0.0.1"
    """The name of the host that has all blocks."""

    def __init__(
        self, environment: Mapping[str, str] | None = None, *, tls: bool = False, data_host: str = "127.0.0.1"
    ) -> None:
        """`environment` has further variables of the daemons; with `tls` they serve WebHDFS over TLS as well.

        `data_host` is the loopback address by which the NameNode knows the DataNode.
        """
        begun = time.monotonic()
        self.data_host = data_host
        for left in list(remains.orphans(HOMES)):
            shutil.rmtree(left, ignore_errors=True)
        self._home = Path(tempfile.mkdtemp(prefix=HOMES))
        remains.write_owner(self._home)
        self._ports = {name: free_port() for name in ("rpc", "web", "data", "data-web", "data-ipc")}
        self.native = f"hdfs://{self.host}:{self._ports['rpc']}"
        """Its address by its own protocol."""
        self.web = f"webhdfs://{self.host}:{self._ports['web']}"
        """Its address over HTTP."""
        configuration = self._home / "conf"
        self._tls = Tls(configuration, self._home / "tls") if tls else None
        write_configuration(configuration / "core-site.xml", self._core())
        write_configuration(configuration / "hdfs-site.xml", self._settings())
        name = jars.command(f"{SERVER}.namenode.NameNode", configuration)
        data = jars.command(f"{SERVER}.datanode.DataNode", configuration)
        self._name, self._data = (
            Daemon("namenode", name, self._home, environment),
            Daemon("datanode", data, self._home, environment),
        )
        try:
            self._begin_empty(name, environment)
            self._data.start(lambda: True)
            self._name.start(self._answers, seconds=READY_SECONDS)
            self._data.start(self._has_data_node, seconds=READY_SECONDS)
        except BaseException:
            self.close()
            raise
        self.start_seconds = time.monotonic() - begun

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def web_urls(self) -> tuple[str, ...]:
        """The addresses of WebHDFS of all NameNodes, as Corral's settings name them."""
        return (self.web.replace("webhdfs", "http"),)

    @property
    def tls(self) -> Tls:
        """Where it serves over TLS."""
        assert self._tls is not None
        return self._tls

    def close(self) -> None:
        """Stop all and remove their folder."""
        self._data.stop()
        self._name.stop()
        shutil.rmtree(self._home, ignore_errors=True)

    def add_folder(self, path: str, owner: str) -> None:
        """Make a folder owned by `owner`."""
        self.ask("PUT", path, "MKDIRS")
        self.ask("PUT", path, "SETOWNER", owner=owner)

    def names(self, path: str) -> list[str]:
        """The names in a folder."""
        return [each["pathSuffix"] for each in self.ask("GET", path, "LISTSTATUS")["FileStatuses"]["FileStatus"]]

    def owner(self, path: str) -> str:
        """The owner of a file or folder."""
        return str(self.ask("GET", path, "GETFILESTATUS")["FileStatus"]["owner"])

    def write(self, path: str, content: bytes) -> None:
        """Write a small file."""
        user = pwd.getpwuid(os.geteuid()).pw_name
        query = urlencode({"op": "CREATE", "user.name": user, "noredirect": "true"})
        url = f"http://127.0.0.1:{self._ports['web']}/webhdfs/v1{quote(path)}?{query}"
        with urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=120) as answer:
            place = json.loads(answer.read())["Location"]
        with urllib.request.urlopen(urllib.request.Request(place, data=content, method="PUT"), timeout=120):
            pass

    def read(self, path: str) -> bytes:
        """The content of a file."""
        query = urlencode({"op": "OPEN", "user.name": pwd.getpwuid(os.geteuid()).pw_name})
        url = f"http://127.0.0.1:{self._ports['web']}/webhdfs/v1{quote(path)}?{query}"
        with urllib.request.urlopen(url, timeout=120) as answer:
            return bytes(answer.read())

    def damage(self, content: bytes) -> None:
        """Change a byte of the block that has this content, as a bad disk would."""
        (block,) = [
            each
            for each in (self._home / "blocks").rglob("blk_*[0-9]")
            if each.is_file() and each.read_bytes() == content
        ]
        with block.open("r+b") as file:
            file.seek(len(content) // 2)
            file.write(bytes([content[len(content) // 2] ^ 1]))

    def set_safe_mode(self, on: bool) -> None:
        """Make the NameNode enter or leave safe mode, in which it takes no writes."""
        words = ("-safemode", "enter" if on else "leave")
        command = jars.command("org.apache.hadoop.hdfs.tools.DFSAdmin", self._home / "conf", *words)
        subprocess.run(command, capture_output=True, timeout=120, check=True)

    def ask(self, method: str, path: str, operation: str, **parameters: str) -> Any:
        """One call of the NameNode's REST interface as its superuser; returns the JSON."""
        query = urlencode({"op": operation, "user.name": pwd.getpwuid(os.geteuid()).pw_name, **parameters})
        url = f"http://127.0.0.1:{self._ports['web']}/webhdfs/v1{quote(path)}?{query}"
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=120) as answer:
            got = answer.read()
        return json.loads(got) if got else None

    def _core(self) -> Mapping[str, object]:
        user = pwd.getpwuid(os.geteuid()).pw_name
        return {"fs.defaultFS": self.native} | {f"hadoop.proxyuser.{user}.{what}": "*" for what in ("hosts", "groups")}

    def _settings(self) -> Mapping[str, object]:
        web = f"127.0.0.1:{self._ports['web']}"
        own = {"dfs.namenode.name.dir": self._home / "name", "dfs.namenode.http-address": web}
        return {**own, **self._data_settings(), **(self._tls.settings() if self._tls else {})}

    def _data_settings(self) -> Mapping[str, object]:
        """The settings of the DataNode, and those that any NameNode shares with it."""
        # the NameNode takes the address of its connection, 127.0.0.1, as the DataNode's own
        listens = "127.0.0.1" if self.data_host == "127.0.0.1" else "0.0.0.0"
        at = {name: f"{listens}:{port}" for name, port in self._ports.items()}
        return {
            "dfs.datanode.data.dir": self._home / "blocks",
            "dfs.replication": 1,
            "dfs.datanode.address": at["data"],
            "dfs.datanode.http.address": at["data-web"],
            "dfs.datanode.ipc.address": at["data-ipc"],
            "dfs.datanode.hostname": self.data_host,
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.namenode.safemode.extension": 0,
        }

    def _begin_empty(self, name: Any, environment: Mapping[str, str] | None) -> None:
        """Give the NameNode an empty file system: a copy of one in the test cache, which spares a program of Hadoop's.

        A NameNode with an environment of its own may have another superuser, and formats its own.
        """
        kept = jars.folder().parent / f"formatted-{jars.folder().name}-{pwd.getpwuid(os.geteuid()).pw_name}"
        own = self._home / "name"
        if environment or not kept.is_dir():
            self._format(name, environment)
        if environment:
            return
        if kept.is_dir():
            shutil.copytree(kept, own, dirs_exist_ok=True)
            return
        with tempfile.TemporaryDirectory(prefix=".formatted-", dir=kept.parent) as scratch:
            shutil.copytree(own, Path(scratch) / "name")
            with contextlib.suppress(OSError):  # another lane was first
                (Path(scratch) / "name").rename(kept)

    def _format(self, name: Any, environment: Mapping[str, str] | None) -> None:
        done = subprocess.run(
            [*name, "-format", "-nonInteractive"],
            env={**os.environ, **(environment or {})}, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"the NameNode could not be formatted:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            self.ask("GET", "/", "LISTSTATUS")
            return True
        return False

    def _has_data_node(self) -> bool:
        return self._data_nodes() == 1

    def _data_nodes(self) -> int:
        """The DataNodes that are alive; 0 while the NameNode does not answer."""
        with contextlib.suppress(OSError, LookupError):
            return int(self._jmx("Hadoop:service=NameNode,name=FSNamesystemState")["beans"][0]["NumLiveDataNodes"])
        return 0

    def _jmx(self, query: str) -> Any:
        return self.jmx_at(self._ports["web"], query)

    def jmx_at(self, port: int, query: str) -> Any:
        """The beans of a daemon that serves at a port."""
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/jmx?qry={query}", timeout=120) as answer:
            return json.loads(answer.read())
